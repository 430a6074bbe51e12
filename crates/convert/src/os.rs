//! What differs between systems: positional writes, free space, whether two paths are one file, and making a
//! rename durable.

use std::io;
use std::path::Path;

pub(crate) use imp::*;

/// Bytes that the file system of a path has left for this user: that of the nearest folder above that exists.
///
/// # Errors
///
/// What the system says where it can't be told.
pub fn free_space(path: &Path) -> io::Result<u64> {
    imp::free(path.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new(".")))
}

#[cfg(unix)]
mod imp {
    use std::fs::{File, Metadata};
    use std::io;
    use std::os::unix::fs::{FileExt, MetadataExt};
    use std::path::Path;

    pub(crate) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
        file.write_all_at(bytes, offset)
    }

    /// Copies bytes from one file to another without them passing through this process, where system and file
    /// systems allow; `false` where they do not, and nothing was copied.
    #[cfg(target_os = "linux")]
    pub(crate) fn copy_range(from: &File, mut offset: u64, to: &File, mut at: u64, bytes: u64) -> io::Result<bool> {
        let end = offset + bytes;
        while offset < end {
            let left = usize::try_from(end - offset).unwrap_or(usize::MAX);
            match rustix::fs::copy_file_range(from, Some(&mut offset), to, Some(&mut at), left) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => {}
                Err(error) if offset == end - bytes && cannot_copy(error) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    /// Whether an error says that these files can't be copied so, as across file systems or on old kernels.
    #[cfg(target_os = "linux")]
    fn cannot_copy(error: rustix::io::Errno) -> bool {
        use rustix::io::Errno;
        [Errno::XDEV, Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP, Errno::BADF, Errno::PERM].contains(&error)
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn copy_range(_: &File, _: u64, _: &File, _: u64, _: u64) -> io::Result<bool> {
        Ok(false)
    }

    /// Bytes that the file system of a folder has left for this user.
    pub(crate) fn free(folder: &Path) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(folder)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    pub(crate) fn same_file(a: &Metadata, b: &Metadata) -> bool {
        (a.dev(), a.ino()) == (b.dev(), b.ino())
    }

    /// Opens or creates a file of our own for reading and writing: the one of that name, not what a link leads to,
    /// and without waiting where somebody has put a pipe.
    pub(crate) fn open_here(path: &Path) -> io::Result<File> {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(rustix::fs::open(path, flags, Mode::from_raw_mode(0o666))?.into())
    }

    /// Whether an open file still is what a path names.
    pub(crate) fn is_named(file: &Metadata, path: &Path) -> bool {
        std::fs::symlink_metadata(path).is_ok_and(|named| same_file(file, &named))
    }

    /// Makes what happened to a folder's entries durable.
    pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
        match File::open(folder)?.sync_all() {
            // Some file systems can't sync a folder; what they can't do is not a failure of the write.
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
            done => done,
        }
    }

    /// The mode bits that a file made by other means would get.
    pub(crate) fn permissions() -> Option<std::fs::Permissions> {
        use std::os::unix::fs::PermissionsExt;
        Some(std::fs::Permissions::from_mode(0o666))
    }
}

#[cfg(windows)]
mod imp {
    use std::fs::{File, Metadata};
    use std::io;
    use std::os::windows::fs::FileExt;
    use std::path::Path;

    pub(crate) fn copy_range(_: &File, _: u64, _: &File, _: u64, _: u64) -> io::Result<bool> {
        Ok(false)
    }

    pub(crate) fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = file.seek_write(bytes, offset)?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            bytes = &bytes[written..];
            offset += written as u64;
        }
        Ok(())
    }

    /// Not told here; a full disk is then found while writing.
    pub(crate) fn free(_folder: &Path) -> io::Result<u64> {
        Ok(u64::MAX)
    }

    pub(crate) fn open_here(path: &Path) -> io::Result<File> {
        File::options().read(true).write(true).create(true).truncate(false).open(path)
    }

    /// An open file can't be taken from its name here.
    pub(crate) fn is_named(_file: &Metadata, path: &Path) -> bool {
        path.exists()
    }

    /// Not told by what std offers; paths are compared instead.
    pub(crate) fn same_file(_a: &Metadata, _b: &Metadata) -> bool {
        false
    }

    pub(crate) fn sync_folder(_folder: &Path) -> io::Result<()> {
        Ok(())
    }

    pub(crate) fn permissions() -> Option<std::fs::Permissions> {
        None
    }
}
