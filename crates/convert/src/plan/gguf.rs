//! The layout `gguf`: names as they are in the container, one output tensor for each of its tensors.

use std::collections::BTreeMap;
use std::ops::Range;

use bstr::ByteSlice;
use gguf2st_gguf::{ByteOrder, GgufFile, TensorInfo, Value, Verdict};
use gguf2st_quants::can_decode;
use serde::Serialize;

use super::{Draft, Plan, Recipe, Step};
use crate::dtype::Dtype;
use crate::error::ConvertError;

/// The tensor that raw conversions add: the head verbatim, then all bytes that are neither head nor tensor,
/// in file order.
pub const RESERVED_TENSOR: &str = "__gguf2st__";

/// The name that safetensors keeps for its string map.
const METADATA_NAME: &str = "__metadata__";

/// What a plan says of its source beside the head: nothing that differs between runs or machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceFacts {
    /// The last component of its path.
    pub name: String,
    /// SHA-256 of its head, in hexadecimal.
    pub head_sha256: String,
}

/// What becomes of one tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Plain types keep their dtype, blocks stay blocks.
    AsStored,
    /// Floats of this dtype.
    Floats(Dtype),
}

/// Plans one file. `choose` says what becomes of each tensor; `restorable` adds the reserved tensor.
pub(crate) fn gguf_layout<H: AsRef<[u8]>>(
    file: &GgufFile<H>,
    facts: &SourceFacts,
    restorable: bool,
    choose: impl Fn(&TensorInfo<'_>, &str) -> Choice,
) -> Result<Plan, ConvertError> {
    refuse_unsound(file, facts)?;
    let mut drafts = Vec::with_capacity(file.tensors().len() + 1);
    let mut blocks = BTreeMap::new();
    for tensor in file.tensors().iter() {
        let name = tensor.name.to_str_lossy().into_owned();
        if name == RESERVED_TENSOR || name == METADATA_NAME {
            return Err(ConvertError::ReservedName { tensor: name });
        }
        let draft = match choose(&tensor, &name) {
            Choice::AsStored => {
                if tensor.ggml_type.is_quantized() {
                    let (ggml_type, dims) = (tensor.ggml_type.to_string(), tensor.dims.to_vec());
                    blocks.insert(name.clone(), Blocks { ggml_type, dims });
                }
                as_stored(file, &tensor, name)
            }
            Choice::Floats(dtype) => {
                can_decode(tensor.ggml_type, file.byte_order())
                    .map_err(|error| ConvertError::Decode { tensor: name.clone(), error })?;
                floats(file, &tensor, name, dtype)
            }
        };
        drafts.push(draft.map_err(|error| ConvertError::parse(&facts.name, error))?);
    }
    let mut metadata = metadata(file, facts);
    if !blocks.is_empty() {
        metadata.insert("gguf2st.blocks".to_owned(), json(&blocks));
    }
    if restorable {
        let (draft, layout) = reserved(file).map_err(|error| ConvertError::parse(&facts.name, error))?;
        metadata.insert("gguf2st.reserved".to_owned(), json(&layout));
        drafts.push(draft);
    }
    Plan::lay_out(metadata, drafts)
}

/// A failed check is a refusal, so that `check` tells beforehand what conversions refuse.
fn refuse_unsound<H: AsRef<[u8]>>(file: &GgufFile<H>, facts: &SourceFacts) -> Result<(), ConvertError> {
    match file.check().into_iter().find(|check| check.verdict == Verdict::Fail) {
        None => Ok(()),
        Some(check) => {
            Err(ConvertError::Unsound { name: (&facts.name).into(), check: check.name, detail: check.detail })
        }
    }
}

/// What a quantised tensor kept as blocks is: its U8 bytes do not say.
#[derive(Serialize)]
struct Blocks {
    ggml_type: String,
    dims: Vec<u64>,
}

/// How the reserved tensor is laid out.
#[derive(Serialize)]
struct Reserved {
    /// Bytes of the head, with which it begins.
    head: u64,
    /// Bytes of all that is neither head nor tensor; where they belong follows from the head.
    gaps: u64,
}

fn json(value: &impl Serialize) -> String {
    // Maps with string keys, numbers and strings: serialising them can't fail.
    serde_json::to_string(value).unwrap_or_default()
}

type Parsed<T> = Result<T, gguf2st_gguf::ParserError>;

fn pieces(range: Range<u64>) -> Vec<Range<u64>> {
    if range.is_empty() { Vec::new() } else { vec![range] }
}

fn as_stored<H: AsRef<[u8]>>(file: &GgufFile<H>, tensor: &TensorInfo<'_>, name: String) -> Parsed<Draft> {
    let range = file.byte_range(tensor)?;
    let mut shape = tensor.shape();
    let (dtype, step) = match Dtype::of_plain(tensor.ggml_type) {
        Some(dtype) if file.byte_order() == ByteOrder::Big && dtype.size() > 1 => {
            (dtype, Step::Swap { width: dtype.size() })
        }
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
    Ok(Draft { name, dtype, shape, recipe: Recipe { pieces: pieces(range), step } })
}

fn floats<H: AsRef<[u8]>>(file: &GgufFile<H>, tensor: &TensorInfo<'_>, name: String, dtype: Dtype) -> Parsed<Draft> {
    if Dtype::of_plain(tensor.ggml_type) == Some(dtype) {
        return as_stored(file, tensor, name);
    }
    let step = Step::Decode { ggml_type: tensor.ggml_type, order: file.byte_order() };
    let recipe = Recipe { pieces: pieces(file.byte_range(tensor)?), step };
    Ok(Draft { name, dtype, shape: tensor.shape(), recipe })
}

fn reserved<H: AsRef<[u8]>>(file: &GgufFile<H>) -> Parsed<(Draft, Reserved)> {
    let gaps = file.gaps()?;
    let layout = Reserved { head: file.head_len(), gaps: gaps.iter().map(|gap| gap.end - gap.start).sum() };
    let mut pieces = pieces(0..file.head_len());
    pieces.extend(gaps);
    let draft = Draft {
        name: RESERVED_TENSOR.to_owned(),
        dtype: Dtype::U8,
        shape: vec![layout.head + layout.gaps],
        recipe: Recipe { pieces, step: Step::Copy },
    };
    Ok((draft, layout))
}

/// The string map: scalars and strings of the container, and what we say of the conversion.
fn metadata<H: AsRef<[u8]>>(file: &GgufFile<H>, facts: &SourceFacts) -> BTreeMap<String, String> {
    let ours = [
        ("format", "pt".to_owned()),
        ("gguf2st.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("gguf2st.source", facts.name.clone()),
        ("gguf2st.source_bytes", file.container_len().to_string()),
        ("gguf2st.head_sha256", facts.head_sha256.clone()),
    ];
    let theirs = file.metadata().iter().filter_map(|(key, value)| {
        let text = match value {
            Value::Array(_) => return None,
            // As `inspect --json` shows bytes that are not UTF-8.
            Value::String(text) => {
                text.to_str().map_or_else(|_| format!("{{\"bytes\":\"{}\"}}", hex(text)), str::to_owned)
            }
            scalar => scalar.to_string(),
        };
        Some((format!("gguf.{}", key.to_str_lossy()), text))
    });
    ours.into_iter().map(|(key, value)| (key.to_owned(), value)).chain(theirs).collect()
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
