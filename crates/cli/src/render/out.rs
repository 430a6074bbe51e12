//! Standard output: buffered, with its errors told apart.

use std::env;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal as _, StdoutLock, Write};

use clap::builder::styling::Style;

use crate::args::ColorChoice;
use crate::error::Failure;

/// How output is to look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    /// Whether to colour.
    pub(crate) color: bool,
    /// Columns of the terminal; `None` where it goes elsewhere, and lines are as long as they are.
    pub(crate) width: Option<usize>,
}

impl Look {
    fn of_stdout(choice: ColorChoice) -> Self {
        let terminal = io::stdout().is_terminal();
        let size = if terminal { terminal_size::terminal_size_of(io::stdout()) } else { None };
        // A terminal that says it has no columns does not know.
        let width = size.map(|(width, _)| usize::from(width.0)).filter(|width| *width > 0);
        Self { color: wants_color(choice, terminal, |name| env::var_os(name)), width }
    }

    /// `text` in a style, if there are colours.
    pub(crate) fn paint(self, style: Style, text: impl Display) -> impl Display {
        let style = if self.color { style } else { Style::new() };
        Painted { style, text }
    }
}

/// Whether standard error is a terminal on which a line can be drawn over.
pub(super) fn stderr_obeys() -> bool {
    io::stderr().is_terminal() && !is_dumb(|name| env::var_os(name))
}

/// Columns of the terminal at standard error, or what is usual where it does not know.
pub(super) fn stderr_width() -> usize {
    let size = terminal_size::terminal_size_of(io::stderr());
    size.map(|(width, _)| usize::from(width.0)).filter(|width| *width > 0).unwrap_or(80)
}

fn is_dumb(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    variable("TERM").is_some_and(|term| term == "dumb")
}

fn wants_color(choice: ColorChoice, terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    // https://no-color.org: set, whatever to, and not empty.
    let unwanted = variable("NO_COLOR").is_some_and(|set| !set.is_empty());
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => terminal && !unwanted && !is_dumb(variable),
    }
}

struct Painted<T> {
    style: Style,
    text: T,
}

impl<T: Display> Display for Painted<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}{}", self.style.render(), self.text, self.style.render_reset())
    }
}

/// Standard output, buffered. Never panics: a closed pipe and a full device are errors like any other.
#[derive(Debug)]
pub(crate) struct Out {
    stdout: BufWriter<StdoutLock<'static>>,
    look: Look,
}

/// Enough that the longest listing takes few system calls.
const BUFFER: usize = 64 << 10;

impl Out {
    pub(crate) fn stdout(color: ColorChoice) -> Self {
        Self { stdout: BufWriter::with_capacity(BUFFER, io::stdout().lock()), look: Look::of_stdout(color) }
    }

    pub(crate) fn look(&self) -> Look {
        self.look
    }

    /// Writes what is still buffered. Without it, an error of the last bytes would go unseen.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        self.flush().map_err(Failure::output)
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stdout.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_that_want_them() {
        let wants = |choice, terminal, set: &[(&str, &str)]| {
            let get = |name: &str| set.iter().find(|(it, _)| *it == name).map(|(_, value)| OsString::from(value));
            wants_color(choice, terminal, get)
        };
        assert!(wants(ColorChoice::Auto, true, &[("TERM", "xterm")]));
        assert!(wants(ColorChoice::Auto, true, &[("NO_COLOR", "")]));
        assert!(!wants(ColorChoice::Auto, true, &[("NO_COLOR", "1")]));
        assert!(!wants(ColorChoice::Auto, true, &[("TERM", "dumb")]));
        assert!(!wants(ColorChoice::Auto, false, &[]));
        assert!(!wants(ColorChoice::Never, true, &[]));
        assert!(wants(ColorChoice::Always, false, &[("NO_COLOR", "1")]));
    }
}
