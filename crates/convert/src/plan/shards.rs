//! Tensors given out to files, and each its place in one.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Draft, Metadata, Note, PlannedTensor, json};
use crate::error::ConvertError;
use crate::safetensors;

/// The file that says which tensor is in which shard, by the name that Hugging Face's tools look for.
pub const INDEX_FILE: &str = "model.safetensors.index.json";

/// One safetensors file of a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Shard {
    /// Its name in a folder: `model.safetensors`, or `model-00001-of-0000N.safetensors`.
    pub file: String,
    /// What becomes its `__metadata__`, in the order it is written.
    pub metadata: Metadata,
    /// Its tensors, in the order of their bytes.
    pub tensors: Vec<PlannedTensor>,
    /// Its first bytes: the length of the header and the header.
    #[serde(skip)]
    pub head: Vec<u8>,
}

impl Shard {
    /// Bytes of the file.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.head.len() as u64 + self.tensors.last().map_or(0, |tensor| tensor.offsets.end)
    }
}

/// Gives the tensors out to files of at most `shard_size` bytes of tensors, in their order; one that is larger
/// gets a file of its own.
pub(super) fn lay_out(
    metadata: &Metadata,
    drafts: Vec<Draft>,
    shard_size: Option<u64>,
) -> Result<Vec<Shard>, ConvertError> {
    let limit = shard_size.unwrap_or(u64::MAX);
    let mut groups: Vec<Vec<Draft>> = Vec::new();
    let mut filled = 0_u64;
    for draft in drafts {
        let bytes = draft.bytes()?;
        match groups.last_mut() {
            Some(group) if filled.checked_add(bytes).is_some_and(|sum| sum <= limit) => group.push(draft),
            _ => {
                groups.push(vec![draft]);
                filled = 0;
            }
        }
        filled = filled.saturating_add(bytes);
    }
    if groups.is_empty() {
        groups.push(Vec::new());
    }
    let count = groups.len();
    groups.into_iter().enumerate().map(|(position, group)| shard(file_name(position, count), metadata, group)).collect()
}

fn file_name(position: usize, count: usize) -> String {
    if count == 1 {
        "model.safetensors".to_owned()
    } else {
        format!("model-{:05}-of-{count:05}.safetensors", position + 1)
    }
}

/// Whether a file name is one that conversions into folders write.
pub(crate) fn is_output_name(name: &str) -> bool {
    let is_shard = |name: &str| {
        let number = |digits: &str| digits.len() >= 5 && digits.bytes().all(|digit| digit.is_ascii_digit());
        let middle = name.strip_prefix("model-").and_then(|rest| rest.strip_suffix(".safetensors"));
        middle.and_then(|middle| middle.split_once("-of-")).is_some_and(|(part, count)| number(part) && number(count))
    };
    name == "model.safetensors" || name == INDEX_FILE || is_shard(name)
}

/// A member of `gguf2st.blocks`.
#[derive(Serialize)]
struct Blocks {
    ggml_type: String,
    dims: Vec<u64>,
}

/// Gives each tensor its place, by the `safetensors` crate's order, and makes the header.
fn shard(file: String, metadata: &Metadata, mut drafts: Vec<Draft>) -> Result<Shard, ConvertError> {
    drafts.sort_by(|a, b| b.dtype.cmp(&a.dtype).then_with(|| a.name.cmp(&b.name)));
    let mut end = 0_u64;
    let mut tensors = Vec::with_capacity(drafts.len());
    // What is said of a tensor is said in its own file: the others would only grow by it.
    let (mut metadata, mut blocks) = (metadata.clone(), BTreeMap::new());
    for draft in drafts {
        let start = end;
        end = start.checked_add(draft.bytes()?).ok_or(ConvertError::Overflow)?;
        let Draft { name, dtype, shape, recipe, note } = draft;
        match note {
            Some(Note::Blocks { ggml_type, dims }) => {
                blocks.insert(name.clone(), Blocks { ggml_type, dims });
            }
            Some(Note::Reserved(parts)) => {
                metadata.insert("gguf2st.reserved".to_owned(), json(&parts));
            }
            None => {}
        }
        tensors.push(PlannedTensor { name, dtype, shape, offsets: start..end, recipe });
    }
    if !blocks.is_empty() {
        metadata.insert("gguf2st.blocks".to_owned(), json(&blocks));
    }
    let head = safetensors::head(&metadata, &tensors)?;
    end.checked_add(head.len() as u64).ok_or(ConvertError::Overflow)?;
    Ok(Shard { file, metadata, tensors, head })
}
