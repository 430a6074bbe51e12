//! The blocks: one file a family, and in it for each type its layout, drawn, and its one plain
//! decoder, which is the definition that every faster kernel is tested against.
//!
//! How to read the pictures: bytes lie in file order from left to right, with their offsets above;
//! within a byte (or a little-endian number) bits are drawn from the highest to the lowest. `f16` is a
//! little-endian IEEE half. "Value *i*" counts from 0 within the block.
//!
//! The order of operations is ggml's, so that results are equal bit for bit: `dl * q - ml` is a
//! product rounded to float32 and then a difference rounded to float32. Rust never contracts the two
//! into a fused multiply-add, which would round once; ggml's C is compiled so that it does not either.

pub(crate) mod binary;
pub(crate) mod iq1;
pub(crate) mod iq2;
pub(crate) mod iq3;
pub(crate) mod iq4;
pub(crate) mod k;
pub(crate) mod legacy;
pub(crate) mod micro;
pub(crate) mod plain;
pub(crate) mod ternary;

use bytemuck::Pod;
use gguf2st_gguf::GgmlType;
use half::f16;

use crate::float;
use crate::kernels::Kernel;
use crate::target::Target;

use binary::{Q1_0, Q2_0};
use iq1::{IQ1_M, IQ1_S};
use iq2::{IQ2_S, IQ2_XS, IQ2_XXS};
use iq3::{IQ3_S, IQ3_XXS};
use iq4::{IQ4_NL, IQ4_XS};
use k::{Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, Q8_K};
use legacy::{Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q8_1};
use micro::{MXFP4, NVFP4};
use ternary::{TQ1_0, TQ2_0};

/// A block of `N` values.
pub(crate) trait Block<const N: usize>: Pod {
    /// Writes the float32 values that ggml's C reference gives.
    fn decode(&self, y: &mut [f32; N]);
}

/// Declares a block: its fields in file order, which can be byte arrays only, and its size.
macro_rules! block {
    (
        $(#[$doc:meta])*
        $name:ident: $bytes:literal bytes {
            $($(#[$field_doc:meta])* $field:ident: [u8; $len:expr],)*
        }
    ) => {
        $(#[$doc])*
        #[allow(non_camel_case_types, reason = "spelt as ggml spells it")]
        #[derive(Clone, Copy)]
        #[repr(C)]
        pub(crate) struct $name {
            $($(#[$field_doc])* pub(crate) $field: [u8; $len],)*
        }

        const _: () = assert!(size_of::<$name>() == $bytes && align_of::<$name>() == 1);

        // SAFETY: the macro takes no fields but byte arrays: any bytes are valid ones, zeros too.
        unsafe impl bytemuck::Zeroable for $name {}

        // SAFETY: as above; and `repr(C)` of byte arrays has no padding and no wish for alignment.
        unsafe impl bytemuck::Pod for $name {}
    };
}
use block;

/// The plain decoder of a type; `None` for types that have no float values or are unknown.
///
/// The length of the blocks must be whole and the output must have their number of values.
pub(crate) fn kernel<T: Target>(ggml_type: GgmlType) -> Option<Kernel<T>> {
    Some(match ggml_type {
        GgmlType::F32 => plain::f32_to::<T>,
        GgmlType::F16 => plain::f16_to::<T>,
        GgmlType::BF16 => plain::bf16_to::<T>,
        GgmlType::F64 => plain::f64_to::<T>,
        GgmlType::Q4_0 => decode_blocks::<Q4_0, T, 32>,
        GgmlType::Q4_1 => decode_blocks::<Q4_1, T, 32>,
        GgmlType::Q5_0 => decode_blocks::<Q5_0, T, 32>,
        GgmlType::Q5_1 => decode_blocks::<Q5_1, T, 32>,
        GgmlType::Q8_0 => decode_blocks::<Q8_0, T, 32>,
        GgmlType::Q8_1 => decode_blocks::<Q8_1, T, 32>,
        GgmlType::Q2_K => decode_blocks::<Q2_K, T, 256>,
        GgmlType::Q3_K => decode_blocks::<Q3_K, T, 256>,
        GgmlType::Q4_K => decode_blocks::<Q4_K, T, 256>,
        GgmlType::Q5_K => decode_blocks::<Q5_K, T, 256>,
        GgmlType::Q6_K => decode_blocks::<Q6_K, T, 256>,
        GgmlType::Q8_K => decode_blocks::<Q8_K, T, 256>,
        GgmlType::IQ1_S => decode_blocks::<IQ1_S, T, 256>,
        GgmlType::IQ1_M => decode_blocks::<IQ1_M, T, 256>,
        GgmlType::IQ2_XXS => decode_blocks::<IQ2_XXS, T, 256>,
        GgmlType::IQ2_XS => decode_blocks::<IQ2_XS, T, 256>,
        GgmlType::IQ2_S => decode_blocks::<IQ2_S, T, 256>,
        GgmlType::IQ3_XXS => decode_blocks::<IQ3_XXS, T, 256>,
        GgmlType::IQ3_S => decode_blocks::<IQ3_S, T, 256>,
        GgmlType::IQ4_NL => decode_blocks::<IQ4_NL, T, 32>,
        GgmlType::IQ4_XS => decode_blocks::<IQ4_XS, T, 256>,
        GgmlType::TQ1_0 => decode_blocks::<TQ1_0, T, 256>,
        GgmlType::TQ2_0 => decode_blocks::<TQ2_0, T, 256>,
        GgmlType::MXFP4 => decode_blocks::<MXFP4, T, 32>,
        GgmlType::NVFP4 => decode_blocks::<NVFP4, T, 64>,
        GgmlType::Q1_0 => decode_blocks::<Q1_0, T, 128>,
        GgmlType::Q2_0 => decode_blocks::<Q2_0, T, 64>,
        _ => return None,
    })
}

fn decode_blocks<B: Block<N>, T: Target, const N: usize>(blocks: &[u8], out: &mut [T]) {
    let blocks: &[B] = bytemuck::cast_slice(blocks);
    for (block, values) in blocks.iter().zip(out.as_chunks_mut::<N>().0) {
        T::write(values, |y| block.decode(y));
    }
}

/// A little-endian half, widened.
#[inline(always)]
pub(crate) fn half(bytes: [u8; 2]) -> f32 {
    float::f16_to_f32(f16::from_le_bytes(bytes))
}

/// The low and the high four bits of a byte.
#[inline(always)]
const fn nibbles(byte: u8) -> (u8, u8) {
    (byte & 0x0f, byte >> 4)
}

/// The bytes from `at` on as an array: fields within a block's arrays.
#[inline(always)]
pub(crate) fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}
