//! x86-64 with AVX2, F16C and BMI2: Haswell, Zen and newer.
//!
//! Three shapes of kernel: most types are unpacked to a byte a quant and widened from there (`lanes`); types
//! with four-bit codes look their values up in a table when the target has 16 bits (`tables`); types whose
//! quants are bytes already are widened where they lie.
//!
//! Intrinsics are safe to call in functions that enable their instructions, and memory is reached through
//! arrays of the right size, so the only unsafe step is to enter such a function.

mod iq;
mod k;
mod lanes;
mod legacy;
mod micro;
mod plain;
mod tables;
mod ternary;

use gguf2st_gguf::GgmlType;

use super::quants::{Quants, VALUES};
use crate::block::Block;
use crate::block::binary::{Q1_0, Q2_0};
use crate::block::iq1::{IQ1_M, IQ1_S};
use crate::block::iq2::{IQ2_S, IQ2_XS, IQ2_XXS};
use crate::block::iq3::{IQ3_S, IQ3_XXS};
use crate::block::iq4::{IQ4_NL, IQ4_XS};
use crate::block::k::{Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, Q8_K};
use crate::block::legacy::{Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q8_1};
use crate::block::micro::{MXFP4, NVFP4};
use crate::block::ternary::{TQ1_0, TQ2_0};
use crate::kernels::Kernel;
use crate::target::{Kind, Target};

/// A function pointer that enters a function with AVX2.
macro_rules! enter {
    ($run:path) => {{
        fn entered<T: Target>(blocks: &[u8], out: &mut [T]) {
            // SAFETY: this pointer leaves through `Avx2::kernel` only, and an `Avx2` exists only where the
            // instructions were found.
            unsafe { $run(blocks, out) }
        }
        entered::<T>
    }};
}

/// A kernel from a function that unpacks one block, and what is to be done with the quants.
macro_rules! unpacked {
    ($block:ty, $values:literal, $unpack:path, $finish:ident) => {{
        #[target_feature(enable = "avx2,f16c,bmi2")]
        fn run<T: Target>(blocks: &[u8], out: &mut [T]) {
            let blocks: &[$block] = bytemuck::cast_slice(blocks);
            let mut quants = Quants::ZERO;
            for (blocks, out) in blocks.chunks(VALUES / $values).zip(out.chunks_mut(VALUES)) {
                for (index, block) in blocks.iter().enumerate() {
                    $unpack(block, quants.part::<$values, { $values / 16 }>(index));
                }
                if let Ok(out) = out.try_into() {
                    quants.$finish(out);
                } else {
                    // The last blocks, fewer than fill a `Quants`.
                    let mut all = [T::zeroed(); VALUES];
                    quants.$finish(&mut all);
                    out.copy_from_slice(&all[..out.len()]);
                }
            }
        }
        enter!(run)
    }};
}

/// A kernel from a function that decodes so many blocks at once, if their scales are finite.
macro_rules! in_place {
    ($count:literal of $block:ty, $values:literal, $decode:path) => {{
        #[target_feature(enable = "avx2,f16c,bmi2")]
        fn run<T: Target>(blocks: &[u8], out: &mut [T]) {
            let blocks: &[$block] = bytemuck::cast_slice(blocks);
            let (wholes, rest) = blocks.as_chunks::<$count>();
            let (outs, rest_out) = out.as_chunks_mut::<{ $count * $values }>();
            for (blocks, out) in wholes.iter().zip(outs) {
                if T::KIND != Kind::Bf16 || blocks.iter().all(Scales::is_finite) {
                    $decode(blocks, out);
                } else {
                    decode_plain(blocks, out);
                }
            }
            decode_plain(rest, rest_out);
        }
        enter!(run)
    }};
}

/// The few blocks that the kernels leave.
#[cold]
fn decode_plain<B: Block<N>, T: Target, const N: usize>(blocks: &[B], out: &mut [T]) {
    for (block, values) in blocks.iter().zip(out.as_chunks_mut::<N>().0) {
        T::write(values, |y| block.decode(y));
    }
}

/// Proof that the machine has the instructions: there is no other way to make one than to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Avx2(());

impl Avx2 {
    pub(crate) fn detect() -> Option<Self> {
        let found =
            is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c") && is_x86_feature_detected!("bmi2");
        found.then_some(Self(()))
    }

    /// The kernel of a type; `None` where there is none.
    pub(crate) fn kernel<T: Target>(self, ggml_type: GgmlType) -> Option<Kernel<T>> {
        if T::KIND != Kind::F32
            && let Some(kernel) = self.table_kernel(ggml_type)
        {
            return Some(kernel);
        }
        Some(match ggml_type {
            GgmlType::F32 => enter!(plain::f32_to),
            GgmlType::F16 => enter!(plain::f16_to),
            GgmlType::BF16 => enter!(plain::bf16_to),
            GgmlType::Q4_0 => unpacked!(Q4_0, 32, legacy::q4_0, scale),
            GgmlType::Q4_1 => unpacked!(Q4_1, 32, legacy::q4_1, scale_and_move),
            GgmlType::Q5_0 => unpacked!(Q5_0, 32, legacy::q5_0, scale),
            GgmlType::Q5_1 => unpacked!(Q5_1, 32, legacy::q5_1, scale_and_move),
            GgmlType::Q8_0 => in_place!(1 of Q8_0, 32, legacy::q8_0),
            GgmlType::Q8_1 => in_place!(1 of Q8_1, 32, legacy::q8_1),
            GgmlType::Q2_K => unpacked!(Q2_K, 256, k::q2_k, scale_and_move),
            GgmlType::Q3_K => unpacked!(Q3_K, 256, k::q3_k, scale),
            GgmlType::Q4_K => unpacked!(Q4_K, 256, k::q4_k, scale_and_move),
            GgmlType::Q5_K => unpacked!(Q5_K, 256, k::q5_k, scale_and_move),
            GgmlType::Q6_K => unpacked!(Q6_K, 256, k::q6_k, scale),
            GgmlType::Q8_K => in_place!(1 of Q8_K, 256, k::q8_k),
            GgmlType::IQ1_S => unpacked!(IQ1_S, 256, iq::iq1_s, scale),
            GgmlType::IQ1_M => unpacked!(IQ1_M, 256, iq::iq1_m, scale),
            GgmlType::IQ2_XXS => unpacked!(IQ2_XXS, 256, iq::iq2_xxs, scale),
            GgmlType::IQ2_XS => unpacked!(IQ2_XS, 256, iq::iq2_xs, scale),
            GgmlType::IQ2_S => unpacked!(IQ2_S, 256, iq::iq2_s, scale),
            GgmlType::IQ3_XXS => unpacked!(IQ3_XXS, 256, iq::iq3_xxs, scale),
            GgmlType::IQ3_S => unpacked!(IQ3_S, 256, iq::iq3_s, scale),
            GgmlType::IQ4_NL => unpacked!(IQ4_NL, 32, iq::iq4_nl, scale),
            GgmlType::IQ4_XS => unpacked!(IQ4_XS, 256, iq::iq4_xs, scale),
            GgmlType::TQ1_0 => unpacked!(TQ1_0, 256, ternary::tq1_0, scale),
            GgmlType::TQ2_0 => unpacked!(TQ2_0, 256, ternary::tq2_0, scale),
            GgmlType::MXFP4 => unpacked!(MXFP4, 32, micro::mxfp4, scale),
            GgmlType::NVFP4 => unpacked!(NVFP4, 64, micro::nvfp4, scale),
            GgmlType::Q1_0 => unpacked!(Q1_0, 128, micro::q1_0, scale),
            GgmlType::Q2_0 => unpacked!(Q2_0, 64, micro::q2_0, scale),
            _ => return None,
        })
    }

    /// The kernel of a type with four-bit codes for a target of 16 bits.
    fn table_kernel<T: Target>(self, ggml_type: GgmlType) -> Option<Kernel<T>> {
        Some(match ggml_type {
            GgmlType::Q4_0 => in_place!(2 of Q4_0, 32, tables::q4_0),
            GgmlType::Q4_1 => in_place!(2 of Q4_1, 32, tables::q4_1),
            GgmlType::Q4_K => in_place!(1 of Q4_K, 256, tables::q4_k),
            GgmlType::IQ4_NL => in_place!(2 of IQ4_NL, 32, tables::iq4_nl),
            GgmlType::IQ4_XS => in_place!(1 of IQ4_XS, 256, tables::iq4_xs),
            GgmlType::MXFP4 => in_place!(2 of MXFP4, 32, tables::mxfp4),
            _ => return None,
        })
    }
}

/// Whether all scales are finite, so that no value is NaN.
///
/// Narrowing to bf16 is an integer addition, which is right for all but NaN; a block that could hold one
/// is rare and goes to the plain decoder.
trait Scales {
    fn is_finite(&self) -> bool;
}

#[inline(always)]
fn half_is_finite(bytes: [u8; 2]) -> bool {
    bytes[1] & 0x7c != 0x7c
}

macro_rules! half_scales {
    ($($block:ident: $($field:ident)+;)*) => {
        $(impl Scales for $block {
            #[inline(always)]
            fn is_finite(&self) -> bool {
                $(half_is_finite(self.$field))&&+
            }
        })*
    };
}

half_scales! {
    Q4_0: d;
    Q4_1: d m;
    Q8_0: d;
    Q8_1: d;
    Q4_K: d dmin;
    IQ4_NL: d;
    IQ4_XS: d;
}

impl Scales for Q8_K {
    #[inline(always)]
    fn is_finite(&self) -> bool {
        f32::from_le_bytes(self.d).is_finite()
    }
}

impl Scales for MXFP4 {
    /// Always: the largest scale is 2¹²⁷; a product beyond float32 is infinite, never NaN.
    #[inline(always)]
    fn is_finite(&self) -> bool {
        true
    }
}
