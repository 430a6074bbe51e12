//! Types with four-bit codes to 16-bit targets: the sixteen values of a group, then 32 codes looked up.

use core::arch::x86_64::_mm256_set1_ps;

use super::iq::iq4_scales;
use super::k::{nibbles, scales_and_offsets};
use super::lanes::{Table, half, interleaved};
use super::legacy;
use crate::block::iq4::{IQ4_NL, IQ4_VALUES, IQ4_XS};
use crate::block::k::Q4_K;
use crate::block::legacy::{Q4_0, Q4_1};
use crate::block::micro::{E2M1_DOUBLED, MXFP4};
use crate::target::Target;

/// A code itself.
const FOUR_BITS: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// A code less eight.
const Q4_0_QUANTS: [i8; 16] = [-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7];

/// 32 values from 16 bytes of two codes each, the low ones first.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn look_up<T: Target>(out: &mut [T; 32], qs: &[u8; 16], table: Table) {
    table.look_up(out, interleaved(legacy::nibbles(qs)));
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q4_0<T: Target>(block: &Q4_0, out: &mut [T; 32]) {
    look_up(out, &block.qs, Table::new::<T>(&bytemuck::cast(Q4_0_QUANTS), half(block.d), None));
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q4_1<T: Target>(block: &Q4_1, out: &mut [T; 32]) {
    look_up(out, &block.qs, Table::new::<T>(&FOUR_BITS, half(block.d), Some(half(block.m))));
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn iq4_nl<T: Target>(block: &IQ4_NL, out: &mut [T; 32]) {
    look_up(out, &block.qs, Table::new::<T>(&bytemuck::cast(IQ4_VALUES), half(block.d), None));
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn mxfp4<T: Target>(block: &MXFP4, out: &mut [T; 32]) {
    look_up(out, &block.qs, Table::new::<T>(&bytemuck::cast(E2M1_DOUBLED), _mm256_set1_ps(block.half_scale()), None));
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn iq4_xs<T: Target>(block: &IQ4_XS, out: &mut [T; 256]) {
    let groups = out.as_chunks_mut::<32>().0.iter_mut().zip(block.qs.as_chunks::<16>().0);
    for ((out, qs), scale) in groups.zip(iq4_scales(block)) {
        look_up(out, qs, Table::new::<T>(&bytemuck::cast(IQ4_VALUES), _mm256_set1_ps(scale), None));
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q4_k<T: Target>(block: &Q4_K, out: &mut [T; 256]) {
    let [scales, offsets] = scales_and_offsets(&block.scales, block.d, block.dmin);
    let factors = scales.as_chunks::<2>().0.iter().zip(offsets.as_chunks::<2>().0);
    let groups = out.as_chunks_mut::<64>().0.iter_mut().zip(block.qs.as_chunks::<32>().0);
    for ((out, qs), (scales, offsets)) in groups.zip(factors) {
        let [low, high] = nibbles(interleaved(bytemuck::cast(*qs)));
        let ([first, second], []) = out.as_chunks_mut::<32>() else { unreachable!("64 is twice 32") };
        let table = |scale, offset| Table::new::<T>(&FOUR_BITS, _mm256_set1_ps(scale), Some(_mm256_set1_ps(offset)));
        table(scales[0], offsets[0]).look_up(first, low);
        table(scales[1], offsets[1]).look_up(second, high);
    }
}
