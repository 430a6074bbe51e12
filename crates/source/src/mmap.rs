//! A local file, mapped.
#![allow(unsafe_code)] // making the mapping

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use memmap2::{Mmap, MmapOptions};

use crate::file::in_memory;
use crate::source::check_range;
use crate::{FileSource, Source, SourceError, os};

/// A local file, mapped read-only: its bytes without a copy.
///
/// # When the file changes
///
/// A mapping shows the file, not a copy of it, and somebody else may shorten the file. Touching a
/// page that is gone would end the process by SIGBUS; here it does not. The rest of the mapping, from
/// that page on, turns to zeros, and from then on [`read`](Source::read) and [`intact`](Source::intact)
/// are errors. So bytes are only as good as `intact` says *after* their last use, and code that looks
/// at them must stand it that they change while it looks (never panic, never index by a number that it
/// checked on an earlier look).
///
/// A system call that is handed lost bytes (writing them to a file, say) raises no signal but fails
/// with `EFAULT`; ask `intact` then as well.
///
/// # The signal
///
/// On Unix the first mapping installs a handler for SIGBUS, for the whole process and for good. Faults
/// that are not in a mapping of this crate go on to whoever handled the signal before. A program that
/// installs its own handler later must do the same for us, and a thread that touches a mapping must
/// not block the signal.
///
/// ```
/// use gguf2st_source::{MmapSource, Source, SourceError};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("model.gguf");
/// std::fs::write(&path, vec![1; 1 << 20])?;
/// let source = MmapSource::open(&path)?;
/// let tail = source.read(1_000_000..1_048_576)?; // a view; nothing is read yet
/// source.intact()?;
///
/// # #[cfg(unix)] {
/// std::fs::write(&path, b"something shorter")?;
/// assert_eq!(tail[48_000], 0);
/// assert!(matches!(source.intact(), Err(SourceError::CutShort { found: 17, .. })));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MmapSource {
    file: FileSource,
    /// `None` if the file is empty, which cannot be mapped.
    mapping: Option<Arc<Mapping>>,
    /// All of the mapping, for views to be cut from.
    whole: Bytes,
}

/// A mapping for as long as anybody has a view of it.
#[derive(Debug)]
struct Mapping {
    watch: os::Watch, // before `map`: fields go in this order, and the watch must end while the map stands
    map: Mmap,
}

/// What `Bytes` holds on to.
struct View(Arc<Mapping>);

impl AsRef<[u8]> for View {
    fn as_ref(&self) -> &[u8] {
        &self.0.map
    }
}

impl MmapSource {
    /// Opens the file at `path`, through links if there are any, and maps all of it.
    ///
    /// No byte is read yet. The address space in use is the file's length; memory in use are the pages
    /// that were touched, which the system takes back when it needs them.
    ///
    /// # Errors
    ///
    /// As [`FileSource::open`], and [`SourceError::Map`] if the file can't be mapped: larger than
    /// the address space, on a file system that has no mappings. Plain reads may work then.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SourceError> {
        let file = FileSource::open(path)?;
        if file.is_empty() {
            return Ok(Self { file, mapping: None, whole: Bytes::new() });
        }
        let mapping =
            map(&file).map_err(|error| SourceError::Map { path: file.name().into(), len: file.len(), error })?;
        let mapping = Arc::new(mapping);
        Ok(Self { file, whole: Bytes::from_owner(View(Arc::clone(&mapping))), mapping: Some(mapping) })
    }

    /// All bytes of the file, for parsers that borrow.
    ///
    /// Bytes may turn to zeros, or to what somebody writes, while they are looked at; see
    /// [above](MmapSource#when-the-file-changes). Call [`intact`](Source::intact) after the last use.
    pub fn as_slice(&self) -> &[u8] {
        &self.whole
    }

    /// A hint: the file will be read from its start to its end, once.
    pub fn expect_sequential(&self) {
        if let Some(mapping) = &self.mapping {
            os::expect_sequential(&mapping.map);
        }
    }

    /// A hint: the bytes of `range` will be wanted soon and may be read ahead.
    pub fn will_need(&self, range: Range<u64>) {
        if let Some((mapping, range)) = self.part(&range) {
            os::will_need(&mapping.map, range);
        }
    }

    /// The mapping and a range inside it, if the range is one and not empty.
    fn part(&self, range: &Range<u64>) -> Option<(&Mapping, Range<usize>)> {
        let mapping = self.mapping.as_deref()?;
        let inside = !range.is_empty() && range.end <= self.len();
        inside.then(|| (mapping, in_memory(range)))
    }
}

fn map(file: &FileSource) -> io::Result<Mapping> {
    let len = usize::try_from(file.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
    // SAFETY: the mapping is read-only, of a regular file, and lives as long as any view of it. What
    // others do to the file meanwhile is the danger: `Watch` keeps a vanished page from being fatal,
    // and that bytes may change under a reader is said to callers wherever a view is handed out.
    let map = unsafe { MmapOptions::new().len(len).map(file.file()) }?;
    let watch = os::Watch::over(&map)?;
    Ok(Mapping { watch, map })
}

impl Source for MmapSource {
    fn len(&self) -> u64 {
        self.file.len()
    }

    fn name(&self) -> &Path {
        self.file.name()
    }

    /// A view, without a copy; see [above](MmapSource#when-the-file-changes) for how far to trust it.
    fn read(&self, range: Range<u64>) -> Result<Bytes, SourceError> {
        check_range(self, &range)?;
        if self.mapping.as_ref().is_some_and(|it| it.watch.lost().is_some()) {
            self.intact()?;
        }
        Ok(self.whole.slice(in_memory(&range)))
    }

    /// Reads from the file itself: a copy is wanted anyhow, and this way a page that can't be had is
    /// an error at once.
    fn read_into(&self, offset: u64, buf: &mut [u8]) -> Result<(), SourceError> {
        self.file.read_into(offset, buf)
    }

    fn intact(&self) -> Result<(), SourceError> {
        let lost = self.mapping.as_ref().and_then(|it| it.watch.lost());
        match (self.file.intact(), lost) {
            (Err(short @ SourceError::CutShort { .. }), _) => Err(short),
            (_, Some(offset)) => Err(SourceError::LostPage { path: self.name().into(), offset: offset as u64 }),
            (rest, None) => rest,
        }
    }

    fn version(&self) -> String {
        self.file.version()
    }

    fn as_file(&self) -> Option<&File> {
        self.file.as_file()
    }

    fn hands_out_views(&self) -> bool {
        true
    }

    /// Takes the pages out of the process's memory; the system may keep them in its cache.
    fn drop_range(&self, range: Range<u64>) {
        if let Some((mapping, range)) = self.part(&range) {
            os::drop_pages(&mapping.map, range);
        }
    }
}
