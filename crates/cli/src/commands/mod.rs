//! One file a command: its arguments become a job, the job is done, what came out is rendered.

mod assemble;
mod check;
mod completions;
mod convert;
mod dry_run;
mod inspect;
mod man;
mod restore;
mod values;
mod verify;

use crate::args::{Args, Command};
use crate::error::{Failure, Outcome};
use crate::render::Out;

/// Does what was asked.
pub(crate) fn run(args: Args) -> Result<Outcome, Failure> {
    let Args { inspect, global, command } = args;
    let mut out = Out::stdout(global.color);
    let done = match command.unwrap_or(Command::Inspect(inspect)) {
        Command::Inspect(args) => inspect::run(args, global, &mut out),
        Command::Check(args) => check::run(&args, global, &mut out),
        Command::Convert(args) => convert::run(&args, global, &mut out),
        Command::Assemble(args) => assemble::run(&args, global, &mut out),
        Command::Restore(args) => restore::run(&args, global, &mut out),
        Command::Verify(args) => verify::run(&args, global, &mut out),
        Command::Completions(args) => completions::run(&args, &mut out),
        Command::Man(args) => man::run(&args, &mut out),
    };
    let outcome = match done {
        // Not an error, and nobody would read the rest.
        Err(Failure::Unread) => return Ok(Outcome::Done),
        other => other?,
    };
    match out.finish() {
        // What was found out holds though nobody reads it.
        Ok(()) | Err(Failure::Unread) => Ok(outcome),
        Err(error) => Err(error),
    }
}
