//! What can go wrong with a source.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::time::SystemTime;

use crate::EscapedPath;

/// Why a source could not be opened, read or trusted.
///
/// Each message is one line, says which file it is about (escaped, see [`EscapedPath`]) and includes
/// the system's own words where there are any; `source()` is therefore always `None`.
///
/// ```
/// use gguf2st_source::{FileSource, SourceError};
///
/// # let folder = tempfile::tempdir()?;
/// let error = FileSource::open(folder.path()).unwrap_err();
/// assert!(matches!(error, SourceError::NotAFile { what: "a folder", .. }));
/// assert!(error.to_string().ends_with(": not a file but a folder"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The path could not be looked at or opened: missing, no permission, a link to nowhere.
    #[error("{}: cannot be opened: {error}", EscapedPath(path))]
    Open {
        /// The path as it was given.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },

    /// The path leads to something that has no length and no ranges.
    #[error("{}: not a file but {what}", EscapedPath(path))]
    NotAFile {
        /// The path as it was given.
        path: PathBuf,
        /// What it is instead, with its article: `a folder`, `a pipe`, …
        what: &'static str,
    },

    /// The file could be opened but not mapped; [`FileSource`](crate::FileSource) may still read it.
    #[error("{}: {len} bytes cannot be mapped into memory: {error}", EscapedPath(path))]
    Map {
        /// The path as it was given.
        path: PathBuf,
        /// The length of the file in bytes.
        len: u64,
        /// What the system said.
        error: io::Error,
    },

    /// Reading failed.
    #[error("{}: bytes {} to {} cannot be read: {error}", EscapedPath(path), range.start, range.end)]
    Read {
        /// The path as it was given.
        path: PathBuf,
        /// The bytes that were still wanted.
        range: Range<u64>,
        /// What the system said.
        error: io::Error,
    },

    /// The range asked for is not inside the source, or runs backwards.
    #[error("{}: bytes {} to {} were asked for, but it has {len}", EscapedPath(path), range.start, range.end)]
    OutOfRange {
        /// The path as it was given.
        path: PathBuf,
        /// The bytes asked for.
        range: Range<u64>,
        /// The length of the source in bytes.
        len: u64,
    },

    /// The file is shorter than when it was opened.
    #[error(
        "{}: cut short while in use: it had {expected} bytes when it was opened and has {found} now, so those from {offset} on are lost",
        EscapedPath(path)
    )]
    CutShort {
        /// The path as it was given.
        path: PathBuf,
        /// The length in bytes when it was opened.
        expected: u64,
        /// The length in bytes now.
        found: u64,
        /// The first byte that is known not to be there (or not to have been there when wanted).
        offset: u64,
    },

    /// The file was written to since it was opened.
    #[error(
        "{}: changed while in use: it had {expected_len} bytes when it was opened, has {found_len} now, and was written to in between",
        EscapedPath(path)
    )]
    Changed {
        /// The path as it was given.
        path: PathBuf,
        /// The length in bytes when it was opened.
        expected_len: u64,
        /// The length in bytes now.
        found_len: u64,
        /// The time of the last write when it was opened, where the system keeps one.
        expected_modified: Option<SystemTime>,
        /// The time of the last write now.
        found_modified: Option<SystemTime>,
    },

    /// A mapped page could not be brought in although the file is long enough now: the medium
    /// failed, or the file was cut short and grew again.
    #[error(
        "{}: bytes from {offset} on were lost while in use: the medium failed, or somebody rewrote the file",
        EscapedPath(path)
    )]
    LostPage {
        /// The path as it was given.
        path: PathBuf,
        /// The first byte of the first page that was lost.
        offset: u64,
    },
}
