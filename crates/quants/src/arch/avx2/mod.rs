//! x86-64 with AVX2, F16C and BMI2: Haswell, Zen and newer.
//!
//! A kernel is a function from one block to its values in `out`; it brings quants into 16 bytes at a
//! time and leaves the rest to `lanes`: widening, the arithmetic of the plain decoder, narrowing to
//! the target. Intrinsics are safe to call in functions that enable their instructions, and memory is
//! reached through arrays of the right size, so the only unsafe step is to enter such a function.

mod iq;
mod k;
mod lanes;
mod legacy;
mod micro;
mod plain;
mod ternary;

use gguf2st_gguf::GgmlType;

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

/// Proof that the machine has the instructions: there is no other way to make one than to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Avx2(());

impl Avx2 {
    pub(crate) fn detect() -> Option<Self> {
        let found =
            is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c") && is_x86_feature_detected!("bmi2");
        found.then_some(Self(()))
    }

    /// The kernel of a type; `None` where the compiler's own code is as fast.
    pub(crate) fn kernel<T: Target>(self, ggml_type: GgmlType) -> Option<Kernel<T>> {
        /// A function pointer that enters a function with AVX2.
        macro_rules! enter {
            ($run:path) => {{
                fn entered<T: Target>(blocks: &[u8], out: &mut [T]) {
                    // SAFETY: this pointer leaves `Avx2::kernel` only, and an `Avx2` exists only where
                    // the instructions were found.
                    unsafe { $run(blocks, out) }
                }
                entered::<T>
            }};
        }

        /// The same for a kernel of single blocks.
        macro_rules! blocks {
            ($block:ty, $values:literal, $decode:path) => {{
                #[target_feature(enable = "avx2,f16c,bmi2")]
                fn run<T: Target>(blocks: &[u8], out: &mut [T]) {
                    let blocks: &[$block] = bytemuck::cast_slice(blocks);
                    for (block, values) in blocks.iter().zip(out.as_chunks_mut::<$values>().0) {
                        if T::KIND == Kind::Bf16 && !block.is_finite() {
                            T::write(values, |y| block.decode(y));
                        } else {
                            $decode(block, values);
                        }
                    }
                }
                enter!(run)
            }};
        }

        Some(match ggml_type {
            GgmlType::F32 => enter!(plain::f32_to),
            GgmlType::F16 => enter!(plain::f16_to),
            GgmlType::BF16 => enter!(plain::bf16_to),
            GgmlType::Q4_0 => blocks!(Q4_0, 32, legacy::q4_0),
            GgmlType::Q4_1 => blocks!(Q4_1, 32, legacy::q4_1),
            GgmlType::Q5_0 => blocks!(Q5_0, 32, legacy::q5_0),
            GgmlType::Q5_1 => blocks!(Q5_1, 32, legacy::q5_1),
            GgmlType::Q8_0 => blocks!(Q8_0, 32, legacy::q8_0),
            GgmlType::Q8_1 => blocks!(Q8_1, 32, legacy::q8_1),
            GgmlType::Q2_K => blocks!(Q2_K, 256, k::q2_k),
            GgmlType::Q3_K => blocks!(Q3_K, 256, k::q3_k),
            GgmlType::Q4_K => blocks!(Q4_K, 256, k::q4_k),
            GgmlType::Q5_K => blocks!(Q5_K, 256, k::q5_k),
            GgmlType::Q6_K => blocks!(Q6_K, 256, k::q6_k),
            GgmlType::Q8_K => blocks!(Q8_K, 256, k::q8_k),
            GgmlType::IQ1_S => blocks!(IQ1_S, 256, iq::iq1_s),
            GgmlType::IQ1_M => blocks!(IQ1_M, 256, iq::iq1_m),
            GgmlType::IQ2_XXS => blocks!(IQ2_XXS, 256, iq::iq2_xxs),
            GgmlType::IQ2_XS => blocks!(IQ2_XS, 256, iq::iq2_xs),
            GgmlType::IQ2_S => blocks!(IQ2_S, 256, iq::iq2_s),
            GgmlType::IQ3_XXS => blocks!(IQ3_XXS, 256, iq::iq3_xxs),
            GgmlType::IQ3_S => blocks!(IQ3_S, 256, iq::iq3_s),
            GgmlType::IQ4_NL => blocks!(IQ4_NL, 32, iq::iq4_nl),
            GgmlType::IQ4_XS => blocks!(IQ4_XS, 256, iq::iq4_xs),
            GgmlType::TQ1_0 => blocks!(TQ1_0, 256, ternary::tq1_0),
            GgmlType::TQ2_0 => blocks!(TQ2_0, 256, ternary::tq2_0),
            GgmlType::MXFP4 => blocks!(MXFP4, 32, micro::mxfp4),
            GgmlType::NVFP4 => blocks!(NVFP4, 64, micro::nvfp4),
            GgmlType::Q1_0 => blocks!(Q1_0, 128, micro::q1_0),
            GgmlType::Q2_0 => blocks!(Q2_0, 64, micro::q2_0),
            _ => return None,
        })
    }
}

/// Whether all scales are finite, so that no value is NaN.
///
/// The kernels narrow to bf16 by integer addition, which is right for all but NaN; the rare block that
/// could hold one goes to the plain decoder.
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
    Q5_0: d;
    Q5_1: d m;
    Q8_0: d;
    Q8_1: d;
    Q2_K: d dmin;
    Q3_K: d;
    Q4_K: d dmin;
    Q5_K: d dmin;
    Q6_K: d;
    IQ1_S: d;
    IQ2_XXS: d;
    IQ2_XS: d;
    IQ2_S: d;
    IQ3_XXS: d;
    IQ3_S: d;
    IQ4_NL: d;
    IQ4_XS: d;
    TQ1_0: d;
    TQ2_0: d;
    Q1_0: d;
    Q2_0: d;
}

impl Scales for IQ1_M {
    #[inline(always)]
    fn is_finite(&self) -> bool {
        half_is_finite(self.scales_and_d().1)
    }
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

impl Scales for NVFP4 {
    /// Always: the largest scale is 480.
    #[inline(always)]
    fn is_finite(&self) -> bool {
        true
    }
}
