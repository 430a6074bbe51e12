//! What a user typed: a path, or an address of a kind that is known here.

mod address;

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(feature = "object-store")]
pub(crate) use address::Bucket;
pub(crate) use address::Kind;
#[cfg(feature = "ollama")]
pub(crate) use address::Ollama;
#[cfg(feature = "http")]
pub(crate) use address::Web;
#[cfg(feature = "hub")]
pub(crate) use address::{Hub, encode};

use crate::{EscapedPath, FileSource, Local, MmapSource, OpenOptions, Source, SourceError};

/// Where a model is, as a user types it.
///
/// | typed | what it is | feature |
/// | --- | --- | --- |
/// | anything else | a path | |
/// | `file:///PATH` | a path | |
/// | `http://HOST/PATH`, `https://…` | a server that answers ranges | `http` |
/// | `s3://BUCKET/KEY`, `gs://BUCKET/KEY`, `az://CONTAINER/KEY` | an object store | `object-store` |
/// | `hf://OWNER/REPO/FILE[@REVISION]` | a file of the Hugging Face Hub, or of its cache here | `hub` |
/// | `ollama://[[HOST/]NAMESPACE/]MODEL[:TAG]` | a model in Ollama's store here | `ollama` |
///
/// Understanding an address needs no feature; opening it does. A path that looks like an address is
/// typed with `./` before it.
///
/// # What is shown
///
/// `Display`, `Debug`, [`Source::name`] and all errors show an address without user name, password, query
/// and fragment: links that are signed hold their signature there.
///
/// ```
/// use gguf2st_source::Location;
///
/// let location = Location::parse("https://me:secret@example.org/m-00001-of-00002.gguf?Signature=0123")?;
/// assert_eq!(location.to_string(), "https://example.org/m-00001-of-00002.gguf");
/// assert_eq!(location.sibling("m-00002-of-00002.gguf"), None); // the signature is for one file
///
/// let location = Location::parse("hf://owner/repo/sub/m-00001-of-00002.gguf@v1.0")?;
/// assert_eq!(location.file_name().as_deref(), Some("m-00001-of-00002.gguf"));
/// let second = location.sibling("m-00002-of-00002.gguf").expect("same repository, same revision");
/// assert_eq!(second.to_string(), "hf://owner/repo/sub/m-00002-of-00002.gguf@v1.0");
///
/// assert!(Location::parse("models/m.gguf")?.as_path().is_some());
/// # Ok::<(), gguf2st_source::SourceError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Location(Kind);

impl Location {
    /// Understands what was typed.
    ///
    /// # Errors
    ///
    /// [`SourceError::Address`] for what begins like an address of a known kind and goes on otherwise.
    pub fn parse(typed: impl AsRef<OsStr>) -> Result<Self, SourceError> {
        Kind::parse(typed.as_ref()).map(Self)
    }

    /// The path, if it is one: what is typed as a path, or as `file://`.
    pub fn as_path(&self) -> Option<&Path> {
        match &self.0 {
            Kind::Path(path) => Some(path),
            _ => None,
        }
    }

    /// The last component, decoded: `model.gguf`.
    ///
    /// `None` if there is none, if it is not text, and for Ollama's names, which stand for no file.
    pub fn file_name(&self) -> Option<Cow<'_, str>> {
        self.0.file_name()
    }

    /// The same place with another last component, for the parts of a split set.
    ///
    /// `None` if the name is not that of a file (empty, `..`, with a separator), for Ollama's names, and for
    /// links with a query: a signature in it is for one file, and what else it may mean isn't known.
    pub fn sibling(&self, file_name: &str) -> Option<Self> {
        let odd = |c: char| matches!(c, '/' | '\\') || c.is_control();
        if matches!(file_name, "" | "." | "..") || file_name.contains(odd) {
            return None;
        }
        self.0.sibling(file_name).map(Self)
    }

    /// Opens it. Blocks until the length is known; a remote source has its first 256 KiB by then.
    ///
    /// Files in the caches of other programs are opened as what they are: local files, called by their
    /// paths.
    ///
    /// # Errors
    ///
    /// As [`FileSource::open`] for what is local. [`SourceError::FeatureOff`] for kinds that were not built
    /// in, [`SourceError::Setup`] for what is missing around it, and for what a server may do:
    /// [`SourceError::Refused`], [`SourceError::Fetch`], [`SourceError::Answer`], [`SourceError::NoRanges`].
    pub fn open(&self, options: &OpenOptions) -> Result<Arc<dyn Source>, SourceError> {
        match &self.0 {
            Kind::Path(path) => open_path(path, options.local),

            #[cfg(feature = "http")]
            Kind::Web(web) => crate::remote::open_web(self.shown(), web, options),
            #[cfg(not(feature = "http"))]
            Kind::Web(_) => Err(self.feature_off("http")),

            #[cfg(feature = "object-store")]
            Kind::Bucket(bucket) => crate::remote::open_bucket(self.shown(), bucket, options),
            #[cfg(not(feature = "object-store"))]
            Kind::Bucket(_) => Err(self.feature_off("object-store")),

            #[cfg(feature = "hub")]
            Kind::Hub(hub) => crate::hub::open(self.shown(), hub, options),
            #[cfg(not(feature = "hub"))]
            Kind::Hub(_) => Err(self.feature_off("hub")),

            #[cfg(feature = "ollama")]
            Kind::Ollama(ollama) => crate::ollama::open(self.shown(), ollama, options),
            #[cfg(not(feature = "ollama"))]
            Kind::Ollama(_) => Err(self.feature_off("ollama")),
        }
    }

    /// The address as it may be shown, but for [`EscapedPath`].
    fn shown(&self) -> PathBuf {
        self.0.shown()
    }

    #[cfg(not(all(feature = "http", feature = "object-store", feature = "hub", feature = "ollama")))]
    fn feature_off(&self, feature: &'static str) -> SourceError {
        SourceError::FeatureOff { address: self.shown(), feature }
    }
}

/// Opens a file on this machine.
pub(crate) fn open_path(path: &Path, local: Local) -> Result<Arc<dyn Source>, SourceError> {
    if local == Local::Mmap {
        match MmapSource::open(path) {
            Err(SourceError::Map { .. }) => {}
            other => return other.map(|it| Arc::new(it) as _),
        }
    }
    Ok(Arc::new(FileSource::open(path)?))
}

impl From<PathBuf> for Location {
    /// A path, whatever it looks like.
    fn from(path: PathBuf) -> Self {
        Self(Kind::Path(path))
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        EscapedPath(&self.shown()).fmt(f)
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Location({self})")
    }
}
