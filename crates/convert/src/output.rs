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
    /// Refuses what would go wrong later, then creates the temporary file, `bytes` long. No input may be the
    /// output.
    pub(crate) fn create(
        path: &Path,
        bytes: u64,
        existing: Existing,
        inputs: &[&dyn Source],
    ) -> Result<Self, ConvertError> {
        let bad = |reason| ConvertError::BadOutput { path: path.into(), reason };
        let name = path.file_name().ok_or_else(|| bad("a file name is expected"))?;
        if path.as_os_str().as_encoded_bytes().last().is_some_and(|last| std::path::is_separator(char::from(*last))) {
            return Err(bad("a file name is expected behind the last separator"));
        }
        let folder = folder_of(path);
        refuse_existing(path, existing, inputs)?;
        let found = fs::metadata(folder).map_err(|error| cannot(path, "looking at its folder", error))?;
        if !found.is_dir() {
            return Err(bad("its parent is not a folder"));
        }
        refuse_full(folder, bytes)?;
        let mut builder = tempfile::Builder::new();
        let prefix = part_prefix(name);
        builder.prefix(&prefix).suffix(PART_SUFFIX);
        if let Some(permissions) = os::permissions() {
            builder.permissions(permissions);
        }
        // By its kind alone: the whole text names the temporary file, which is gone.
        let file = builder.tempfile_in(folder).map_err(|error| cannot(path, "creating it", error.kind().into()))?;
        file.as_file().set_len(bytes).map_err(|error| cannot(path, "making room", error))?;
        Ok(Self { path: path.into(), file, existing })
    }

    fn as_file(&self) -> &fs::File {
        self.file.as_file()
    }

    /// Copies bytes of another file inside the system; `false` where that is impossible, and nothing was copied.
    pub(crate) fn copy_from(&self, file: &fs::File, from: u64, offset: u64, bytes: u64) -> Result<bool, ConvertError> {
        os::copy_range(file, from, self.as_file(), offset, bytes).map_err(|error| cannot(&self.path, "writing", error))
    }

    /// Writes bytes at an offset; from any thread, in any order.
    pub(crate) fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), ConvertError> {
        os::write_all_at(self.as_file(), bytes, offset).map_err(|error| cannot(&self.path, "writing", error))
    }

    /// Makes the file durable, then visible.
    pub(crate) fn finish(self) -> Result<(), ConvertError> {
        self.as_file().sync_all().map_err(|error| cannot(&self.path, "making it durable", error))?;
        let Self { path, file, existing } = self;
        let persisted = match existing {
            Existing::Replace => file.persist(&path),
            Existing::Keep => file.persist_noclobber(&path),
        };
        if let Err(error) = persisted {
            return Err(match error.error {
                error if error.kind() == io::ErrorKind::AlreadyExists => ConvertError::OutputExists { path },
                error => cannot(&path, "renaming", error),
            });
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        os::sync_folder(folder).map_err(|error| ConvertError::Write {
            path: path.clone(),
            action: "making the name durable",
            error,
        })
    }
}

/// What temporary files of an output end with.
pub(crate) const PART_SUFFIX: &str = ".part";

/// What temporary files of an output begin with.
pub(crate) fn part_prefix(name: &std::ffi::OsStr) -> std::ffi::OsString {
    let mut prefix = std::ffi::OsString::from(".");
    // A long name leaves no room for more in the temporary one.
    prefix.push(if name.len() <= 200 { name } else { "gguf2st".as_ref() });
    prefix.push(".");
    prefix
}

/// An error of writing an output.
pub(crate) fn cannot(path: &Path, action: &'static str, error: io::Error) -> ConvertError {
    ConvertError::Write { path: path.into(), action, error }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The names in a folder, those that are text, sorted.
pub(crate) fn names(path: &Path) -> Result<Vec<String>, ConvertError> {
    let failed = |error| cannot(path, "listing the folder", error);
    let mut names = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        names.extend(entry.map_err(failed)?.file_name().into_string().ok());
    }
    names.sort();
    Ok(names)
}

/// Says before anything is written that a folder's disk has no room for `bytes`.
pub(crate) fn refuse_full(folder: &Path, bytes: u64) -> Result<(), ConvertError> {
    let free = os::free_space(folder).map_err(|error| cannot(folder, "asking for free space", error))?;
    if bytes > free {
        return Err(ConvertError::NoRoom { path: folder.into(), needed: bytes, free });
    }
    Ok(())
}

/// Whether an output is one of the inputs, by any name.
pub(crate) fn is_input(path: &Path, inputs: &[&dyn Source]) -> bool {
    inputs.iter().any(|input| match (fs::metadata(path), fs::metadata(input.name())) {
        (Ok(output), Ok(source)) => {
            os::same_file(&output, &source) || fs::canonicalize(path).ok() == fs::canonicalize(input.name()).ok()
        }
        _ => false,
    })
}

fn refuse_existing(path: &Path, existing: Existing, inputs: &[&dyn Source]) -> Result<(), ConvertError> {
    if is_input(path, inputs) {
        return Err(ConvertError::OutputIsInput { path: path.into() });
    }
    let bad = |reason| Err(ConvertError::BadOutput { path: path.into(), reason });
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(cannot(path, "looking at it", error)),
        Ok(found) if found.is_dir() => bad("it is a folder"),
        Ok(found) if !found.is_file() && !found.is_symlink() => bad("it is there and no regular file"),
        Ok(_) if existing == Existing::Keep => Err(ConvertError::OutputExists { path: path.into() }),
        Ok(_) => Ok(()),
    }
}
