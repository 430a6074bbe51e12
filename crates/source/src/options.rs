//! How to open a location.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
#[cfg(any(feature = "hub", feature = "ollama"))]
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How [`Location::open`](crate::Location::open) goes about it.
///
/// ```
/// use gguf2st_source::{Local, OpenOptions};
///
/// let options = OpenOptions { local: Local::Mmap, ..OpenOptions::default() };
/// assert_eq!(options.retry.attempts, 6);
/// ```
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// How files on this machine are read.
    pub local: Local,
    /// When a remote source asks again.
    pub retry: Retry,
    /// What to do with a server that gives whole files only.
    pub no_ranges: NoRanges,
    /// Where tokens, endpoints and places of stores are looked up.
    pub environment: Environment,
}

/// How files on this machine are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Local {
    /// By positional reads: [`FileSource`](crate::FileSource).
    #[default]
    Read,
    /// By a mapping: [`MmapSource`](crate::MmapSource), or plain reads where the file can't be mapped.
    Mmap,
}

/// When a remote source asks again: after answers of the kinds 429 and 5xx, failed connections, broken
/// bodies and silence.
///
/// It goes on at the byte that it had reached. The wait doubles from attempt to attempt and is shortened
/// by up to half at random, so that many readers do not come back together; a server's `Retry-After` can
/// lengthen it, to a minute at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// How many requests there may be without progress (16 KiB, or all that was wanted) before it is an
    /// error; at least one is sent.
    pub attempts: u32,
    /// The wait before the second attempt.
    pub first_wait: Duration,
    /// What the waits grow to.
    pub longest_wait: Duration,
    /// How long a server may be silent, between two pieces of a body too. There is no bound on how long
    /// a whole answer may take.
    pub silence: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            attempts: 6,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(20),
            silence: Duration::from_secs(30),
        }
    }
}

/// What to do with a server that ignores ranges and gives whole files only.
///
/// Files of up to 256 KiB need no ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRanges {
    /// Refuse.
    Refuse,
    /// Stream the file once, no further than it is read, into a temporary file without a name (in the
    /// folder that `TMPDIR` names) from which reads are answered.
    Spool {
        /// How many bytes may be kept. What lies after them can't be read.
        limit: u64,
    },
}

impl Default for NoRanges {
    /// Keeps up to 4 GiB.
    fn default() -> Self {
        Self::Spool { limit: 4 << 30 }
    }
}

impl NoRanges {
    #[cfg(feature = "http")]
    pub(crate) fn limit(self) -> u64 {
        match self {
            Self::Refuse => 0,
            Self::Spool { limit } => limit,
        }
    }
}

/// The environment variables that a source may look at: the process's own, or a given set.
///
/// An empty variable is taken for one that is not set. `Debug` shows names and no values.
///
/// ```
/// use gguf2st_source::Environment;
///
/// let environment = Environment::only([("HF_TOKEN", "hf_secret"), ("HF_ENDPOINT", "https://hub.example")]);
/// assert!(!format!("{environment:?}").contains("secret"));
/// ```
#[derive(Clone, Default)]
pub struct Environment(Option<Arc<BTreeMap<OsString, OsString>>>);

impl Environment {
    /// The process's own, looked at when a source is opened.
    pub fn process() -> Self {
        Self(None)
    }

    /// These variables and no others.
    pub fn only<K: Into<OsString>, V: Into<OsString>>(variables: impl IntoIterator<Item = (K, V)>) -> Self {
        Self(Some(Arc::new(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())))
    }
}

#[cfg(any(feature = "hub", feature = "ollama", feature = "object-store"))]
impl Environment {
    /// The variable's value, if it is set.
    pub(crate) fn get(&self, name: &str) -> Option<OsString> {
        let value = match &self.0 {
            None => std::env::var_os(name),
            Some(variables) => variables.get(std::ffi::OsStr::new(name)).cloned(),
        };
        value.filter(|value| !value.is_empty())
    }

    /// The variable's value as text.
    #[cfg(any(feature = "hub", feature = "object-store"))]
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.get(name)?.into_string().ok()
    }

    /// The variable's value as a path.
    #[cfg(any(feature = "hub", feature = "ollama"))]
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }

    /// The user's own folder.
    #[cfg(any(feature = "hub", feature = "ollama"))]
    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.path("HOME").or_else(|| self.path("USERPROFILE"))
    }

    /// All variables that are text and whose names begin with `prefix`.
    #[cfg(feature = "object-store")]
    pub(crate) fn all(&self, prefix: &str) -> Vec<(String, String)> {
        let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        let wanted = |(name, value): &(String, String)| name.starts_with(prefix) && !value.is_empty();
        match &self.0 {
            None => std::env::vars_os().filter_map(text).filter(wanted).collect(),
            Some(given) => given.iter().map(|(k, v)| (k.clone(), v.clone())).filter_map(text).filter(wanted).collect(),
        }
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("Environment(process)"),
            Some(variables) => f.debug_set().entries(variables.keys()).finish(),
        }
    }
}
