//! A file of a server without ranges: streamed once, no further than it is read, into a temporary file.

use std::fs::File;
use std::future::ready;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::{Buf, Bytes};
use tokio::sync::Mutex;

use super::backoff::Backoff;
use super::{Answer, Body, FIRST, Remote, Trouble, Version, Whole, runtime};
use crate::file::in_memory;
use crate::source::check_range;
use crate::{BoxFuture, RemoteStats, Source, SourceError};

/// What came of a whole file.
pub(super) enum Opened {
    /// It is all there.
    Small(Arc<Remote>, Bytes),
    /// It is read as it is wanted.
    Large(SpoolSource),
}

/// Takes the answer of a server that gives whole files only.
pub(super) async fn open(remote: Arc<Remote>, whole: Whole, limit: u64) -> Result<Opened, SourceError> {
    let Whole { len, etag, modified, body } = whole;
    // What needs no second request needs no ranges either.
    let limit = limit.max(FIRST);
    if limit == FIRST && len.is_some_and(|len| len > FIRST) {
        return Err(SourceError::NoRanges { address: remote.name.clone(), limit: 0 });
    }
    let file = tempfile::tempfile().map_err(|error| remote.spool(error))?;
    let mut spool = Spool { file, filled: 0, coming: Some((0, body)) };
    let len = match len {
        Some(len) => len,
        None => spool.whole(&remote, limit).await?,
    };
    let _ = remote.known.set(Version { len, etag, modified });
    if len <= FIRST {
        let first = spool.get(&remote, 0..len).await?;
        return Ok(Opened::Small(remote, first));
    }
    Ok(Opened::Large(SpoolSource { remote, limit, spool: Arc::new(Mutex::new(spool)) }))
}

/// The temporary file, and the answer that fills it.
struct Spool {
    file: File,
    /// How many bytes from the file's start are there.
    filled: u64,
    /// The offset of the next byte of a body, and the body.
    coming: Option<(u64, Box<dyn Body>)>,
}

impl Spool {
    /// The bytes of `range`, once all up to its end are there.
    async fn get(&mut self, remote: &Remote, range: Range<u64>) -> Result<Bytes, SourceError> {
        let mut backoff = Backoff::new(remote.retry);
        while self.filled < range.end {
            let before = self.filled;
            let outcome = self.more(remote).await;
            backoff.progress(self.filled - before);
            if let Err(trouble) = outcome {
                self.coming = None;
                remote.recover(trouble, &mut backoff, self.filled..range.end).await?;
            }
        }
        self.read(&range).map(Bytes::from).map_err(|error| remote.spool(error))
    }

    /// The next piece, of the answer that is there or of a new one.
    async fn more(&mut self, remote: &Remote) -> Result<(), Trouble> {
        let (mut at, mut body) = match self.coming.take() {
            Some(coming) => coming,
            None => self.again(remote).await?,
        };
        let Some(mut piece) = body.next().await? else {
            return Err(Trouble::passing(format!("the answer ended {} bytes early", remote.len() - at)));
        };
        remote.counters.bytes.fetch_add(piece.len() as u64, Ordering::Relaxed);
        // A new answer begins with what is there already …
        let known = in_memory(&(0..self.filled.saturating_sub(at))).len().min(piece.len());
        at = at.saturating_add(piece.len() as u64);
        piece.advance(known);
        // … and one that goes on after the file's end is not listened to.
        piece.truncate(in_memory(&(self.filled..remote.len())).len());
        self.write(&piece).map_err(|error| Trouble::Lasting(remote.spool(error)))?;
        if at < remote.len() {
            self.coming = Some((at, body));
        }
        Ok(())
    }

    /// Asks for the file again after an answer broke off.
    async fn again(&mut self, remote: &Remote) -> Result<(u64, Box<dyn Body>), Trouble> {
        match remote.origin.get(self.filled..remote.len(), &remote.counters).await? {
            Answer::Whole(Whole { len, etag, modified, body }) => {
                remote.expect(Version { len: len.unwrap_or(remote.len()), etag, modified })?;
                Ok((0, body))
            }
            Answer::Part { range, version, body } if range.start <= self.filled => {
                remote.expect(version)?;
                Ok((range.start, body))
            }
            Answer::Part { .. } => Err(remote.unusable("it has other bytes than were asked for")),
            Answer::Outside { version } => {
                remote.expect(version)?;
                Err(remote.unusable("bytes inside the file are said to be outside"))
            }
        }
    }

    /// All of a file whose length is not known before its end; gives that. It can't be gone on with where it
    /// breaks off: nothing would show that it is the same file.
    async fn whole(&mut self, remote: &Remote, limit: u64) -> Result<u64, SourceError> {
        let Some((_, mut body)) = self.coming.take() else {
            return Ok(self.filled);
        };
        loop {
            let piece = match body.next().await {
                Ok(Some(piece)) => piece,
                Ok(None) => return Ok(self.filled),
                Err(Trouble::Lasting(error)) => return Err(error),
                Err(Trouble::Passing { reason, .. }) => {
                    let range = self.filled..limit;
                    return Err(SourceError::Fetch { address: remote.name.clone(), range, reason, attempts: 1 });
                }
            };
            remote.counters.bytes.fetch_add(piece.len() as u64, Ordering::Relaxed);
            if piece.len() as u64 > limit - self.filled {
                return Err(SourceError::NoRanges { address: remote.name.clone(), limit });
            }
            self.write(&piece).map_err(|error| remote.spool(error))?;
        }
    }

    // The position is set each time: reading moves it too.

    fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.filled))?;
        self.file.write_all(piece)?;
        self.filled += piece.len() as u64;
        Ok(())
    }

    fn read(&mut self, range: &Range<u64>) -> io::Result<Vec<u8>> {
        let len = in_memory(&(range.start..range.end)).len();
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        bytes.resize(len, 0);
        self.file.seek(SeekFrom::Start(range.start))?;
        self.file.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

impl Remote {
    fn spool(&self, error: io::Error) -> SourceError {
        SourceError::Spool { address: self.name.clone(), error }
    }
}

/// A file of a server without ranges. One answer serves all reads, so they wait for one another.
pub(super) struct SpoolSource {
    remote: Arc<Remote>,
    /// How many bytes may be kept.
    limit: u64,
    spool: Arc<Mutex<Spool>>,
}

impl SpoolSource {
    fn check(&self, range: &Range<u64>) -> Result<(), SourceError> {
        check_range(self, range)?;
        self.remote.intact()?;
        if range.end > self.limit {
            return Err(SourceError::NoRanges { address: self.remote.name.clone(), limit: self.limit });
        }
        Ok(())
    }

    fn reading(&self, range: Range<u64>) -> impl Future<Output = Result<Bytes, SourceError>> + Send + 'static {
        let (remote, spool) = (Arc::clone(&self.remote), Arc::clone(&self.spool));
        async move { spool.lock().await.get(&remote, range).await }
    }
}

impl std::fmt::Debug for SpoolSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SpoolSource").field("remote", &self.remote).field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl Source for SpoolSource {
    fn len(&self) -> u64 {
        self.remote.len()
    }

    fn name(&self) -> &Path {
        &self.remote.name
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes, SourceError> {
        self.check(&range)?;
        runtime::wait(self.reading(range))
    }

    fn read_into(&self, offset: u64, buf: &mut [u8]) -> Result<(), SourceError> {
        buf.copy_from_slice(&self.read(offset..offset.saturating_add(buf.len() as u64))?);
        Ok(())
    }

    fn fetch(&self, range: Range<u64>) -> Option<BoxFuture<'_, Result<Bytes, SourceError>>> {
        Some(match self.check(&range) {
            Ok(()) => Box::pin(runtime::elsewhere(self.reading(range))),
            Err(error) => Box::pin(ready(Err(error))),
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
