//! Where a model's bytes come from: a length, and any range of it.
//!
//! Readers of containers ask for ranges and know nothing of files. This crate owns the [`Source`]
//! they ask, its local kinds, and what can go wrong with them. It knows no format: what the bytes
//! mean is its callers' business.
//!
//! | kind | how it reads | when somebody shortens the file meanwhile |
//! | --- | --- | --- |
//! | [`FileSource`] | positional reads into a buffer | the read is a [`SourceError::CutShort`] |
//! | [`MmapSource`] | a mapping, handed out without a copy | lost bytes read as zeros, and [`Source::intact`] is an error; never SIGBUS |
//! | [`CountingSource`] | through another source | as that one; for tests, it notes what was asked for |
//!
//! ```
//! use gguf2st_source::{FileSource, MmapSource, Source, SourceError};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("model.gguf");
//! # std::fs::write(&path, b"GGUF\x03\0\0\0")?;
//! /// The version word: works with every kind of source.
//! fn version(source: &dyn Source) -> Result<u32, SourceError> {
//!     let mut word = [0; 4];
//!     source.read_into(4, &mut word)?;
//!     source.intact()?; // nobody touched the file while we looked
//!     Ok(u32::from_le_bytes(word))
//! }
//!
//! assert_eq!(version(&FileSource::open(&path)?)?, 3);
//! assert_eq!(version(&MmapSource::open(&path)?)?, 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)] // allowed in `mmap` and `sigbus` only

mod counting;
mod error;
mod escape;
mod file;
#[cfg(feature = "hub")]
mod hub;
mod location;
mod mmap;
#[cfg(feature = "ollama")]
mod ollama;
mod options;
mod os;
#[cfg(feature = "http")]
mod remote;
#[cfg(unix)]
mod sigbus;
mod source;
mod stats;

pub use counting::CountingSource;
pub use error::SourceError;
pub use escape::EscapedPath;
pub use file::FileSource;
pub use location::Location;
pub use mmap::MmapSource;
pub use options::{Environment, Local, NoRanges, OpenOptions, Retry};
pub use source::{BoxFuture, Source};
pub use stats::RemoteStats;
