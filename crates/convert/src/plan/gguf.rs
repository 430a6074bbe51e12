//! The layout `gguf`: names as they are in the container, one output tensor for each of its tensors.

use std::ops::Range;

use bstr::ByteSlice;
use gguf2st_gguf::limits::MAX_HEAD;
use gguf2st_gguf::{ByteOrder, GgufFile, TensorInfo, Value, Verdict};
use gguf2st_quants::can_decode;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Draft, FORMAT, Metadata, Note, Piece, Plan, Recipe, Step, json, shards};
use crate::dtype::Dtype;
use crate::error::ConvertError;

/// The tensor that raw conversions add: of each container, the head verbatim, then all bytes that are neither
/// head nor tensor, in file order.
pub const RESERVED_TENSOR: &str = "__gguf2st__";

/// The name that safetensors keeps for its string map.
const METADATA_NAME: &str = "__metadata__";

/// What a plan says of a container: nothing that differs between runs or machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PartFacts {
    /// The last component of its path.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// SHA-256 of its head, in hexadecimal.
    pub head_sha256: String,
}

/// A container that is planned: its head, and what the plan says of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartOfPlan<'a, H> {
    pub(crate) file: &'a GgufFile<H>,
    pub(crate) facts: &'a PartFacts,
}

/// What becomes of one tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Plain types keep their dtype, blocks stay blocks.
    AsStored,
    /// Floats of this dtype.
    Floats(Dtype),
}

/// What there is to a container beside its tensors, for restoring it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReservedPart {
    /// Its file's name.
    pub(crate) name: String,
    /// Its length.
    pub(crate) bytes: u64,
    /// Bytes of its head.
    pub(crate) head: u64,
    /// SHA-256 of its head, in hexadecimal.
    pub(crate) head_sha256: String,
    /// Bytes of all that is neither head nor tensor; where they belong follows from the head.
    pub(crate) gaps: u64,
}

/// Plans the tensors of the parts of one model. `choose` says what becomes of each; `restorable` adds the
/// reserved tensor.
pub(crate) fn gguf_layout<H: AsRef<[u8]>>(
    parts: &[PartOfPlan<'_, H>],
    restorable: bool,
    shard_size: Option<u64>,
    choose: impl Fn(&TensorInfo<'_>, &str) -> Choice,
) -> Result<Plan, ConvertError> {
    let mut drafts = Vec::new();
    for (position, part) in parts.iter().enumerate() {
        refuse_unsound(part)?;
        for tensor in part.file.tensors().iter() {
            let name = tensor.name.to_str_lossy().into_owned();
            if name == RESERVED_TENSOR || name == METADATA_NAME {
                return Err(ConvertError::ReservedName { tensor: name });
            }
            let range = part.file.byte_range(&tensor).map_err(|error| ConvertError::parse(&part.facts.name, error))?;
            let pieces = pieces(position, range);
            let draft = match choose(&tensor, &name) {
                Choice::Floats(dtype) if Dtype::of_plain(tensor.ggml_type) != Some(dtype) => {
                    can_decode(tensor.ggml_type, part.file.byte_order())
                        .map_err(|error| ConvertError::Decode { tensor: name.clone(), error })?;
                    let step = Step::Decode { ggml_type: tensor.ggml_type, order: part.file.byte_order() };
                    Draft { name, dtype, shape: tensor.shape(), recipe: Recipe { pieces, step }, note: None }
                }
                Choice::Floats(_) | Choice::AsStored => as_stored(part.file.byte_order(), &tensor, name, pieces)
                    .map_err(|error| ConvertError::parse(&part.facts.name, error))?,
            };
            drafts.push(draft);
        }
    }
    let mut metadata = metadata(parts)?;
    if restorable {
        drafts.push(reserved(parts)?);
    }
    let facts: Vec<PartFacts> = parts.iter().map(|part| part.facts.clone()).collect();
    if shard_size.is_some() {
        // So that shards made on different machines are known to belong together.
        let plan = json(&(FORMAT, &facts, shard_size, &drafts));
        metadata.insert("gguf2st.plan".to_owned(), hex(&Sha256::digest(plan)));
    }
    let shards = shards::lay_out(&metadata, drafts, shard_size)?;
    Ok(Plan { format: FORMAT, parts: facts, shard_size, shards })
}

/// A failed check is a refusal, so that `check` tells beforehand what conversions refuse.
fn refuse_unsound<H: AsRef<[u8]>>(part: &PartOfPlan<'_, H>) -> Result<(), ConvertError> {
    match part.file.check().into_iter().find(|check| check.verdict == Verdict::Fail) {
        None => Ok(()),
        Some(check) => {
            Err(ConvertError::Unsound { name: (&part.facts.name).into(), check: check.name, detail: check.detail })
        }
    }
}

fn pieces(part: usize, range: Range<u64>) -> Vec<Piece> {
    if range.is_empty() { Vec::new() } else { vec![Piece { part, range }] }
}

fn as_stored(
    order: ByteOrder,
    tensor: &TensorInfo<'_>,
    name: String,
    pieces: Vec<Piece>,
) -> Result<Draft, gguf2st_gguf::ParserError> {
    let mut shape = tensor.shape();
    let (dtype, step) = match Dtype::of_plain(tensor.ggml_type) {
        Some(dtype) if order == ByteOrder::Big && dtype.size() > 1 => (dtype, Step::Swap { width: dtype.size() }),
        Some(dtype) => (dtype, Step::Copy),
        None => {
            // Rows of blocks: the last, fastest axis counts bytes instead of values.
            let row_bytes = tensor.row_bytes()?;
            match shape.last_mut() {
                Some(row) => *row = row_bytes,
                None => shape.push(row_bytes),
            }
            (Dtype::U8, Step::Copy)
        }
    };
    let (ggml_type, dims) = (tensor.ggml_type.to_string(), tensor.dims.to_vec());
    let note = tensor.ggml_type.is_quantized().then_some(Note::Blocks { ggml_type, dims });
    Ok(Draft { name, dtype, shape, recipe: Recipe { pieces, step }, note })
}

fn reserved<H: AsRef<[u8]>>(parts: &[PartOfPlan<'_, H>]) -> Result<Draft, ConvertError> {
    let (mut all, mut layout) = (Vec::new(), Vec::new());
    for (position, part) in parts.iter().enumerate() {
        let head = part.file.head_len();
        if head > MAX_HEAD {
            let detail = format!("the head takes {head} bytes, padding included; at most {MAX_HEAD} are restored");
            return Err(ConvertError::Unsound { name: (&part.facts.name).into(), check: "alignment", detail });
        }
        let gaps = part.file.gaps().map_err(|error| ConvertError::parse(&part.facts.name, error))?;
        layout.push(ReservedPart {
            name: part.facts.name.clone(),
            bytes: part.facts.bytes,
            head,
            head_sha256: part.facts.head_sha256.clone(),
            gaps: sum(gaps.iter().map(|gap| gap.end - gap.start))?,
        });
        all.extend(pieces(position, 0..head));
        all.extend(gaps.into_iter().map(|range| Piece { part: position, range }));
    }
    Ok(Draft {
        name: RESERVED_TENSOR.to_owned(),
        dtype: Dtype::U8,
        shape: vec![sum(all.iter().map(Piece::bytes))?],
        recipe: Recipe { pieces: all, step: Step::Copy },
        note: Some(Note::Reserved(layout)),
    })
}

/// A sum of numbers that a file may have chosen.
pub(crate) fn sum(numbers: impl IntoIterator<Item = u64>) -> Result<u64, ConvertError> {
    numbers.into_iter().try_fold(0_u64, u64::checked_add).ok_or(ConvertError::Overflow)
}

/// The string map: scalars and strings of the first container, and what we say of the conversion.
fn metadata<H: AsRef<[u8]>>(parts: &[PartOfPlan<'_, H>]) -> Result<Metadata, ConvertError> {
    let mut metadata = Metadata::from([
        ("format".to_owned(), "pt".to_owned()),
        ("gguf2st.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
    ]);
    let Some(first) = parts.first() else { return Ok(metadata) };
    let bytes = sum(parts.iter().map(|part| part.facts.bytes))?;
    metadata.insert("gguf2st.source".to_owned(), first.facts.name.clone());
    metadata.insert("gguf2st.source_bytes".to_owned(), bytes.to_string());
    metadata.insert("gguf2st.head_sha256".to_owned(), first.facts.head_sha256.clone());
    metadata.extend(first.file.metadata().iter().filter_map(|(key, value)| {
        let text = match value {
            Value::Array(_) => return None,
            // As `inspect --json` shows bytes that are not UTF-8.
            Value::String(text) => {
                text.to_str().map_or_else(|_| format!("{{\"bytes\":\"{}\"}}", hex(text)), str::to_owned)
            }
            scalar => scalar.to_string(),
        };
        Some((format!("gguf.{}", key.to_str_lossy()), text))
    }));
    Ok(metadata)
}

impl PartFacts {
    /// What a plan says of a container by its name, length and the hash of its whole head.
    pub(crate) fn new(name: String, bytes: u64, head: Sha256) -> Self {
        Self { name, bytes, head_sha256: hex(&head.finalize()) }
    }
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
