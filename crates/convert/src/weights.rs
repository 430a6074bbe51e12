//! Safetensors files that are read: to restore what they were made from, to compare them, to assemble them.

use std::collections::{BTreeMap, btree_map};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use gguf2st_gguf::Escaped;
use gguf2st_source::{FileSource, Source};
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};

use crate::error::ConvertError;
use crate::output::names;
use crate::plan::{INDEX_FILE, PlannedTensor, is_output_name};
use crate::safetensors::{LENGTH, MAX_HEADER};

/// A tensor of a file that is read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stored {
    /// Position of its file.
    pub(crate) file: usize,
    pub(crate) dtype: String,
    pub(crate) shape: Vec<u64>,
    /// Where its bytes are, from the file's start.
    pub(crate) range: Range<u64>,
}

impl Stored {
    /// Whether it has the name's dtype, shape and length.
    pub(crate) fn is_kind(&self, tensor: &PlannedTensor) -> bool {
        self.dtype == tensor.dtype.name()
            && self.shape == tensor.shape
            && self.range.end - self.range.start == tensor.bytes()
    }
}

/// Safetensors files that are read as one: their headers, and where their bytes come from.
#[derive(Debug)]
pub struct Weights {
    files: Vec<Arc<dyn Source>>,
    /// All files', the first one's where they differ.
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) tensors: BTreeMap<String, Stored>,
}

impl Weights {
    /// Opens a file, or a folder's `model.safetensors` or `model-….safetensors` files.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open), and [`ConvertError::NotSafetensors`] for a folder without such files.
    pub fn open_path(path: &Path) -> Result<Self, ConvertError> {
        let mut files: Vec<Arc<dyn Source>> = Vec::new();
        if path.is_dir() {
            for name in names(path)?.iter().filter(|name| is_output_name(name) && *name != INDEX_FILE) {
                files.push(Arc::new(FileSource::open(path.join(name))?));
            }
            if files.is_empty() {
                let reason = "the folder has no model*.safetensors".to_owned();
                return Err(ConvertError::NotSafetensors { name: path.into(), reason });
            }
        } else {
            files.push(Arc::new(FileSource::open(path)?));
        }
        Self::open(files)
    }

    /// Reads the headers of some files.
    ///
    /// # Errors
    ///
    /// [`ConvertError::NotSafetensors`] with what is wrong and where; the errors of reading.
    pub fn open(files: Vec<Arc<dyn Source>>) -> Result<Self, ConvertError> {
        let mut weights = Self { files: Vec::new(), metadata: BTreeMap::new(), tensors: BTreeMap::new() };
        for (position, source) in files.iter().enumerate() {
            let metadata = weights.read(position, &**source);
            // A file that is not what was opened any more is the cause of whatever else went wrong.
            source.intact()?;
            for (key, value) in metadata? {
                weights.metadata.entry(key).or_insert(value);
            }
        }
        weights.files = files;
        Ok(weights)
    }

    /// Bytes of all files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.len()).sum()
    }

    /// The files' first name: what the user called them.
    pub(crate) fn name(&self) -> &Path {
        self.files.first().map_or(Path::new(""), |file| file.name())
    }

    pub(crate) fn sources(&self) -> impl Iterator<Item = &dyn Source> {
        self.files.iter().map(|file| &**file)
    }

    pub(crate) fn file_of(&self, tensor: &Stored) -> &dyn Source {
        &*self.files[tensor.file]
    }

    /// Fails where a file is not what was opened any more.
    pub(crate) fn intact(&self) -> Result<(), ConvertError> {
        self.files.iter().try_for_each(|file| file.intact()).map_err(Into::into)
    }

    /// Reads one file's header; gives its metadata.
    fn read(&mut self, file: usize, source: &dyn Source) -> Result<BTreeMap<String, String>, ConvertError> {
        let not = |reason: String| ConvertError::NotSafetensors { name: source.name().into(), reason };
        let len = source.len();
        if len < LENGTH as u64 {
            return Err(not(format!("it has {len} bytes, fewer than the header's length takes")));
        }
        let mut length = [0; LENGTH];
        source.read_into(0, &mut length)?;
        let json_len = u64::from_le_bytes(length);
        let start = LENGTH as u64;
        if json_len > MAX_HEADER {
            return Err(not(format!(
                "its first eight bytes declare a header of {json_len} bytes; at most {MAX_HEADER} are read"
            )));
        }
        if json_len > len - start {
            return Err(not(format!("truncated: its header of {json_len} bytes reaches past its end at {len}")));
        }
        let json = source.read(start..start + json_len)?;
        let parsed: Parsed =
            serde_json::from_slice(&json).map_err(|error| not(format!("its header is not right: {error}")))?;
        let data = start + json_len;
        let mut end = data;
        for (name, entry) in parsed.tensors {
            let shown = || format!("{:?}", Escaped(name.as_bytes()));
            let (from, to) = entry.data_offsets;
            let range = data.checked_add(from).zip(data.checked_add(to)).map(|(from, to)| from..to);
            let range = range.filter(|range| range.start <= range.end && range.end <= len).ok_or_else(|| {
                not(format!(
                    "truncated or corrupt: tensor {} at {from}..{to} of the data is not inside the file of {len} bytes",
                    shown()
                ))
            })?;
            end = end.max(range.end);
            let stored = Stored { file, dtype: entry.dtype, shape: entry.shape, range };
            if let Some(other) = self.tensors.get(&name) {
                return Err(not(format!("tensor {} is also in file {} of the folder", shown(), other.file + 1)));
            }
            self.tensors.insert(name, stored);
        }
        if end != len {
            return Err(not(format!("its tensors end at byte {end}, the file at {len}")));
        }
        Ok(parsed.metadata)
    }
}

/// A header as JSON; any dtype, since a file that we did not write may be compared.
#[derive(Default)]
struct Parsed {
    metadata: BTreeMap<String, String>,
    tensors: BTreeMap<String, AnyEntry>,
}

#[derive(serde::Deserialize)]
struct AnyEntry {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

impl<'de> serde::Deserialize<'de> for Parsed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map;

        impl<'de> Visitor<'de> for Map {
            type Value = Parsed;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parsed, A::Error> {
                let mut parsed = Parsed::default();
                while let Some(key) = map.next_key::<String>()? {
                    if key == "__metadata__" {
                        parsed.metadata = map.next_value()?;
                        continue;
                    }
                    match parsed.tensors.entry(key) {
                        btree_map::Entry::Vacant(entry) => entry.insert(map.next_value()?),
                        btree_map::Entry::Occupied(entry) => {
                            let shown = Escaped(entry.key().as_bytes());
                            return Err(A::Error::custom(format_args!("two tensors named {shown:?}")));
                        }
                    };
                }
                Ok(parsed)
            }
        }

        deserializer.deserialize_map(Map)
    }
}
