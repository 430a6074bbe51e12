//! How a command ends.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use gguf2st_convert::ConvertError;
use gguf2st_gguf::Escaped;
use gguf2st_source::{EscapedPath, SourceError};

/// What a command came to that could be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing to object to.
    Done,
    /// A check failed, or a difference was found.
    Found,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::SUCCESS,
            Outcome::Found => Self::from(1),
        }
    }
}

/// Why a command could not be done. Safe to show.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The model can't be opened or read, or changed meanwhile.
    Model(ConvertError),
    /// There is no tensor of the name that was asked for.
    NoTensor {
        /// The model.
        path: PathBuf,
        /// The name.
        name: String,
        /// Names like it that there are.
        close: Vec<String>,
    },
    /// A signal ended it.
    Interrupted {
        /// The signal's number.
        signal: u8,
        /// Whether the same command would go on with what is there.
        resumes: bool,
    },
    /// Signals can't be caught.
    Signals(io::Error),
    /// Nobody reads standard output any more: no error, only an end.
    Unread,
    /// Standard output can't be written.
    Output(io::Error),
    /// A file of the command's own can't be written.
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
}

/// The exit status of what could not be done.
pub(crate) const COULD_NOT: u8 = 2;

/// What shells add to a signal's number to make an exit status of it.
const SIGNALLED: u8 = 128;

impl Failure {
    /// The exit status.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Self::Interrupted { signal, .. } => SIGNALLED + signal,
            _ => COULD_NOT,
        }
    }

    /// What an error of standard output means.
    pub(crate) fn output(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe { Self::Unread } else { Self::Output(error) }
    }
}

impl From<ConvertError> for Failure {
    fn from(error: ConvertError) -> Self {
        Self::Model(error)
    }
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        Self::Model(error.into())
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Model(error) => error.fmt(f),
            Self::NoTensor { path, name, close } => {
                write!(f, "{}: no tensor is called {:?}", EscapedPath(path), Escaped(name.as_bytes()))?;
                for (position, name) in close.iter().enumerate() {
                    f.write_str(match position {
                        0 => "; did you mean ",
                        _ if position + 1 == close.len() => " or ",
                        _ => ", ",
                    })?;
                    write!(f, "{:?}", Escaped(name.as_bytes()))?;
                }
                f.write_str(if close.is_empty() { "" } else { "?" })
            }
            Self::Interrupted { resumes, .. } => {
                f.write_str("interrupted; what was not whole is removed")?;
                f.write_str(if *resumes { ", and the same command goes on with what is whole" } else { "" })
            }
            Self::Signals(error) => write!(f, "signals cannot be caught: {error}"),
            Self::Unread => f.write_str("nobody reads standard output"),
            Self::Output(error) => write!(f, "standard output cannot be written: {error}"),
            Self::Write { path, error } => write!(f, "{}: cannot be written: {error}", EscapedPath(path)),
        }
    }
}
