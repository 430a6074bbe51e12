//! The dtypes of safetensors that conversions write.

use std::fmt;

use gguf2st_gguf::GgmlType;
use serde::{Deserialize, Serialize};

/// A safetensors dtype. Ordered as the `safetensors` crate orders tensors in a file: the widest alignment
/// last here, first there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Dtype {
    U8,
    I8,
    I16,
    F16,
    BF16,
    I32,
    F32,
    F64,
    I64,
}

impl Dtype {
    /// Bytes of one value.
    #[must_use]
    pub const fn size(self) -> u64 {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::I16 | Self::F16 | Self::BF16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::F64 | Self::I64 => 8,
        }
    }

    /// The name in a safetensors header.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::U8 => "U8",
            Self::I8 => "I8",
            Self::I16 => "I16",
            Self::F16 => "F16",
            Self::BF16 => "BF16",
            Self::I32 => "I32",
            Self::F32 => "F32",
            Self::F64 => "F64",
            Self::I64 => "I64",
        }
    }

    /// The dtype that stores values exactly as a plain ggml type does; `None` for blocks.
    #[must_use]
    pub fn of_plain(ggml_type: GgmlType) -> Option<Self> {
        Some(match ggml_type {
            GgmlType::F64 => Self::F64,
            GgmlType::F32 => Self::F32,
            GgmlType::F16 => Self::F16,
            GgmlType::BF16 => Self::BF16,
            GgmlType::I64 => Self::I64,
            GgmlType::I32 => Self::I32,
            GgmlType::I16 => Self::I16,
            GgmlType::I8 => Self::I8,
            _ => return None,
        })
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
