//! `gguf2st verify OUT --against MODEL`

use gguf2st_convert::Weights;
use gguf2st_source::Local;

use crate::args::{GlobalArgs, VerifyArgs};
use crate::error::{Failure, Outcome};
use crate::open::Given;
use crate::render::Out;
use crate::render::progress::Progress;
use crate::render::verify::{write_json, write_text};

pub(super) fn run(args: &VerifyArgs, global: GlobalArgs, out: &mut Out) -> Result<Outcome, Failure> {
    let weights = Weights::open_path(&args.output)?;
    let against = Given::parse(&args.against)?;
    let model = against.model(Local::Read)?;
    let progress = Progress::new("comparing", weights.bytes(), global);
    let threads = args.threads.threads;
    let comparison = gguf2st_convert::verify(&weights, &model, threads, &|bytes| progress.advance(bytes))?;
    progress.finish();
    let written = if args.json {
        write_json(out, &args.output, against.name(), &comparison)
    } else {
        write_text(out, &comparison)
    };
    match written.map_err(Failure::output) {
        // The verdict holds though nobody reads the lines.
        Ok(()) | Err(Failure::Unread) => {}
        Err(error) => return Err(error),
    }
    Ok(if comparison.is_equal() { Outcome::Done } else { Outcome::Found })
}
