//! Sources behind a network: one server's file by ranges, asked for again where that helps.
//!
//! What differs between servers is an [`Origin`]: one request, one answer. What must hold for all of them is
//! here: that an answer is of the file that was opened and of the bytes that were asked for, that an
//! interrupted one is continued at the byte reached, and that somebody counts.

mod backoff;
mod client;
mod http;
#[cfg(feature = "object-store")]
mod object;
mod runtime;
mod spool;

use std::fmt;
use std::future::ready;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;

use self::backoff::Backoff;
#[cfg(feature = "hub")]
pub(crate) use self::http::Secret;
pub(crate) use self::http::{HttpOrigin, hints};
use crate::file::in_memory;
#[cfg(feature = "object-store")]
use crate::location::Bucket;
use crate::location::Web;
use crate::source::check_range;
use crate::{BoxFuture, EscapedPath, OpenOptions, RemoteStats, Retry, Source, SourceError};

/// What the first request asks for, and keeps: most heads need no second one.
const FIRST: u64 = 256 << 10;

/// How many bytes count as progress, so that a server that gives a byte at a time is not asked forever.
const PROGRESS: u64 = 16 << 10;

/// Opens an address of the web.
pub(crate) fn open_web(name: PathBuf, web: &Web, options: &OpenOptions) -> Result<Arc<dyn Source>, SourceError> {
    let origin = HttpOrigin::new(name.clone(), web, hints::WEB, options)?;
    open(name, Box::new(origin), options)
}

/// Opens an object of a store.
#[cfg(feature = "object-store")]
pub(crate) fn open_bucket(
    name: PathBuf,
    bucket: &Bucket,
    options: &OpenOptions,
) -> Result<Arc<dyn Source>, SourceError> {
    let origin = object::ObjectOrigin::new(name.clone(), bucket, options)?;
    open(name, Box::new(origin), options)
}

/// Opens what an origin has.
pub(crate) fn open(
    name: PathBuf,
    origin: Box<dyn Origin>,
    options: &OpenOptions,
) -> Result<Arc<dyn Source>, SourceError> {
    runtime::start().map_err(|error| SourceError::Open { path: name.clone(), error })?;
    let remote = Arc::new(Remote {
        name,
        origin,
        retry: options.retry,
        known: OnceLock::new(),
        replaced: OnceLock::new(),
        counters: Counters::default(),
    });
    let limit = options.no_ranges.limit();
    runtime::wait(async move {
        let mut first = Vec::new();
        let whole = remote.fill(0..FIRST, &mut first).await?;
        let Some(whole) = whole else {
            return Ok(Arc::new(RemoteSource { remote, first: first.into() }) as _);
        };
        match spool::open(remote, whole, limit).await? {
            spool::Opened::Small(remote, first) => Ok(Arc::new(RemoteSource { remote, first }) as _),
            spool::Opened::Large(source) => Ok(Arc::new(source) as _),
        }
    })
}

/// One way of asking a server for a range of one file.
pub(crate) trait Origin: Send + Sync + fmt::Debug {
    /// Sends one request for `range`, which is not empty and may end after the file.
    ///
    /// The answer need not be of that range; the caller looks.
    fn get<'a>(&'a self, range: Range<u64>, counters: &'a Counters) -> BoxFuture<'a, Result<Answer, Trouble>>;
}

/// What a server answered.
pub(crate) enum Answer {
    /// Some bytes of the file.
    Part { range: Range<u64>, version: Version, body: Box<dyn Body> },
    /// All of the file, because the server knows no ranges.
    Whole(Whole),
    /// There is no such range in a file of this length.
    Outside { version: Version },
}

/// An answer that holds all of the file.
pub(crate) struct Whole {
    /// The length, if the server says it in advance.
    len: Option<u64>,
    etag: Option<String>,
    modified: Option<String>,
    body: Box<dyn Body>,
}

/// The bytes of an answer, as they come in.
pub(crate) trait Body: Send {
    /// The next piece; `None` at the end.
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, Trouble>>;
}

/// Which file it is that bytes are of.
#[derive(Debug)]
pub(crate) struct Version {
    len: u64,
    etag: Option<String>,
    modified: Option<String>,
}

impl Version {
    /// What tells the two apart: its name, and what it is in both, to be shown. Two versions without any mark
    /// are told apart by their lengths alone.
    fn difference(&self, found: &Self) -> Option<(&'static str, String, String)> {
        let shown = |mark: &Option<String>| mark.as_deref().map_or_else(|| "absent".to_owned(), shown);
        // The server calls a weak tag weak for byte ranges, but a differing one differs all the more.
        let strong = |tag: &Option<String>| tag.as_deref().map(|tag| tag.trim_start_matches("W/").to_owned());
        if self.len != found.len {
            Some(("length", self.len.to_string(), found.len.to_string()))
        } else if self.etag.is_some() && strong(&self.etag) != strong(&found.etag) {
            Some(("ETag", shown(&self.etag), shown(&found.etag)))
        } else if self.etag.is_none() && self.modified.is_some() && self.modified != found.modified {
            Some(("Last-Modified", shown(&self.modified), shown(&found.modified)))
        } else {
            None
        }
    }
}

/// What a server said, fit to be shown.
fn shown(said: &str) -> String {
    EscapedPath(Path::new(said)).to_string().chars().take(200).collect()
}

/// Why a request brought nothing, or not all.
pub(crate) enum Trouble {
    /// Asking again may help, after the time that the server wants.
    Passing { reason: String, after: Option<Duration> },
    /// Asking again will not help.
    Lasting(SourceError),
}

impl Trouble {
    fn passing(reason: impl Into<String>) -> Self {
        Self::Passing { reason: reason.into(), after: None }
    }
}

/// What is counted; see [`RemoteStats`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    requests: AtomicU64,
    retries: AtomicU64,
    bytes: AtomicU64,
}

impl Counters {
    fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    fn stats(&self) -> RemoteStats {
        RemoteStats {
            requests: self.requests.load(Ordering::Relaxed),
            retries: self.retries.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }
}

/// A file of an origin, and what is known about it.
#[derive(Debug)]
struct Remote {
    name: PathBuf,
    origin: Box<dyn Origin>,
    retry: Retry,
    /// Set by the first answer.
    known: OnceLock<Version>,
    /// What was found to be different, once it was.
    replaced: OnceLock<(&'static str, String, String)>,
    counters: Counters,
}

impl Remote {
    /// The length in bytes; 0 before the first answer.
    fn len(&self) -> u64 {
        self.known.get().map_or(0, |version| version.len)
    }

    /// What the server tells this version of the file by.
    fn version(&self) -> String {
        match self.known.get() {
            Some(Version { etag: Some(etag), .. }) => format!("ETag {}", shown(etag)),
            Some(Version { modified: Some(modified), .. }) => format!("Last-Modified {}", shown(modified)),
            _ => String::new(),
        }
    }

    /// Appends the bytes of `range` to `buf`; of the very first range what there is of it.
    ///
    /// Gives back the answer of a server that has no ranges, if nothing was read before.
    async fn fill(&self, range: Range<u64>, buf: &mut Vec<u8>) -> Result<Option<Whole>, SourceError> {
        buf.try_reserve_exact(in_memory(&range).len()).map_err(|_| {
            let error = io::ErrorKind::OutOfMemory.into();
            SourceError::Read { path: self.name.clone(), range: range.clone(), error }
        })?;
        let mut backoff = Backoff::new(self.retry);
        let (mut at, mut end) = (range.start, range.end);
        while at < end {
            let before = at;
            let outcome = self.attempt(&mut at, &mut end, buf).await;
            backoff.progress(at - before);
            match outcome {
                Ok(None) => {}
                Ok(Some(whole)) => return Ok(Some(whole)),
                Err(trouble) => self.recover(trouble, &mut backoff, at..end).await?,
            }
        }
        Ok(None)
    }

    /// One request for what is missing of `at..end`; moves `at` by what came.
    async fn attempt(&self, at: &mut u64, end: &mut u64, buf: &mut Vec<u8>) -> Result<Option<Whole>, Trouble> {
        let (range, version, mut body) = match self.origin.get(*at..*end, &self.counters).await? {
            Answer::Part { range, version, body } => (range, version, body),
            Answer::Whole(whole) if self.known.get().is_none() => return Ok(Some(whole)),
            Answer::Whole(_) => return Err(self.unusable("it had ranges before and has none now")),
            Answer::Outside { version } => {
                // What is empty has no first byte.
                let empty = version.len == 0 && *at == 0;
                self.expect(version)?;
                *end = self.len().min(*end);
                return if empty || at == end {
                    Ok(None)
                } else {
                    Err(self.unusable("bytes inside the file are said to be outside"))
                };
            }
        };
        if range.start != *at || range.end > *end || range.end > version.len || range.is_empty() {
            let answer = format!(
                "bytes {} to {} of {} are not those asked for, {at} to {end}",
                range.start, range.end, version.len
            );
            return Err(self.unusable(answer));
        }
        self.expect(version)?;
        *end = self.len().min(*end);
        while *at < range.end {
            let Some(mut piece) = body.next().await? else {
                return Err(Trouble::passing(format!("the answer ended {} bytes early", range.end - *at)));
            };
            // Who sends more than was asked for is not listened to.
            piece.truncate(in_memory(&(*at..range.end)).len());
            self.counters.bytes.fetch_add(piece.len() as u64, Ordering::Relaxed);
            buf.extend_from_slice(&piece);
            *at += piece.len() as u64;
        }
        Ok(None)
    }

    /// Whether an answer is of the file that was opened.
    fn expect(&self, found: Version) -> Result<(), Trouble> {
        let known = match self.known.get() {
            Some(known) => known,
            None => {
                let _ = self.known.set(found);
                return Ok(());
            }
        };
        match known.difference(&found) {
            None => Ok(()),
            Some(difference) => {
                let _ = self.replaced.set(difference);
                self.intact().map_err(Trouble::Lasting)
            }
        }
    }

    /// Waits before the next attempt, or gives up.
    async fn recover(&self, trouble: Trouble, backoff: &mut Backoff, wanted: Range<u64>) -> Result<(), SourceError> {
        let (reason, after) = match trouble {
            Trouble::Lasting(error) => return Err(error),
            Trouble::Passing { reason, after } => (reason, after),
        };
        match backoff.next(after) {
            Ok(wait) => tokio::time::sleep(wait).await,
            Err(attempts) => {
                return Err(SourceError::Fetch { address: self.name.clone(), range: wanted, reason, attempts });
            }
        }
        self.counters.retries.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// That nothing was seen of another version. Asks nobody: every answer was looked at as it came.
    fn intact(&self) -> Result<(), SourceError> {
        match self.replaced.get().cloned() {
            None => Ok(()),
            Some((what, expected, found)) => {
                Err(SourceError::Replaced { address: self.name.clone(), what, expected, found })
            }
        }
    }

    fn unusable(&self, reason: impl Into<String>) -> Trouble {
        Trouble::Lasting(SourceError::Answer { address: self.name.clone(), reason: reason.into() })
    }
}

/// A file of a server that has ranges, or one that is so small that it needs none.
///
/// Its blocking methods wait for the crate's own runtime and may be called from any thread that may
/// block, which a worker of an async runtime may not: await [`Source::fetch`] there.
#[derive(Debug)]
struct RemoteSource {
    remote: Arc<Remote>,
    /// The file's first bytes.
    first: Bytes,
}

impl RemoteSource {
    /// The bytes of the range, if they are here already.
    fn here(&self, range: &Range<u64>) -> Option<Bytes> {
        (range.end <= self.first.len() as u64).then(|| self.first.slice(in_memory(range)))
    }

    /// What reads the range, free of `self`: what is here, and then what isn't.
    fn reading(&self, range: Range<u64>) -> impl Future<Output = Result<Bytes, SourceError>> + Send + 'static {
        let have = self.first.len() as u64;
        let head = self.first.slice(in_memory(&(range.start.min(have)..have)));
        let remote = Arc::clone(&self.remote);
        async move {
            let mut bytes = head.to_vec();
            remote.fill(range.start.max(have)..range.end, &mut bytes).await?;
            Ok(bytes.into())
        }
    }
}

impl Source for RemoteSource {
    fn len(&self) -> u64 {
        self.remote.len()
    }

    fn name(&self) -> &Path {
        &self.remote.name
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes, SourceError> {
        check_range(self, &range)?;
        self.remote.intact()?;
        self.here(&range).map_or_else(|| runtime::wait(self.reading(range.clone())), Ok)
    }

    fn read_into(&self, offset: u64, buf: &mut [u8]) -> Result<(), SourceError> {
        buf.copy_from_slice(&self.read(offset..offset.saturating_add(buf.len() as u64))?);
        Ok(())
    }

    fn fetch(&self, range: Range<u64>) -> Option<BoxFuture<'_, Result<Bytes, SourceError>>> {
        if let Err(error) = check_range(self, &range).and_then(|()| self.remote.intact()) {
            return Some(Box::pin(ready(Err(error))));
        }
        Some(match self.here(&range) {
            Some(bytes) => Box::pin(ready(Ok(bytes))),
            None => Box::pin(runtime::elsewhere(self.reading(range))),
        })
    }

    fn intact(&self) -> Result<(), SourceError> {
        self.remote.intact()
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn version(&self) -> String {
        self.remote.version()
    }

    fn remote_stats(&self) -> Option<RemoteStats> {
        Some(self.remote.counters.stats())
    }
}
