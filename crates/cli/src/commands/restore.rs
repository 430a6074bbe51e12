//! `gguf2st restore IN BACK`

use super::convert::run_options;
use crate::args::{GlobalArgs, RestoreArgs};
use crate::error::{Failure, Outcome};
use crate::open;
use crate::render::Out;
use crate::render::progress::{Progress, wrote};

pub(super) fn run(args: &RestoreArgs, global: GlobalArgs, out: &mut Out) -> Result<Outcome, Failure> {
    let source = open::plainly(&args.input)?;
    let options = run_options(args.work);
    // What comes back is about as long as what it comes from.
    let progress = Progress::new("restoring", source.len(), global);
    let advance = |bytes| progress.advance(bytes);
    let bytes = gguf2st_convert::restore(&*source, &args.output, options.existing, options.threads, &advance)?;
    let seconds = progress.finish();
    if !global.quiet {
        wrote(out, &args.output, None, bytes, seconds).map_err(Failure::output)?;
    }
    Ok(Outcome::Done)
}
