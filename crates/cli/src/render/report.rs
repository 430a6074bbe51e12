//! What goes to standard error: one line a failure or remark. Errors of writing there have nowhere to go.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::ExitCode;

use gguf2st_gguf::{Escaped, is_deceptive};

use crate::error::{COULD_NOT, Failure};

/// Bytes of a message: an error may name a key of 64 KiB.
const LONGEST: usize = 2000;

/// Says why a command could not be done.
pub(crate) fn failure(failure: &Failure) -> ExitCode {
    line(failure);
    ExitCode::from(failure.status())
}

/// Says something that did not keep the command from being done.
pub(crate) fn warning(text: impl Display) {
    line(format_args!("warning: {text}"));
}

fn line(text: impl Display) {
    let mut text = text.to_string();
    if text.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    // The system's own words are the only part that may not have been escaped yet.
    if text.contains(is_deceptive) {
        text = Escaped(text.as_bytes()).to_string();
    }
    let _ = writeln!(io::stderr(), "gguf2st: {text}");
}

/// Prints clap's answer to a command line: help or version as asked for, or what is wrong with the line.
pub(crate) fn answer(answer: &clap::Error) -> ExitCode {
    let rendered = answer.render().to_string();
    if !answer.use_stderr() {
        let mut stdout = io::stdout();
        let printed = stdout.write_all(rendered.as_bytes()).and_then(|()| stdout.flush());
        return match printed.map_err(Failure::output) {
            Ok(()) | Err(Failure::Unread) => ExitCode::SUCCESS,
            Err(error) => failure(&error),
        };
    }
    // It cites the arguments, which a shell may have made from the names of files.
    let shown: Vec<_> = rendered.lines().map(escape_hidden).collect();
    let shown = shown.join("\n");
    let shown = shown.strip_prefix("error: ").map_or_else(|| shown.clone(), |rest| format!("gguf2st: {rest}"));
    let _ = writeln!(io::stderr(), "{}", shown.trim_end());
    ExitCode::from(COULD_NOT)
}

fn escape_hidden(line: &str) -> String {
    if line.contains(is_deceptive) { Escaped(line.as_bytes()).to_string() } else { line.to_owned() }
}
