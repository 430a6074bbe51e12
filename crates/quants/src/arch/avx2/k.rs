//! The K types: the scales of a block are prepared all at once, then 16 values at a time.

use core::arch::x86_64::*;

use super::lanes::{Bytes16, half, scaled, scaled_and_moved};
use crate::block::bytes_at;
use crate::block::k::{Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, Q8_K};
use crate::target::Target;

/// `d × scale` for 16 scales, each a signed byte.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn group_scales(d: __m256, scales: __m128i) -> [f32; 16] {
    let low = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(scales));
    let high = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(scales, scales)));
    bytemuck::cast([_mm256_mul_ps(d, low), _mm256_mul_ps(d, high)])
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn negated(values: __m256) -> __m256 {
    _mm256_xor_ps(values, _mm256_set1_ps(-0.0))
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q2_k<T: Target>(block: &Q2_K, out: &mut [T; 256]) {
    let [scales, mins] = super::legacy::nibbles(&block.scales);
    let dl = group_scales(half(block.d), scales);
    // x − ml is x + (−ml), in every bit.
    let minus_ml = group_scales(negated(half(block.dmin)), mins);
    for (group, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let q = two_bits(&block.qs, group);
        scaled_and_moved(out, q, _mm256_set1_ps(dl[group]), _mm256_set1_ps(minus_ml[group]));
    }
}

/// The sixteen 2-bit quants of a group as Q2_K, Q3_K and TQ2_0 store them.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn two_bits(qs: &[u8; 64], group: usize) -> Bytes16 {
    let bytes = Bytes16::load(&bytes_at(qs, group / 8 * 32 + group % 2 * 16)).0;
    // The shift is constant once the loop over the groups is unrolled.
    let shifted = match group % 8 / 2 {
        0 => bytes,
        1 => _mm256_srli_epi16::<2>(bytes),
        2 => _mm256_srli_epi16::<4>(bytes),
        _ => _mm256_srli_epi16::<6>(bytes),
    };
    Bytes16(_mm256_and_si256(shifted, _mm256_set1_epi8(3)))
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q3_k<T: Target>(block: &Q3_K, out: &mut [T; 256]) {
    let scales: __m128i = bytemuck::cast(block.scales());
    let dl = group_scales(half(block.d), _mm_add_epi8(scales, _mm_set1_epi8(-32)));
    for (group, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let q = two_bits(&block.qs, group).0;
        let hmask = Bytes16::load(&bytes_at(&block.hmask, group % 2 * 16)).0;
        let bit = _mm256_set1_epi8((1_u8 << (group / 2)).cast_signed());
        // A clear bit takes 4 away, which in two's complement sets all bits but the lowest two.
        let clear = _mm256_cmpeq_epi8(_mm256_and_si256(hmask, bit), _mm256_setzero_si256());
        let q = _mm256_or_si256(q, _mm256_andnot_si256(_mm256_set1_epi8(3), clear));
        scaled(out, Bytes16(q), _mm256_set1_ps(dl[group]));
    }
}

/// `d × scale` and `−(dmin × min)` of the eight groups of Q4_K and Q5_K.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn scales_and_mins(packed: &[u8; 12], d: [u8; 2], dmin: [u8; 2]) -> [[f32; 8]; 2] {
    // The layout that `block::k::scales_and_mins` draws, four bytes in a word.
    let [a, b, c]: [u32; 3] = bytemuck::cast(*packed);
    let six_bits = 0x3f3f_3f3f;
    let four_bits = 0x0f0f_0f0f;
    let two_bits = 0x0303_0303;
    let scales = [a & six_bits, (c & four_bits) | (a >> 6 & two_bits) << 4];
    let mins = [b & six_bits, (c >> 4 & four_bits) | (b >> 6 & two_bits) << 4];
    let widened = |words: [u32; 2]| {
        let bytes: i64 = bytemuck::cast(words);
        _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_cvtsi64_si128(bytes)))
    };
    [
        bytemuck::cast(_mm256_mul_ps(half(d), widened(scales))),
        bytemuck::cast(_mm256_mul_ps(negated(half(dmin)), widened(mins))),
    ]
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q4_k<T: Target>(block: &Q4_K, out: &mut [T; 256]) {
    let [dl, minus_ml] = scales_and_mins(&block.scales, block.d, block.dmin);
    for (i, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let group = i / 2;
        let q = nibbles_of(&block.qs, i);
        scaled_and_moved(out, Bytes16(q), _mm256_set1_ps(dl[group]), _mm256_set1_ps(minus_ml[group]));
    }
}

/// The nibbles of values `16i .. 16i + 16` as Q4_K and Q5_K store them.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn nibbles_of(qs: &[u8; 128], i: usize) -> __m256i {
    let bytes = Bytes16::load(&bytes_at(qs, i / 4 * 32 + i % 2 * 16)).0;
    let shifted = if i / 2 % 2 == 0 { bytes } else { _mm256_srli_epi16::<4>(bytes) };
    _mm256_and_si256(shifted, _mm256_set1_epi8(0x0f))
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q5_k<T: Target>(block: &Q5_K, out: &mut [T; 256]) {
    let [dl, minus_ml] = scales_and_mins(&block.scales, block.d, block.dmin);
    for (i, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let group = i / 2;
        let qh = Bytes16::load(&bytes_at(&block.qh, i % 2 * 16)).0;
        let bit = _mm256_set1_epi8((1_u8 << group).cast_signed());
        let set = _mm256_cmpeq_epi8(_mm256_and_si256(qh, bit), bit);
        let plus_16 = _mm256_and_si256(set, _mm256_set1_epi8(16));
        let q = _mm256_or_si256(nibbles_of(&block.qs, i), plus_16);
        scaled_and_moved(out, Bytes16(q), _mm256_set1_ps(dl[group]), _mm256_set1_ps(minus_ml[group]));
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q6_k<T: Target>(block: &Q6_K, out: &mut [T; 256]) {
    let dl = group_scales(half(block.d), bytemuck::cast(block.scales));
    for (group, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let (part, quarter, first) = (group / 8, group % 8 / 2, group % 2 * 16);
        let ql = Bytes16::load(&bytes_at(&block.ql, part * 64 + quarter % 2 * 32 + first)).0;
        let qh = Bytes16::load(&bytes_at(&block.qh, part * 32 + first)).0;
        let low = if quarter < 2 { ql } else { _mm256_srli_epi16::<4>(ql) };
        // The two upper bits, brought to bits 5 and 4.
        let upper = match quarter {
            0 => _mm256_slli_epi16::<4>(qh),
            1 => _mm256_slli_epi16::<2>(qh),
            2 => qh,
            _ => _mm256_srli_epi16::<2>(qh),
        };
        let low = _mm256_and_si256(low, _mm256_set1_epi8(0x0f));
        let upper = _mm256_and_si256(upper, _mm256_set1_epi8(0x30));
        let q = _mm256_add_epi8(_mm256_or_si256(low, upper), _mm256_set1_epi8(-32));
        scaled(out, Bytes16(q), _mm256_set1_ps(dl[group]));
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q8_k<T: Target>(block: &Q8_K, out: &mut [T; 256]) {
    let d = _mm256_set1_ps(f32::from_le_bytes(block.d));
    for (out, q) in out.as_chunks_mut::<16>().0.iter_mut().zip(block.qs.as_chunks::<16>().0) {
        scaled(out, Bytes16::load(q), d);
    }
}
