//! What differs between systems, but for the signal (`sigbus`).

pub(crate) use imp::*;

#[cfg(unix)]
#[allow(unsafe_code)] // `MADV_DONTNEED`
mod imp {
    use std::fs::{File, FileType, Metadata, OpenOptions};
    use std::io;
    use std::ops::Range;
    use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
    use std::path::Path;

    use memmap2::{Advice, Mmap, UncheckedAdvice};

    pub(crate) use crate::sigbus::Watch;

    /// Opens a file for reading. Does not wait for a writer if it turns out to be a pipe, and takes
    /// no terminal as its own; on a file neither flag means anything.
    pub(crate) fn open(path: &Path) -> io::Result<File> {
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)
    }

    /// What something that is no file is instead.
    pub(crate) fn what(kind: FileType) -> &'static str {
        match kind {
            _ if kind.is_dir() => "a folder",
            _ if kind.is_fifo() => "a pipe",
            _ if kind.is_socket() => "a socket",
            _ if kind.is_char_device() => "a character device",
            _ if kind.is_block_device() => "a block device",
            _ => "something else",
        }
    }

    /// The number of a file on its file system; one that took another's place has another.
    pub(crate) fn number(found: &Metadata) -> u64 {
        found.ino()
    }

    /// One positional read, which may be short or interrupted.
    pub(crate) fn read_at(file: &File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        file.read_at(buf, offset)
    }

    /// Says that a mapping will be walked from start to end.
    pub(crate) fn expect_sequential(map: &Mmap) {
        let _ = map.advise(Advice::Sequential);
    }

    /// Says that a range of a mapping will be wanted soon.
    pub(crate) fn will_need(map: &Mmap, range: Range<usize>) {
        let _ = map.advise_range(Advice::WillNeed, range.start, range.len());
    }

    /// Takes the pages of a range out of the process's memory.
    pub(crate) fn drop_pages(map: &Mmap, range: Range<usize>) {
        // The page in which a range ends belongs to the range that follows, which starts by rounding
        // down to it (memmap2 does that); the last page of all has no other.
        let page = crate::sigbus::page_size();
        let end = match range.end {
            end if end == map.len() => end,
            end => end - end % page,
        };
        if range.start < end {
            // SAFETY: the mapping is of a file, shared and read-only, so a dropped page is read from
            // the file again at its next use (or is a page of zeros already, put there by `sigbus`);
            // no byte that a live slice shows changes by it.
            let _ = unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, range.start, end - range.start) };
        }
    }
}

#[cfg(not(unix))]
mod imp {
    use std::fs::{File, FileType, Metadata};
    use std::io;
    use std::ops::Range;
    use std::path::Path;

    use memmap2::Mmap;

    pub(crate) fn open(path: &Path) -> io::Result<File> {
        File::open(path)
    }

    pub(crate) fn number(_: &Metadata) -> u64 {
        0
    }

    pub(crate) fn what(kind: FileType) -> &'static str {
        if kind.is_dir() { "a folder" } else { "something else" }
    }

    #[cfg(windows)]
    pub(crate) fn read_at(file: &File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(file, buf, offset)
    }

    #[cfg(not(windows))]
    pub(crate) fn read_at(_: &File, _: &mut [u8], _: u64) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn expect_sequential(_: &Mmap) {}

    pub(crate) fn will_need(_: &Mmap, _: Range<usize>) {}

    pub(crate) fn drop_pages(_: &Mmap, _: Range<usize>) {}

    /// Nothing to watch: Windows does not let a file be shortened while it is mapped.
    #[derive(Debug)]
    pub(crate) struct Watch;

    impl Watch {
        pub(crate) fn over(_: &[u8]) -> io::Result<Self> {
            Ok(Self)
        }

        pub(crate) fn lost(&self) -> Option<usize> {
            None
        }
    }
}
