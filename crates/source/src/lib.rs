//! Where a model's bytes come from: a length, and any range of it.
//!
//! Readers of containers ask for ranges and know nothing of files. This crate owns the [`Source`]
//! they ask, its kinds, the addresses that lead to them, and what can go wrong. It knows no format: what
//! the bytes mean is its callers' business.
//!
//! | kind | how it reads | when somebody shortens the file meanwhile |
//! | --- | --- | --- |
//! | [`FileSource`] | positional reads into a buffer | the read is a [`SourceError::CutShort`] |
//! | [`MmapSource`] | a mapping, handed out without a copy | lost bytes read as zeros, and [`Source::intact`] is an error; never SIGBUS |
//! | [`CountingSource`] | through another source | as that one; for tests, it notes what was asked for |
//! | what [`Location::open`] gives for a remote address | requests for ranges, again where that helps | the read, and everything after it, is a [`SourceError::Replaced`] |
//!
//! [`Location`] lists the addresses and the cargo features that they need. Environment variables:
//! `HF_ENDPOINT`, `HF_TOKEN`, `HUGGING_FACE_HUB_TOKEN`, `HF_TOKEN_PATH`, `HF_HOME`, `HF_HUB_CACHE`, `HF_HUB_OFFLINE`
//! (feature `hub`); `OLLAMA_MODELS` (`ollama`); those of the `object_store` crate, `AWS_…`, `GOOGLE_…` and `AZURE_…`
//! (`object-store`); the usual ones for proxies (`http`).
//!
//! A remote source never mixes two versions of a file: the first answer's ETag (or else Last-Modified) and
//! length must be those of every later one. Its methods other than [`Source::fetch`] block on the crate's own
//! runtime, from any thread that may block; where none may, await `fetch`.
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
