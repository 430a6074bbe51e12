//! A source that remembers what it was asked for.

use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::{BoxFuture, RemoteStats, Source, SourceError};

/// A test aid: passes everything on to another source and notes which ranges were asked for.
///
/// What a program reads is behaviour like any other; this makes it testable ("nothing past the head
/// is read", "no byte is read twice"). Every request counts, also one that fails. Looking at a
/// mapping by other ways than [`Source`] is not seen.
///
/// ```
/// use gguf2st_source::{CountingSource, FileSource, Source};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("model.gguf");
/// # std::fs::write(&path, [0; 100])?;
/// let source = CountingSource::new(FileSource::open(&path)?);
/// source.read(0..8)?;
/// source.read_into(8, &mut [0; 16])?;
///
/// assert_eq!(source.ranges(), [0..8, 8..24]);
/// assert_eq!(source.bytes(), 24);
/// assert_eq!(source.furthest(), 24);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct CountingSource<S> {
    inner: S,
    ranges: Mutex<Vec<Range<u64>>>,
}

impl<S> CountingSource<S> {
    /// Begins to count what `inner` is asked for.
    pub fn new(inner: S) -> Self {
        Self { inner, ranges: Mutex::default() }
    }

    /// The ranges asked for so far, in the order of asking, in bytes.
    pub fn ranges(&self) -> Vec<Range<u64>> {
        self.log().clone()
    }

    /// How many requests there were.
    pub fn requests(&self) -> usize {
        self.log().len()
    }

    /// How many bytes were asked for in all; a byte asked for twice counts twice.
    pub fn bytes(&self) -> u64 {
        let lens = |range: &Range<u64>| range.end.saturating_sub(range.start);
        self.log().iter().map(lens).fold(0, u64::saturating_add)
    }

    /// The end of the range that reached furthest; no byte at or after it was asked for.
    pub fn furthest(&self) -> u64 {
        self.log().iter().map(|range| range.end).max().unwrap_or(0)
    }

    /// Forgets all requests so far.
    pub fn reset(&self) {
        self.log().clear();
    }

    /// The source inside.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The source inside, without the counting.
    pub fn into_inner(self) -> S {
        self.inner
    }

    fn log(&self) -> MutexGuard<'_, Vec<Range<u64>>> {
        // A list of ranges is whole after every push: a reader that panicked elsewhere spoils nothing.
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Source> Source for CountingSource<S> {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn name(&self) -> &Path {
        self.inner.name()
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes, SourceError> {
        self.log().push(range.clone());
        self.inner.read(range)
    }

    fn read_into(&self, offset: u64, buf: &mut [u8]) -> Result<(), SourceError> {
        self.log().push(offset..offset.saturating_add(buf.len() as u64));
        self.inner.read_into(offset, buf)
    }

    /// Counts where the source inside fetches; where it does not, its caller reads, and that counts.
    fn fetch(&self, range: Range<u64>) -> Option<BoxFuture<'_, Result<Bytes, SourceError>>> {
        let fetched = self.inner.fetch(range.clone())?;
        self.log().push(range);
        Some(fetched)
    }

    fn intact(&self) -> Result<(), SourceError> {
        self.inner.intact()
    }

    fn is_remote(&self) -> bool {
        self.inner.is_remote()
    }

    fn version(&self) -> String {
        self.inner.version()
    }

    // Not `as_file`: what is copied inside the system would not be counted.

    fn remote_stats(&self) -> Option<RemoteStats> {
        self.inner.remote_stats()
    }

    fn hands_out_views(&self) -> bool {
        self.inner.hands_out_views()
    }

    fn drop_range(&self, range: Range<u64>) {
        self.inner.drop_range(range);
    }
}
