//! What can go wrong with a source.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::time::SystemTime;

use crate::EscapedPath;

/// Why a source could not be opened, read or trusted.
///
/// Each message is one line, says which file it is about (escaped, see [`EscapedPath`]) and includes
/// the system's own words where there are any; `source()` is therefore always `None`. Remote sources are
/// called by their addresses without credentials, query and fragment (see [`Location`](crate::Location)),
/// and nothing else that a message holds shows those either.
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

    /// What was typed begins like an address of a known kind but is none.
    #[error("{}: not an address: {reason}", EscapedPath(address))]
    Address {
        /// As much of it as can be shown.
        address: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },

    /// The address is of a kind that this program was built without.
    #[error(
        "{}: this program was built without addresses of this kind (feature `{feature}` of gguf2st-source)",
        EscapedPath(address)
    )]
    FeatureOff {
        /// The address, redacted.
        address: PathBuf,
        /// The cargo feature that is missing.
        feature: &'static str,
    },

    /// Something that the address needs besides itself is missing or wrong: a variable of the
    /// environment, a token, a store on this machine.
    #[error("{}: {reason}", EscapedPath(address))]
    Setup {
        /// The address, redacted.
        address: PathBuf,
        /// What is wrong.
        reason: String,
    },

    /// The server understood and said no; asking again would not help.
    #[error("{}: the server refuses with status {status}: {hint}", EscapedPath(address))]
    Refused {
        /// The address, redacted.
        address: PathBuf,
        /// The status of HTTP: 401, 403, 404, …
        status: u16,
        /// What it most likely means.
        hint: &'static str,
    },

    /// The server could not be reached, or broke off, again and again.
    #[error(
        "{}: bytes {} to {} cannot be fetched: {reason} ({attempts} attempts)",
        EscapedPath(address), range.start, range.end
    )]
    Fetch {
        /// The address, redacted.
        address: PathBuf,
        /// The bytes that were still wanted.
        range: Range<u64>,
        /// What went wrong the last time.
        reason: String,
        /// How many requests there were since the last progress.
        attempts: u32,
    },

    /// The server's answer contradicts the request, itself or an earlier one.
    #[error("{}: the server's answer can't be used: {reason}", EscapedPath(address))]
    Answer {
        /// The address, redacted.
        address: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// The server gives whole files only, and this one is not to be kept in a temporary file that far.
    #[error(
        "{}: the server has no ranges, and only the first {limit} bytes may be kept in a temporary file; download the file instead",
        EscapedPath(address)
    )]
    NoRanges {
        /// The address, redacted.
        address: PathBuf,
        /// How many bytes may be kept; see [`NoRanges`](crate::NoRanges).
        limit: u64,
    },

    /// The server gives whole files only, and the temporary file for it could not be written or read.
    #[error("{}: the server has no ranges, and the temporary file for its bytes failed: {error}", EscapedPath(address))]
    Spool {
        /// The address, redacted.
        address: PathBuf,
        /// What the system said: no space left, for example.
        error: io::Error,
    },

    /// What the address leads to is not what it led to when it was opened.
    #[error(
        "{}: changed while in use: its {what} was {expected} when it was opened and is {found} now",
        EscapedPath(address)
    )]
    Replaced {
        /// The address, redacted.
        address: PathBuf,
        /// What differs: `ETag`, `Last-Modified`, `length`.
        what: &'static str,
        /// What it was; escaped.
        expected: String,
        /// What it is; escaped.
        found: String,
    },
}
