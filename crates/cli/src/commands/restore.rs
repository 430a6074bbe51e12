//! `gguf2st restore IN BACK`

use gguf2st_convert::Weights;

use super::convert::run_options;
use crate::args::{GlobalArgs, RestoreArgs};
use crate::error::{Failure, Outcome};
use crate::render::Out;
use crate::render::progress::{Progress, wrote};

pub(super) fn run(args: &RestoreArgs, global: GlobalArgs, out: &mut Out) -> Result<Outcome, Failure> {
    let weights = Weights::open_path(&args.input)?;
    let options = run_options(args.work);
    // What comes back is about as long as what it comes from.
    let progress = Progress::new("restoring", weights.bytes(), global);
    let advance = |bytes| progress.advance(bytes);
    let (_, bytes) = gguf2st_convert::restore(&weights, &args.output, options.existing, options.threads, &advance)?;
    let seconds = progress.finish();
    if !global.quiet {
        wrote(out, &args.output, None, bytes, seconds).map_err(Failure::output)?;
    }
    Ok(Outcome::Done)
}
