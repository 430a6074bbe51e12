//! The whole conversion as a value, made from heads alone: which tensors the output holds, where each one's
//! bytes go, and how they come to be. Nothing has moved yet.

mod gguf;

use std::collections::BTreeMap;
use std::ops::Range;

use gguf2st_gguf::{ByteOrder, GgmlType};
use serde::Serialize;

use crate::dtype::Dtype;
use crate::error::ConvertError;
use crate::safetensors;

pub(crate) use gguf::{Choice, gguf_layout, hex};
pub use gguf::{RESERVED_TENSOR, SourceFacts};

/// A conversion: one safetensors file and how each of its tensors is made.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Plan {
    /// What becomes the file's `__metadata__`, in the order it is written.
    pub metadata: BTreeMap<String, String>,
    /// The tensors in the order of their bytes.
    pub tensors: Vec<PlannedTensor>,
    /// The file's first bytes: the length of the header and the header.
    #[serde(skip)]
    pub head: Vec<u8>,
    /// Bytes of the whole file.
    pub bytes: u64,
}

/// One tensor of the output.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PlannedTensor {
    /// Its name.
    pub name: String,
    /// Its dtype.
    pub dtype: Dtype,
    /// Its shape, row-major.
    pub shape: Vec<u64>,
    /// Where its bytes go, from the end of the header.
    pub offsets: Range<u64>,
    /// How they come to be.
    pub recipe: Recipe,
}

impl PlannedTensor {
    /// Bytes in the output.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.offsets.end - self.offsets.start
    }
}

/// How a tensor's bytes come to be: those of some ranges of the source, one behind the other, changed unit by
/// unit.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Recipe {
    /// Where the bytes are in the source, not empty.
    pub pieces: Vec<Range<u64>>,
    /// What is done with them.
    pub step: Step,
}

/// What is done with a source's bytes on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Step {
    /// Nothing.
    Copy,
    /// The bytes of each number are reversed: the source is big-endian.
    Swap {
        /// Bytes a number.
        width: u64,
    },
    /// Blocks or floats become floats of the output's dtype.
    Decode {
        /// How they are stored.
        #[serde(serialize_with = "ggml_type_name")]
        ggml_type: GgmlType,
        /// The order of their bytes.
        #[serde(serialize_with = "byte_order_name")]
        order: ByteOrder,
    },
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn ggml_type_name<S: serde::Serializer>(ggml_type: &GgmlType, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(ggml_type)
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn byte_order_name<S: serde::Serializer>(order: &ByteOrder, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(order.name())
}

impl Step {
    /// The smallest unit that can be made by itself: its bytes in the source and in an output of `dtype`.
    #[must_use]
    pub fn unit(self, dtype: Dtype) -> (u64, u64) {
        match self {
            Self::Copy => (1, 1),
            Self::Swap { width } => (width, width),
            Self::Decode { ggml_type, .. } => {
                (ggml_type.type_size().unwrap_or(1), ggml_type.block_size().unwrap_or(1) * dtype.size())
            }
        }
    }
}

/// A tensor of a plan in the making: what a planner decides, before places in the file are given out.
pub(crate) struct Draft {
    pub(crate) name: String,
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<u64>,
    pub(crate) recipe: Recipe,
}

impl Draft {
    fn bytes(&self) -> Result<u64, ConvertError> {
        let (from, to) = self.recipe.step.unit(self.dtype);
        let source = self.recipe.pieces.iter().try_fold(0_u64, |sum, piece| sum.checked_add(piece.end - piece.start));
        source.and_then(|source| (source / from).checked_mul(to)).ok_or(ConvertError::Overflow)
    }
}

impl Plan {
    /// Gives each tensor its place and makes the header.
    pub(crate) fn lay_out(metadata: BTreeMap<String, String>, mut drafts: Vec<Draft>) -> Result<Self, ConvertError> {
        drafts.sort_by(|a, b| b.dtype.cmp(&a.dtype).then_with(|| a.name.cmp(&b.name)));
        let mut end = 0_u64;
        let mut tensors = Vec::with_capacity(drafts.len());
        for draft in drafts {
            let start = end;
            end = start.checked_add(draft.bytes()?).ok_or(ConvertError::Overflow)?;
            let Draft { name, dtype, shape, recipe } = draft;
            tensors.push(PlannedTensor { name, dtype, shape, offsets: start..end, recipe });
        }
        let head = safetensors::head(&metadata, &tensors)?;
        let bytes = end.checked_add(head.len() as u64).ok_or(ConvertError::Overflow)?;
        Ok(Self { metadata, tensors, head, bytes })
    }
}
