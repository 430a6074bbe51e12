//! From quants, a byte each, to values in the target.

use core::arch::aarch64::*;

use super::super::quants::{Quants, VALUES};
use crate::target::{Kind, Target};

impl Quants {
    /// Writes `scale × q` for signed quants.
    #[target_feature(enable = "neon")]
    pub(super) fn scale<T: Target>(&self, out: &mut [T; VALUES]) {
        let finite = self.is_finite();
        let (out, _) = out.as_chunks_mut::<16>();
        for ((out, q), scale) in out.iter_mut().zip(self.bytes.as_chunks().0).zip(&self.scales) {
            let values = signed(q).map(|q| vmulq_n_f32(q, *scale));
            store(out, values, finite);
        }
    }

    /// Writes `scale × q + offset` for unsigned quants: a product and a sum, rounded one after the other.
    #[target_feature(enable = "neon")]
    pub(super) fn scale_and_move<T: Target>(&self, out: &mut [T; VALUES]) {
        let finite = self.is_finite();
        let (out, _) = out.as_chunks_mut::<16>();
        let factors = self.scales.iter().zip(&self.offsets);
        for ((out, q), (scale, offset)) in out.iter_mut().zip(self.bytes.as_chunks().0).zip(factors) {
            let offset = vdupq_n_f32(*offset);
            let values = unsigned(q).map(|q| vaddq_f32(vmulq_n_f32(q, *scale), offset));
            store(out, values, finite);
        }
    }

    /// Whether no scale or offset is NaN or infinite, so that no value is NaN.
    fn is_finite(&self) -> bool {
        self.scales.iter().chain(&self.offsets).fold(true, |all, factor| all & factor.is_finite())
    }
}

/// Sixteen signed quants as float32, in order.
#[target_feature(enable = "neon")]
#[inline]
fn signed(q: &[u8; 16]) -> [float32x4_t; 4] {
    // SAFETY: 16 bytes are read from an array of 16.
    let bytes = unsafe { vld1q_s8(q.as_ptr().cast()) };
    let (low, high) = (vmovl_s8(vget_low_s8(bytes)), vmovl_high_s8(bytes));
    [vmovl_s16(vget_low_s16(low)), vmovl_high_s16(low), vmovl_s16(vget_low_s16(high)), vmovl_high_s16(high)]
        .map(|q| vcvtq_f32_s32(q))
}

/// Sixteen unsigned quants as float32, in order.
#[target_feature(enable = "neon")]
#[inline]
fn unsigned(q: &[u8; 16]) -> [float32x4_t; 4] {
    // SAFETY: 16 bytes are read from an array of 16.
    let bytes = unsafe { vld1q_u8(q.as_ptr()) };
    let (low, high) = (vmovl_u8(vget_low_u8(bytes)), vmovl_high_u8(bytes));
    [vmovl_u16(vget_low_u16(low)), vmovl_high_u16(low), vmovl_u16(vget_low_u16(high)), vmovl_high_u16(high)]
        .map(|q| vcvtq_f32_u32(q))
}

/// Narrows and writes 16 values, of which none is NaN if they are made of `finite` factors.
#[target_feature(enable = "neon")]
#[inline]
fn store<T: Target>(out: &mut [T; 16], values: [float32x4_t; 4], finite: bool) {
    match T::KIND {
        Kind::F32 => {
            let out: &mut [f32; 16] = bytemuck::cast_mut(out);
            for (out, values) in out.as_chunks_mut::<4>().0.iter_mut().zip(values) {
                // SAFETY: four values are written to an array of four.
                unsafe { vst1q_f32(out.as_mut_ptr(), values) };
            }
        }
        Kind::Bf16 if finite => {
            let out: &mut [u16; 16] = bytemuck::cast_mut(out);
            let [a, b, c, d] = values.map(|values| rounded_to_bf16(values));
            for (out, [low, high]) in out.as_chunks_mut::<8>().0.iter_mut().zip([[a, b], [c, d]]) {
                // The upper halves of both.
                let upper = vshrn_high_n_u32::<16>(vshrn_n_u32::<16>(low), high);
                // SAFETY: eight values are written to an array of eight.
                unsafe { vst1q_u16(out.as_mut_ptr(), upper) };
            }
        }
        // The instruction that narrows to f16 has no stable intrinsic.
        Kind::Bf16 | Kind::F16 => T::write(out, |wide| {
            for (wide, values) in wide.as_chunks_mut::<4>().0.iter_mut().zip(values) {
                // SAFETY: four values are written to an array of four.
                unsafe { vst1q_f32(wide.as_mut_ptr(), values) };
            }
        }),
    }
}

/// Values whose upper half is the nearest bf16, ties to even; see `float::f32_to_bf16`. None is NaN.
#[target_feature(enable = "neon")]
#[inline]
fn rounded_to_bf16(values: float32x4_t) -> uint32x4_t {
    let bits = vreinterpretq_u32_f32(values);
    let last_place = vandq_u32(vshrq_n_u32::<16>(bits), vdupq_n_u32(1));
    vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), last_place)
}
