//! `gguf2st restore IN BACK`

use gguf2st_convert::Weights;

use super::convert::run_options;
use crate::args::{GlobalArgs, RestoreArgs};
use crate::error::{Failure, Outcome};
use crate::render::Out;
use crate::render::progress::Progress;
use crate::render::written::{Wrote, wrote};
use crate::signals::Signals;

pub(super) fn run(args: &RestoreArgs, global: GlobalArgs, out: &mut Out) -> Result<Outcome, Failure> {
    let weights = Weights::open_path(&args.input)?;
    let options = run_options(args.work);
    // What comes back is about as long as what it comes from.
    let progress = Progress::new("restoring", weights.bytes(), global);
    let advance = |bytes| progress.advance(bytes);
    let signals = Signals::catch(&options.stop).map_err(Failure::Signals)?;
    let (parts, bytes) = gguf2st_convert::restore(&weights, &args.output, &options, &advance)
        .map_err(|error| signals.failure(error, false))?;
    let seconds = progress.finish();
    if !global.quiet {
        let files = (parts > 1).then_some(parts);
        wrote(out, &Wrote { path: &args.output, files, kept: 0, tensors: None, bytes, seconds })
            .map_err(Failure::output)?;
    }
    Ok(Outcome::Done)
}
