//! A local file, read plainly.

use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::source::check_range;
use crate::{Source, SourceError, os};

/// A local file, read by positional reads into buffers.
///
/// Costs one open file and no memory. A file that somebody shortens while it is in use ends in
/// [`SourceError::CutShort`].
///
/// ```
/// use gguf2st_source::{FileSource, Source};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("model.gguf");
/// # std::fs::write(&path, b"GGUF\x03\0\0\0")?;
/// let source = FileSource::open(&path)?;
/// assert_eq!(source.len(), 8);
/// assert_eq!(&source.read(0..4)?[..], b"GGUF");
///
/// // A buffer can be used again and again.
/// let mut buf = [0; 2];
/// source.read_into(2, &mut buf)?;
/// assert_eq!(&buf, b"UF");
///
/// source.intact()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FileSource {
    file: File,
    path: PathBuf,
    len: u64,
    modified: Option<SystemTime>,
}

impl FileSource {
    /// Opens the file at `path`, through links if there are any.
    ///
    /// Never waits for anybody: a pipe that nobody writes to is refused like all that is no file.
    ///
    /// # Errors
    ///
    /// [`SourceError::Open`] with the system's reason; [`SourceError::NotAFile`] for a folder, a pipe,
    /// a socket or a device.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SourceError> {
        let path = path.as_ref();
        let cannot = |error| SourceError::Open { path: path.into(), error };
        // Looked at before opening, because opening alone makes some devices act; and again after, on
        // the file in hand, because the name may lead elsewhere by then.
        expect_file(path, &path.metadata().map_err(cannot)?)?;
        let file = os::open(path).map_err(cannot)?;
        let found = file.metadata().map_err(cannot)?;
        expect_file(path, &found)?;
        Ok(Self { file, path: path.into(), len: found.len(), modified: found.modified().ok() })
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

fn expect_file(path: &Path, found: &Metadata) -> Result<(), SourceError> {
    if found.is_file() {
        return Ok(());
    }
    Err(SourceError::NotAFile { path: path.into(), what: os::what(found.file_type()) })
}

impl Source for FileSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn name(&self) -> &Path {
        &self.path
    }

    fn read_into(&self, offset: u64, buf: &mut [u8]) -> Result<(), SourceError> {
        let range = offset..offset.saturating_add(buf.len() as u64);
        check_range(self, &range)?;
        match fill(buf, offset, |buf, at| os::read_at(&self.file, buf, at)) {
            Ok(()) => Ok(()),
            Err(Unfilled::End(at)) => Err(SourceError::CutShort {
                path: self.path.clone(),
                expected: self.len,
                // Some files of the kernel's say a length that they don't have.
                found: match self.file.metadata() {
                    Ok(now) if now.len() < self.len => now.len(),
                    _ => at,
                },
                offset: at,
            }),
            Err(Unfilled::Error(at, error)) => {
                Err(SourceError::Read { path: self.path.clone(), range: at..range.end, error })
            }
        }
    }

    fn version(&self) -> String {
        let nanos = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let modified = self.modified.map_or(0, nanos);
        let number = self.file.metadata().map_or(0, |now| os::number(&now));
        format!("mtime {modified} inode {number}")
    }

    fn as_file(&self) -> Option<&File> {
        Some(&self.file)
    }

    fn intact(&self) -> Result<(), SourceError> {
        let now = self.file.metadata().map_err(|error| SourceError::Read {
            path: self.path.clone(),
            range: 0..self.len,
            error,
        })?;
        let (found, modified) = (now.len(), now.modified().ok());
        if found < self.len {
            return Err(SourceError::CutShort { path: self.path.clone(), expected: self.len, found, offset: found });
        }
        if found != self.len || modified != self.modified {
            return Err(SourceError::Changed {
                path: self.path.clone(),
                expected_len: self.len,
                found_len: found,
                expected_modified: self.modified,
                found_modified: modified,
            });
        }
        Ok(())
    }
}

/// Why a buffer could not be filled, and the offset at which the next byte would have been.
#[derive(Debug)]
enum Unfilled {
    End(u64),
    Error(u64, io::Error),
}

/// Fills `buf` from `offset` on, however little `read` gives at a time.
fn fill(
    mut buf: &mut [u8],
    mut offset: u64,
    mut read: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
) -> Result<(), Unfilled> {
    while !buf.is_empty() {
        match read(buf, offset) {
            Ok(0) => return Err(Unfilled::End(offset)),
            Ok(n) => {
                buf = &mut buf[n..];
                offset += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Unfilled::Error(offset, error)),
        }
    }
    Ok(())
}

/// The bytes of `range` as a range of a slice of `len` bytes that `check_range` has seen.
pub(crate) fn in_memory(range: &Range<u64>) -> Range<usize> {
    let index = |offset| usize::try_from(offset).unwrap_or(usize::MAX);
    index(range.start)..index(range.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_interrupted_reads_go_on() {
        let data: Vec<u8> = (0..100).collect();
        let mut calls = 0;
        let mut buf = [0; 50];
        fill(&mut buf, 20, |buf, at| {
            calls += 1;
            if calls % 3 == 0 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let n = buf.len().min(7);
            let at = usize::try_from(at).expect("small");
            buf[..n].copy_from_slice(&data[at..at + n]);
            Ok(n)
        })
        .expect("all there");
        assert_eq!(buf[..], data[20..70]);
    }

    #[test]
    fn an_early_end_and_an_error_say_where() {
        let mut left = 10;
        let early = |buf: &mut [u8], _| {
            let n = buf.len().min(4).min(left);
            left -= n;
            Ok(n)
        };
        assert!(matches!(fill(&mut [0; 50], 1000, early), Err(Unfilled::End(1010))));
        let failing = |_: &mut [u8], at| match at {
            7 => Ok(1),
            _ => Err(io::ErrorKind::TimedOut.into()),
        };
        assert!(matches!(
            fill(&mut [0; 50], 7, failing),
            Err(Unfilled::Error(8, error)) if error.kind() == io::ErrorKind::TimedOut
        ));
    }

    /// The name may come to be a pipe's between the first look and opening.
    #[cfg(unix)]
    #[cfg_attr(miri, ignore = "Miri has no pipes with names")]
    #[test]
    fn opening_a_pipe_does_not_wait() {
        use std::ffi::CString;
        use std::os::unix::ffi::OsStrExt;

        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("fifo");
        let name = CString::new(path.as_os_str().as_bytes()).expect("no NUL");
        #[allow(unsafe_code)]
        // SAFETY: `name` is a string that ends in NUL.
        let made = unsafe { libc::mkfifo(name.as_ptr(), 0o600) };
        assert_eq!(made, 0);
        let pipe = os::open(&path).expect("opens at once");
        let found = pipe.metadata().expect("can be looked at");
        assert!(matches!(expect_file(&path, &found), Err(SourceError::NotAFile { what: "a pipe", .. })));
    }
}
