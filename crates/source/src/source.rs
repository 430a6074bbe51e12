//! The trait: what every kind of source can do.

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;

use crate::{RemoteStats, SourceError};

/// What [`Source::fetch`] gives.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where a container's bytes come from: a length, and any range of it.
///
/// All offsets and lengths are bytes, counted from the source's start. Reading takes `&self` and
/// moves no position, so any number of threads can read one source at once.
///
/// A source does not stop others from writing to what lies under it. What was read is what was
/// opened only if [`intact`](Source::intact) says so *afterwards*.
///
/// The trait can be made into an object, and `&S`, `Box<S>` and `Arc<S>` are sources when `S` is.
///
/// ```
/// use std::path::Path;
/// use gguf2st_source::{Source, SourceError};
///
/// /// Bytes that are in memory already.
/// #[derive(Debug)]
/// struct Memory(Vec<u8>);
///
/// impl Source for Memory {
///     fn len(&self) -> u64 {
///         self.0.len() as u64
///     }
///     fn name(&self) -> &Path {
///         Path::new("memory")
///     }
///     fn read_into(&self, offset: u64, buf: &mut [u8]) -> Result<(), SourceError> {
///         let range = offset..offset.saturating_add(buf.len() as u64);
///         let start = usize::try_from(offset).unwrap_or(usize::MAX);
///         let bytes = self.0.get(start..).and_then(|rest| rest.get(..buf.len()));
///         buf.copy_from_slice(bytes.ok_or_else(|| SourceError::OutOfRange {
///             path: self.name().into(),
///             range,
///             len: self.len(),
///         })?);
///         Ok(())
///     }
///     fn intact(&self) -> Result<(), SourceError> {
///         Ok(())
///     }
/// }
///
/// let source: Box<dyn Source> = Box::new(Memory(b"GGUF".to_vec()));
/// assert_eq!(&source.read(1..3)?[..], b"GU");
/// assert!(source.read(1..5).is_err());
/// # Ok::<(), SourceError>(())
/// ```
pub trait Source: Send + Sync + fmt::Debug {
    /// The length in bytes, as found when the source was opened.
    fn len(&self) -> u64;

    /// Whether there are no bytes at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the user called it. For messages: show it through [`EscapedPath`](crate::EscapedPath).
    fn name(&self) -> &Path;

    /// Exactly the bytes of `range`, without a copy where the kind of source allows it.
    ///
    /// # Errors
    ///
    /// [`SourceError::OutOfRange`] if the range runs backwards or past [`len`](Source::len), before
    /// anything is allocated; else whatever kept the bytes from being read.
    fn read(&self, range: Range<u64>) -> Result<Bytes, SourceError> {
        check_range(self, &range)?;
        let wanted = range.end - range.start;
        let no_memory = || SourceError::Read {
            path: self.name().into(),
            range: range.clone(),
            error: io::ErrorKind::OutOfMemory.into(),
        };
        let wanted = usize::try_from(wanted).map_err(|_| no_memory())?;
        let mut buf = Vec::new();
        buf.try_reserve_exact(wanted).map_err(|_| no_memory())?;
        buf.resize(wanted, 0);
        self.read_into(range.start, &mut buf)?;
        Ok(buf.into())
    }

    /// Fills all of `buf` with the bytes from `offset` on; for callers with buffers of their own.
    ///
    /// # Errors
    ///
    /// As [`read`](Source::read). What `buf` holds after an error is not said.
    fn read_into(&self, offset: u64, buf: &mut [u8]) -> Result<(), SourceError>;

    /// Exactly the bytes of `range`, fetched while others wait.
    ///
    /// `None` for sources whose reads are local: their callers run [`read`](Source::read) on threads that
    /// may block. The future can be awaited on any runtime, does nothing before it is polled, and gives up
    /// when it is dropped. Its errors are those of `read`.
    fn fetch(&self, range: Range<u64>) -> Option<BoxFuture<'_, Result<Bytes, SourceError>>> {
        let _ = range;
        None
    }

    /// Whether the source is still what was opened.
    ///
    /// Call it after the last use of the bytes and before trusting what was made of them.
    ///
    /// # Errors
    ///
    /// [`SourceError::CutShort`], [`SourceError::Changed`], [`SourceError::LostPage`] or
    /// [`SourceError::Replaced`], by what happened; [`SourceError::Read`] if it can't be told.
    fn intact(&self) -> Result<(), SourceError>;

    /// Whether bytes come across a network, so that [`fetch`](Source::fetch) gives a future and a request costs
    /// far more than the bytes next to those asked for.
    fn is_remote(&self) -> bool {
        false
    }

    /// What is different once the bytes are: a file's time of change and number, a remote object's entity tag.
    /// Empty where nothing tells. With [`len`](Source::len), what a later run knows an unchanged source by.
    fn version(&self) -> String {
        String::new()
    }

    /// The open file, where the bytes are a plain file's on this machine: for copies inside the system.
    fn as_file(&self) -> Option<&File> {
        None
    }

    /// Whether [`read`](Source::read) hands out views of memory, so that asking for more than is used costs
    /// nothing.
    fn hands_out_views(&self) -> bool {
        false
    }

    /// What a remote source has asked of its server so far; `None` for local ones.
    fn remote_stats(&self) -> Option<RemoteStats> {
        None
    }

    /// A hint: the bytes of `range` have been used and will not be wanted soon.
    ///
    /// Sources that hold memory for them let it go; all others do nothing. The bytes can still be
    /// read. Ranges given one after another, without gaps, leave nothing behind.
    fn drop_range(&self, range: Range<u64>) {
        let _ = range;
    }
}

/// Whether `range` runs forwards and ends inside `source`.
pub(crate) fn check_range<S: Source + ?Sized>(source: &S, range: &Range<u64>) -> Result<(), SourceError> {
    if range.start <= range.end && range.end <= source.len() {
        return Ok(());
    }
    Err(SourceError::OutOfRange { path: source.name().into(), range: range.clone(), len: source.len() })
}

macro_rules! forward {
    ($($kind:ty),*) => {$(
        impl<S: Source + ?Sized> Source for $kind {
            fn len(&self) -> u64 {
                (**self).len()
            }
            fn is_empty(&self) -> bool {
                (**self).is_empty()
            }
            fn name(&self) -> &Path {
                (**self).name()
            }
            fn read(&self, range: Range<u64>) -> Result<Bytes, SourceError> {
                (**self).read(range)
            }
            fn read_into(&self, offset: u64, buf: &mut [u8]) -> Result<(), SourceError> {
                (**self).read_into(offset, buf)
            }
            fn fetch(&self, range: Range<u64>) -> Option<BoxFuture<'_, Result<Bytes, SourceError>>> {
                (**self).fetch(range)
            }
            fn intact(&self) -> Result<(), SourceError> {
                (**self).intact()
            }
            fn remote_stats(&self) -> Option<RemoteStats> {
                (**self).remote_stats()
            }
            fn is_remote(&self) -> bool {
                (**self).is_remote()
            }
            fn version(&self) -> String {
                (**self).version()
            }
            fn as_file(&self) -> Option<&File> {
                (**self).as_file()
            }
            fn hands_out_views(&self) -> bool {
                (**self).hands_out_views()
            }
            fn drop_range(&self, range: Range<u64>) {
                (**self).drop_range(range);
            }
        }
    )*};
}

forward!(&S, Box<S>, Arc<S>);
