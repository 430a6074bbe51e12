//! `gguf2st completions SHELL`

use std::io::Write as _;

use clap::CommandFactory as _;

use crate::args::{Args, CompletionsArgs};
use crate::error::{Failure, Outcome};
use crate::render::Out;

pub(super) fn run(args: &CompletionsArgs, out: &mut Out) -> Result<Outcome, Failure> {
    // clap_complete panics where it can't write, so it writes into memory.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "gguf2st", &mut script);
    out.write_all(&script).map_err(Failure::output)?;
    Ok(Outcome::Done)
}
