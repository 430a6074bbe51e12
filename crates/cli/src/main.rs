//! `gguf2st`: inspect, check and convert GGUF model files.
//!
//! [`args`] says what can be asked, [`commands`] does it, [`render`] shows it. Anything that can be used
//! without a terminal lives in the other crates.
#![forbid(unsafe_code)]

mod amounts;
mod args;
mod close;
mod commands;
mod error;
mod open;
mod query;
mod render;
mod signals;
mod summary;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args = match args::Args::read(std::env::args_os()) {
        Ok(args) => args,
        Err(answer) => return render::report::answer(&answer),
    };
    match commands::run(args) {
        Ok(outcome) => outcome.into(),
        Err(error) => render::report::failure(&error),
    }
}
