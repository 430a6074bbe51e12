//! Blocks of big-endian containers, brought into the little-endian layout that the decoders read.
//!
//! Which numbers of a block are swapped is defined by the tool that makes such containers,
//! gguf-py's `gguf-convert-endian`: the f16 scales of some types. What is one byte or a string of bits
//! stays as it is. Types that it does not know have no big-endian layout.

use gguf2st_gguf::GgmlType;

/// The numbers to swap in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Swap {
    /// The block is one number of so many bytes.
    Value(usize),
    /// Two-byte numbers at these offsets.
    Halves(&'static [usize]),
}

impl Swap {
    /// `None` for types without a big-endian layout.
    pub(crate) fn of(ggml_type: GgmlType) -> Option<Self> {
        Some(match ggml_type {
            GgmlType::F16 | GgmlType::BF16 => Self::Value(2),
            GgmlType::F32 => Self::Value(4),
            GgmlType::F64 => Self::Value(8),
            GgmlType::Q1_0 | GgmlType::Q4_0 | GgmlType::Q8_0 => Self::Halves(&[0]),
            GgmlType::Q4_K => Self::Halves(&[0, 2]),
            GgmlType::TQ2_0 => Self::Halves(&[64]),
            GgmlType::Q6_K => Self::Halves(&[208]),
            GgmlType::MXFP4 | GgmlType::NVFP4 => Self::Halves(&[]),
            _ => return None,
        })
    }

    /// Swaps in all blocks of `block_bytes` bytes each.
    pub(crate) fn apply(self, blocks: &mut [u8], block_bytes: usize) {
        match self {
            Self::Value(bytes) => blocks.chunks_exact_mut(bytes).for_each(<[u8]>::reverse),
            Self::Halves(offsets) => {
                for block in blocks.chunks_exact_mut(block_bytes) {
                    for &offset in offsets {
                        block.swap(offset, offset + 1);
                    }
                }
            }
        }
    }
}
