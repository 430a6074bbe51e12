//! MXFP4, NVFP4, and the one- and two-bit blocks.

use core::arch::x86_64::*;

use super::super::quants::Part;
use super::lanes::half;
use super::legacy::{bits_to_bytes, nibbles};
use crate::block::binary::{Q1_0, Q2_0};
use crate::block::micro::{E2M1_DOUBLED, HALF_OF_UE4M3, MXFP4, NVFP4};

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn mxfp4(block: &MXFP4, mut part: Part<'_, 32, 2>) {
    let q = _mm256_shuffle_epi8(bytemuck::cast([E2M1_DOUBLED; 2]), nibbles(&block.qs));
    *part.bytes = bytemuck::cast(q);
    part.set_scale(_mm256_set1_ps(block.half_scale()));
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn nvfp4(block: &NVFP4, part: Part<'_, 64, 4>) {
    *part.scales = block.d.map(|d| HALF_OF_UE4M3[usize::from(d)]);
    for (bytes, qs) in part.bytes.as_chunks_mut::<32>().0.iter_mut().zip(block.qs.as_chunks().0) {
        let q = _mm256_shuffle_epi8(bytemuck::cast([E2M1_DOUBLED; 2]), nibbles(qs));
        // A group's eight bytes hold its first eight values low and its last eight high.
        *bytes = bytemuck::cast(_mm256_permute4x64_epi64::<0b11_01_10_00>(q));
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q1_0(block: &Q1_0, mut part: Part<'_, 128, 8>) {
    part.set_scale(half(block.d));
    for (bytes, bits) in part.bytes.as_chunks_mut::<32>().0.iter_mut().zip(block.qs.as_chunks().0) {
        // 1 for a set bit and −1 for a clear one: −1 × d is −d.
        let set = bits_to_bytes(*bits);
        let q = _mm256_sub_epi8(_mm256_and_si256(set, _mm256_set1_epi8(2)), _mm256_set1_epi8(1));
        *bytes = bytemuck::cast(q);
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q2_0(block: &Q2_0, mut part: Part<'_, 64, 4>) {
    /// Each byte four times, once for each of its values.
    const FOUR_TIMES: [u8; 32] =
        [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7];
    part.set_scale(half(block.d));
    for (bytes, qs) in part.bytes.as_chunks_mut::<32>().0.iter_mut().zip(block.qs.as_chunks().0) {
        let repeated = _mm256_shuffle_epi8(_mm256_set1_epi64x(i64::from_le_bytes(*qs)), bytemuck::cast(FOUR_TIMES));
        // Of a byte's four copies the first keeps its lowest bits, the second the next ones …
        let first = _mm256_and_si256(repeated, _mm256_set1_epi32(0x0000_0003));
        let second = _mm256_and_si256(_mm256_srli_epi32::<2>(repeated), _mm256_set1_epi32(0x0000_0300));
        let third = _mm256_and_si256(_mm256_srli_epi32::<4>(repeated), _mm256_set1_epi32(0x0003_0000));
        let fourth = _mm256_and_si256(_mm256_srli_epi32::<6>(repeated), _mm256_set1_epi32(0x0300_0000));
        let q = _mm256_or_si256(_mm256_or_si256(first, second), _mm256_or_si256(third, fourth));
        *bytes = bytemuck::cast(_mm256_sub_epi8(q, _mm256_set1_epi8(1)));
    }
}
