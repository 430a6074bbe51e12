//! An output file that nobody sees before it is whole.
//!
//! Bytes go to a temporary file in the output's folder; `finish` makes them durable and gives them their
//! name. Whatever ends before that leaves nothing behind.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use gguf2st_source::Source;
use tempfile::NamedTempFile;

use crate::error::ConvertError;
use crate::os;

/// What may happen to a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Existing {
    /// It stays, and the conversion is refused.
    #[default]
    Keep,
    /// It is replaced once the new file is whole.
    Replace,
}

#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    file: NamedTempFile,
    existing: Existing,
}

impl Output {
    /// Refuses what would go wrong later, then creates the temporary file, `bytes` long.
    pub(crate) fn create(
        path: &Path,
        bytes: u64,
        existing: Existing,
        input: &dyn Source,
    ) -> Result<Self, ConvertError> {
        let bad = |reason| ConvertError::BadOutput { path: path.into(), reason };
        let name = path.file_name().ok_or_else(|| bad("a file name is expected"))?;
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let failed = |action| move |error| ConvertError::Write { path: path.into(), action, error };
        refuse_existing(path, existing, input)?;
        if !fs::metadata(folder).map_err(failed("looking at the folder"))?.is_dir() {
            return Err(bad("its parent is not a folder"));
        }
        let free = os::free_space(folder).map_err(failed("asking for free space"))?;
        if bytes > free {
            return Err(ConvertError::NoRoom { path: folder.into(), needed: bytes, free });
        }
        // A long name leaves no room for more in the temporary one.
        let mut prefix = std::ffi::OsString::from(".");
        prefix.push(if name.len() <= 200 { name } else { "gguf2st".as_ref() });
        prefix.push(".");
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(".part");
        if let Some(permissions) = os::permissions() {
            builder.permissions(permissions);
        }
        let file = builder.tempfile_in(folder).map_err(|error| failed("creating the file")(error))?;
        file.as_file().set_len(bytes).map_err(failed("making room"))?;
        Ok(Self { path: path.into(), file, existing })
    }

    /// Writes bytes at an offset; from any thread, in any order.
    pub(crate) fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), ConvertError> {
        os::write_all_at(self.file.as_file(), bytes, offset).map_err(|error| self.failed("writing", error))
    }

    /// Makes the file durable, then visible.
    pub(crate) fn finish(self) -> Result<(), ConvertError> {
        self.file.as_file().sync_all().map_err(|error| self.failed("making the file durable", error))?;
        let Self { path, file, existing } = self;
        let persisted = match existing {
            Existing::Replace => file.persist(&path),
            Existing::Keep => file.persist_noclobber(&path),
        };
        if let Err(error) = persisted {
            return Err(match error.error {
                error if error.kind() == io::ErrorKind::AlreadyExists => ConvertError::OutputExists { path },
                error => ConvertError::Write { path, action: "renaming", error },
            });
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        os::sync_folder(folder).map_err(|error| ConvertError::Write {
            path: path.clone(),
            action: "making the name durable",
            error,
        })
    }

    fn failed(&self, action: &'static str, error: io::Error) -> ConvertError {
        ConvertError::Write { path: self.path.clone(), action, error }
    }
}

fn refuse_existing(path: &Path, existing: Existing, input: &dyn Source) -> Result<(), ConvertError> {
    let path = || path.to_path_buf();
    if let (Ok(output), Ok(source)) = (fs::metadata(path()), fs::metadata(input.name()))
        && (os::same_file(&output, &source) || fs::canonicalize(path()).ok() == fs::canonicalize(input.name()).ok())
    {
        return Err(ConvertError::OutputIsInput { path: path() });
    }
    match fs::symlink_metadata(path()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(ConvertError::Write { path: path(), action: "looking at the output", error }),
        Ok(found) if found.is_dir() => Err(ConvertError::BadOutput { path: path(), reason: "it is a folder" }),
        Ok(found) if !found.is_file() && !found.is_symlink() => {
            Err(ConvertError::BadOutput { path: path(), reason: "it is there and no regular file" })
        }
        Ok(_) if existing == Existing::Keep => Err(ConvertError::OutputExists { path: path() }),
        Ok(_) => Ok(()),
    }
}
