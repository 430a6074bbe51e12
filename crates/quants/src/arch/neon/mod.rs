//! 64-bit Arm with NEON, which nearly all of them have: what the compiler may assume, it need not detect.
//!
//! The types that most models come in. They are unpacked to a byte a quant by plain code on byte arrays,
//! which the compiler vectorises well, and widened by intrinsics. The other types, and F16, BF16 and F32,
//! are left to the compiler.

mod lanes;
mod unpack;

use gguf2st_gguf::GgmlType;

use super::quants::{Quants, VALUES};
use crate::block::iq4::{IQ4_NL, IQ4_XS};
use crate::block::k::{Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, Q8_K};
use crate::block::legacy::{Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q8_1};
use crate::block::micro::MXFP4;
use crate::kernels::Kernel;
use crate::target::Target;

/// A kernel from a function that unpacks one block, and what is to be done with the quants.
macro_rules! unpacked {
    ($block:ty, $values:literal, $unpack:path, $finish:ident) => {{
        fn run<T: Target>(blocks: &[u8], out: &mut [T]) {
            let blocks: &[$block] = bytemuck::cast_slice(blocks);
            let mut quants = Quants::ZERO;
            for (blocks, out) in blocks.chunks(VALUES / $values).zip(out.chunks_mut(VALUES)) {
                for (index, block) in blocks.iter().enumerate() {
                    $unpack(block, quants.part::<$values, { $values / 16 }>(index));
                }
                if let Ok(out) = out.try_into() {
                    // SAFETY: this module is compiled only where the target has NEON.
                    unsafe { quants.$finish(out) };
                } else {
                    // The last blocks, fewer than fill a `Quants`.
                    let mut all = [T::zeroed(); VALUES];
                    // SAFETY: as above.
                    unsafe { quants.$finish(&mut all) };
                    out.copy_from_slice(&all[..out.len()]);
                }
            }
        }
        run::<T>
    }};
}

/// The kernel of a type; `None` where there is none.
pub(crate) fn kernel<T: Target>(ggml_type: GgmlType) -> Option<Kernel<T>> {
    Some(match ggml_type {
        GgmlType::Q4_0 => unpacked!(Q4_0, 32, unpack::q4_0, scale),
        GgmlType::Q4_1 => unpacked!(Q4_1, 32, unpack::q4_1, scale_and_move),
        GgmlType::Q5_0 => unpacked!(Q5_0, 32, unpack::q5_0, scale),
        GgmlType::Q5_1 => unpacked!(Q5_1, 32, unpack::q5_1, scale_and_move),
        GgmlType::Q8_0 => unpacked!(Q8_0, 32, unpack::q8_0, scale),
        GgmlType::Q8_1 => unpacked!(Q8_1, 32, unpack::q8_1, scale),
        GgmlType::Q2_K => unpacked!(Q2_K, 256, unpack::q2_k, scale_and_move),
        GgmlType::Q3_K => unpacked!(Q3_K, 256, unpack::q3_k, scale),
        GgmlType::Q4_K => unpacked!(Q4_K, 256, unpack::q4_k, scale_and_move),
        GgmlType::Q5_K => unpacked!(Q5_K, 256, unpack::q5_k, scale_and_move),
        GgmlType::Q6_K => unpacked!(Q6_K, 256, unpack::q6_k, scale),
        GgmlType::Q8_K => unpacked!(Q8_K, 256, unpack::q8_k, scale),
        GgmlType::IQ4_NL => unpacked!(IQ4_NL, 32, unpack::iq4_nl, scale),
        GgmlType::IQ4_XS => unpacked!(IQ4_XS, 256, unpack::iq4_xs, scale),
        GgmlType::MXFP4 => unpacked!(MXFP4, 32, unpack::mxfp4, scale),
        _ => return None,
    })
}
