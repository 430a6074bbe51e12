//! MXFP4, NVFP4, and the one- and two-bit blocks.

use core::arch::x86_64::*;

use super::lanes::{both, half, halves, scaled};
use super::legacy::{bits_to_bytes, coded, nibbles};
use crate::block::binary::{Q1_0, Q2_0};
use crate::block::bytes_at;
use crate::block::micro::{E2M1_DOUBLED, HALF_OF_UE4M3, MXFP4, NVFP4};
use crate::target::Target;

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn mxfp4<T: Target>(block: &MXFP4, out: &mut [T; 32]) {
    coded(out, &block.qs, E2M1_DOUBLED, _mm256_set1_ps(block.half_scale()));
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn nvfp4<T: Target>(block: &NVFP4, out: &mut [T; 64]) {
    let groups = block.qs.as_chunks::<16>().0.iter().zip(block.d.as_chunks::<2>().0);
    for (out, (qs, scales)) in out.as_chunks_mut::<32>().0.iter_mut().zip(groups) {
        let q = _mm256_shuffle_epi8(bytemuck::cast([E2M1_DOUBLED; 2]), nibbles(qs));
        // A group's eight bytes hold its first eight values low and its last eight high.
        let groups = both(_mm256_permute4x64_epi64::<0b11_01_10_00>(q));
        for ((out, q), scale) in halves(out).into_iter().zip(groups).zip(scales) {
            scaled(out, q, _mm256_set1_ps(HALF_OF_UE4M3[usize::from(*scale)]));
        }
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q1_0<T: Target>(block: &Q1_0, out: &mut [T; 128]) {
    let d = half(block.d);
    for (out, bits) in out.as_chunks_mut::<32>().0.iter_mut().zip(block.qs.as_chunks().0) {
        // 1 for a set bit and −1 for a clear one: −1 × d is −d.
        let set = bits_to_bytes(u32::from_le_bytes(*bits));
        let q =
            _mm256_or_si256(_mm256_and_si256(set, _mm256_set1_epi8(1)), _mm256_andnot_si256(set, _mm256_set1_epi8(-1)));
        for (out, q) in halves(out).into_iter().zip(both(q)) {
            scaled(out, q, d);
        }
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q2_0<T: Target>(block: &Q2_0, out: &mut [T; 64]) {
    /// Each byte four times, once for each of its values.
    const FOUR_TIMES: [u8; 32] =
        [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7];
    let d = half(block.d);
    for (part, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let eight = _mm256_set1_epi64x(i64::from_le_bytes(bytes_at(&block.qs, part * 8)));
        let repeated = _mm256_shuffle_epi8(eight, bytemuck::cast(FOUR_TIMES));
        // Of the four copies of a byte, the first is taken as it is, the second two bits down …
        let low = _mm256_and_si256(repeated, _mm256_set1_epi32(0x0000_0003));
        let second = _mm256_and_si256(_mm256_srli_epi32::<2>(repeated), _mm256_set1_epi32(0x0000_0300));
        let third = _mm256_and_si256(_mm256_srli_epi32::<4>(repeated), _mm256_set1_epi32(0x0003_0000));
        let fourth = _mm256_and_si256(_mm256_srli_epi32::<6>(repeated), _mm256_set1_epi32(0x0300_0000));
        let q = _mm256_or_si256(_mm256_or_si256(low, second), _mm256_or_si256(third, fourth));
        let q = _mm256_add_epi8(q, _mm256_set1_epi8(-1));
        for (out, q) in halves(out).into_iter().zip(both(q)) {
            scaled(out, q, d);
        }
    }
}
