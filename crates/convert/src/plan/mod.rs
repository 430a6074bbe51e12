//! The whole conversion as a value, made from heads alone: which files there will be, which tensors each
//! holds, where each one's bytes go, and how they come to be. Nothing has moved yet.

mod gguf;
mod shards;

use std::collections::BTreeMap;
use std::ops::Range;

use gguf2st_gguf::{ByteOrder, GgmlType};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::dtype::Dtype;
use crate::error::ConvertError;

pub(crate) use gguf::{Choice, PartOfPlan, ReservedPart, gguf_layout, hex, sum};
pub use gguf::{PartFacts, RESERVED_TENSOR};
pub(crate) use shards::is_output_name;
pub use shards::{INDEX_FILE, Shard};

/// A conversion: what it is made of and what it makes. Integers and names only, so that its JSON is the same
/// on every machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Plan {
    /// Raised whenever the same plan would make other bytes.
    pub format: u32,
    /// The containers that tensors are made from, in order.
    pub parts: Vec<PartFacts>,
    /// Bytes that a shard was to have at the most; `None` for one file.
    pub shard_size: Option<u64>,
    /// The files, in order.
    pub shards: Vec<Shard>,
}

/// [`Plan::format`] of this version.
pub(crate) const FORMAT: u32 = 1;

impl Plan {
    /// SHA-256 of its JSON, in hexadecimal: two plans of one hash make the same bytes.
    #[must_use]
    pub fn hash(&self) -> String {
        let mut hash = Hash(Sha256::new());
        // Strings and numbers: serialising them can't fail, and a hash takes whatever it is given.
        let _ = serde_json::to_writer(&mut hash, self);
        hex(&hash.0.finalize())
    }

    /// Bytes of all files together.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.shards.iter().map(Shard::bytes).sum()
    }

    /// Tensors of all files together.
    #[must_use]
    pub fn tensor_count(&self) -> usize {
        self.tensors().count()
    }

    /// All tensors, shard by shard, in the order of their bytes.
    pub fn tensors(&self) -> impl Iterator<Item = &PlannedTensor> {
        self.shards.iter().flat_map(|shard| &shard.tensors)
    }
}

/// Hashes what is written to it.
struct Hash(Sha256);

impl std::io::Write for Hash {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
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
    /// Where its bytes go, from the end of its file's header.
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

/// How a tensor's bytes come to be: those of some pieces, one behind the other, changed unit by unit.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Recipe {
    /// Where the bytes are, none empty.
    pub pieces: Vec<Piece>,
    /// What is done with them.
    pub step: Step,
}

/// A run of a container's bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Piece {
    /// Position of the container in the plan.
    pub part: usize,
    /// The bytes, from the container's start.
    pub range: Range<u64>,
}

impl Piece {
    /// How many bytes it has.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }
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

/// A tensor of a plan in the making: what a planner decides, before places in files are given out.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Draft {
    pub(crate) name: String,
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<u64>,
    pub(crate) recipe: Recipe,
    pub(crate) note: Option<Note>,
}

/// What the metadata of a tensor's file says of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) enum Note {
    /// Quantised and kept as blocks, which its U8 bytes do not say.
    Blocks { ggml_type: String, dims: Vec<u64> },
    /// The reserved tensor: how it is laid out.
    Reserved(Vec<ReservedPart>),
}

impl Draft {
    fn bytes(&self) -> Result<u64, ConvertError> {
        let (from, to) = self.recipe.step.unit(self.dtype);
        let source = self.recipe.pieces.iter().try_fold(0_u64, |sum, piece| sum.checked_add(piece.bytes()));
        source.and_then(|source| (source / from).checked_mul(to)).ok_or(ConvertError::Overflow)
    }
}

/// One file of some tensors, for tests of what is written.
#[cfg(test)]
pub(crate) fn shard_of(metadata: &Metadata, drafts: Vec<Draft>) -> Result<Shard, ConvertError> {
    Ok(shards::lay_out(metadata, drafts, None)?.remove(0))
}

/// The string map of every file of a plan.
pub(crate) type Metadata = BTreeMap<String, String>;

/// A value of the string map that is JSON.
pub(crate) fn json(value: &impl Serialize) -> String {
    // Maps with string keys, numbers and strings: serialising them can't fail.
    serde_json::to_string(value).unwrap_or_default()
}
