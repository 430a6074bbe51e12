//! The output format: a header of JSON behind its length, then the tensors' bytes.
//!
//! What is written is, byte for byte, what the `safetensors` crate writes with its metadata keys sorted.

use std::collections::{BTreeMap, btree_map};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use gguf2st_gguf::Escaped;
use gguf2st_source::{FileSource, Source};
use serde::Serialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};

use crate::cores::blame;
use crate::dtype::Dtype;
use crate::error::ConvertError;
use crate::folder::{is_output_name, names};
use crate::plan::{INDEX_FILE, PlannedTensor};

/// Bytes of JSON that the `safetensors` crate reads at the most.
const MAX_HEADER: u64 = 100_000_000;

/// Bytes of the length before the JSON, and what the JSON is padded to.
const LENGTH: usize = 8;

#[derive(Serialize, serde::Deserialize)]
struct Entry {
    dtype: Dtype,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

struct Header<'a> {
    metadata: &'a BTreeMap<String, String>,
    tensors: &'a [PlannedTensor],
}

impl Serialize for Header<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.tensors.len() + 1))?;
        map.serialize_entry("__metadata__", self.metadata)?;
        for tensor in self.tensors {
            let Range { start, end } = tensor.offsets;
            let entry = Entry { dtype: tensor.dtype, shape: tensor.shape.clone(), data_offsets: (start, end) };
            map.serialize_entry(&tensor.name, &entry)?;
        }
        map.end()
    }
}

/// The file's first bytes: length, JSON, and spaces up to a multiple of eight.
pub(crate) fn head(metadata: &BTreeMap<String, String>, tensors: &[PlannedTensor]) -> Result<Vec<u8>, ConvertError> {
    let mut head = vec![0; LENGTH];
    // Strings, numbers and maps with string keys, into memory: serialising them can't fail.
    if serde_json::to_writer(&mut head, &Header { metadata, tensors }).is_err() {
        return Err(ConvertError::Overflow);
    }
    head.resize(head.len().next_multiple_of(LENGTH), b' ');
    let bytes = (head.len() - LENGTH) as u64;
    if bytes > MAX_HEADER {
        return Err(ConvertError::HeaderTooLarge { bytes, limit: MAX_HEADER });
    }
    head[..LENGTH].copy_from_slice(&bytes.to_le_bytes());
    Ok(head)
}

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
    /// The first file's.
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
            let metadata = blame(&[&**source], weights.read(position, &**source))?;
            if position == 0 {
                weights.metadata = metadata;
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

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use safetensors::tensor::TensorView;

    use super::*;
    use crate::plan::{Draft, Piece, Recipe, Step, shard_of};

    /// With one metadata key the crate's hash order has nothing to choose.
    #[test]
    fn a_file_is_the_crates_to_the_byte() {
        let tensors = [
            ("b", Dtype::F32, vec![2, 1]),
            ("a", Dtype::F32, vec![]),
            ("z \u{7f}\u{1f999}\"\n", Dtype::U8, vec![3]),
            ("empty", Dtype::I64, vec![0, 4]),
            ("half", Dtype::F16, vec![5]),
            ("brain", Dtype::BF16, vec![1, 1, 1, 1]),
            ("wide", Dtype::F64, vec![1]),
            ("ids", Dtype::I32, vec![1]),
            ("short", Dtype::I16, vec![3]),
            ("byte", Dtype::I8, vec![1]),
        ];
        let bytes = |dtype: Dtype, shape: &[u64]| dtype.size() * shape.iter().product::<u64>();
        let metadata = BTreeMap::from([("format".to_owned(), "p\u{2028}t".to_owned())]);
        let drafts = tensors.iter().map(|(name, dtype, shape)| Draft {
            name: (*name).to_owned(),
            dtype: *dtype,
            shape: shape.clone(),
            recipe: Recipe { pieces: vec![Piece { part: 0, range: 0..bytes(*dtype, shape) }], step: Step::Copy },
        });
        let shard = shard_of(&metadata, drafts.collect()).unwrap();

        let zeros = [0; 64];
        let views = tensors.iter().map(|(name, dtype, shape)| {
            let theirs: safetensors::Dtype = serde_json::from_value(serde_json::json!(dtype.name())).unwrap();
            let shape: Vec<usize> = shape.iter().map(|extent| usize::try_from(*extent).unwrap()).collect();
            let len =
                usize::try_from(bytes(*dtype, &shape.iter().map(|extent| *extent as u64).collect::<Vec<_>>())).unwrap();
            (*name, TensorView::new(theirs, shape, &zeros[..len]).unwrap())
        });
        let theirs = safetensors::serialize(views, Some(HashMap::from_iter(metadata))).unwrap();
        let mut ours = shard.head.clone();
        ours.resize(usize::try_from(shard.bytes()).unwrap(), 0);
        assert_eq!(String::from_utf8_lossy(&ours), String::from_utf8_lossy(&theirs));
    }

    #[test]
    fn a_header_that_readers_would_not_take_is_refused() {
        let metadata = BTreeMap::from([("a".to_owned(), "x".repeat(100_000_000))]);
        assert!(matches!(head(&metadata, &[]), Err(ConvertError::HeaderTooLarge { bytes: 100_000_032, .. })));
    }
}
