//! The output format: a header of JSON behind its length, then the tensors' bytes.
//!
//! What is written is, byte for byte, what the `safetensors` crate writes with its metadata keys sorted.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::dtype::Dtype;
use crate::error::ConvertError;
use crate::plan::PlannedTensor;

/// Bytes of JSON that the `safetensors` crate reads at the most.
pub(crate) const MAX_HEADER: u64 = 100_000_000;

/// Bytes of the length before the JSON, and what the JSON is padded to.
pub(crate) const LENGTH: usize = 8;

#[derive(Serialize)]
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
            note: None,
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
