//! The K types: all scales of a block at once, then 32 quants at a time.

use core::arch::x86_64::*;

use super::super::quants::Part;
use super::lanes::half;
use super::legacy::signed_bytes;
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

/// To be added: x − min is x + (−min), in every bit.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn negated(values: __m256) -> __m256 {
    _mm256_xor_ps(values, _mm256_set1_ps(-0.0))
}

/// The four times 32 quants in 32 bytes of two bits each, as Q2_K, Q3_K and TQ2_0 store them.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn two_bits(qs: &[u8; 32]) -> [__m256i; 4] {
    let bytes: __m256i = bytemuck::cast(*qs);
    let mask = _mm256_set1_epi8(3);
    [
        _mm256_and_si256(bytes, mask),
        _mm256_and_si256(_mm256_srli_epi16::<2>(bytes), mask),
        _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), mask),
        _mm256_and_si256(_mm256_srli_epi16::<6>(bytes), mask),
    ]
}

/// The low nibbles, then the high nibbles, of 32 bytes.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn nibbles(bytes: __m256i) -> [__m256i; 2] {
    let mask = _mm256_set1_epi8(0x0f);
    [_mm256_and_si256(bytes, mask), _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), mask)]
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q2_k(block: &Q2_K, part: Part<'_, 256, 16>) {
    let packed: __m128i = bytemuck::cast(block.scales);
    let mask = _mm_set1_epi8(0x0f);
    *part.scales = group_scales(half(block.d), _mm_and_si128(packed, mask));
    let mins = _mm_and_si128(_mm_srli_epi16::<4>(packed), mask);
    *part.offsets = group_scales(negated(half(block.dmin)), mins);
    for (bytes, qs) in part.bytes.as_chunks_mut::<128>().0.iter_mut().zip(block.qs.as_chunks().0) {
        *bytes = bytemuck::cast(two_bits(qs));
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q3_k(block: &Q3_K, part: Part<'_, 256, 16>) {
    let scales: __m128i = bytemuck::cast(block.scales());
    *part.scales = group_scales(half(block.d), _mm_sub_epi8(scales, _mm_set1_epi8(32)));
    // A clear bit takes 4 away.
    let mut clear = _mm256_xor_si256(bytemuck::cast(block.hmask), _mm256_set1_epi8(-1));
    let four = _mm256_set1_epi8(4);
    for (bytes, qs) in part.bytes.as_chunks_mut::<128>().0.iter_mut().zip(block.qs.as_chunks().0) {
        let minus = [
            _mm256_and_si256(_mm256_slli_epi16::<2>(clear), four),
            _mm256_and_si256(_mm256_slli_epi16::<1>(clear), four),
            _mm256_and_si256(clear, four),
            _mm256_and_si256(_mm256_srli_epi16::<1>(clear), four),
        ];
        let [a, b, c, d] = two_bits(qs);
        *bytes = bytemuck::cast([
            _mm256_sub_epi8(a, minus[0]),
            _mm256_sub_epi8(b, minus[1]),
            _mm256_sub_epi8(c, minus[2]),
            _mm256_sub_epi8(d, minus[3]),
        ]);
        // The other four bits; what comes in from a byte's neighbour is masked off above.
        clear = _mm256_srli_epi16::<4>(clear);
    }
}

/// `d × scale` and `−(dmin × min)` of the eight groups of Q4_K and Q5_K.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn scales_and_offsets(packed: &[u8; 12], d: [u8; 2], dmin: [u8; 2]) -> [[f32; 8]; 2] {
    // The layout that `block::k::scales_and_mins` draws, four bytes in a word.
    let [a, b, c]: [u32; 3] = bytemuck::cast(*packed);
    let six_bits = 0x3f3f_3f3f;
    let four_bits = 0x0f0f_0f0f;
    let two_bits = 0x0303_0303;
    let scales = [a & six_bits, (c & four_bits) | (a >> 6 & two_bits) << 4];
    let mins = [b & six_bits, (c >> 4 & four_bits) | (b >> 6 & two_bits) << 4];
    let times = |factor: __m256, words: [u32; 2]| {
        let bytes = _mm_cvtsi64_si128(bytemuck::cast(words));
        let wide = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
        bytemuck::cast(_mm256_mul_ps(factor, wide))
    };
    [times(half(d), scales), times(negated(half(dmin)), mins)]
}

/// Each of eight scales twice: groups of 32 are two of 16.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn twice(scales: [f32; 8]) -> [f32; 16] {
    let scales: __m256 = bytemuck::cast(scales);
    let first = _mm256_permutevar8x32_ps(scales, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3));
    let last = _mm256_permutevar8x32_ps(scales, _mm256_setr_epi32(4, 4, 5, 5, 6, 6, 7, 7));
    bytemuck::cast([first, last])
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q4_k(block: &Q4_K, part: Part<'_, 256, 16>) {
    let [scales, offsets] = scales_and_offsets(&block.scales, block.d, block.dmin);
    *part.scales = twice(scales);
    *part.offsets = twice(offsets);
    for (bytes, qs) in part.bytes.as_chunks_mut::<64>().0.iter_mut().zip(block.qs.as_chunks::<32>().0) {
        *bytes = bytemuck::cast(nibbles(bytemuck::cast(*qs)));
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q5_k(block: &Q5_K, part: Part<'_, 256, 16>) {
    let [scales, offsets] = scales_and_offsets(&block.scales, block.d, block.dmin);
    *part.scales = twice(scales);
    *part.offsets = twice(offsets);
    let mut qh: __m256i = bytemuck::cast(block.qh);
    let sixteen = _mm256_set1_epi8(16);
    for (bytes, qs) in part.bytes.as_chunks_mut::<64>().0.iter_mut().zip(block.qs.as_chunks::<32>().0) {
        let [low, high] = nibbles(bytemuck::cast(*qs));
        let low = _mm256_or_si256(low, _mm256_and_si256(_mm256_slli_epi16::<4>(qh), sixteen));
        let high = _mm256_or_si256(high, _mm256_and_si256(_mm256_slli_epi16::<3>(qh), sixteen));
        *bytes = bytemuck::cast([low, high]);
        // The next two bits; what comes in from a byte's neighbour is masked off above.
        qh = _mm256_srli_epi16::<2>(qh);
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q6_k(block: &Q6_K, part: Part<'_, 256, 16>) {
    *part.scales = group_scales(half(block.d), bytemuck::cast(block.scales));
    let parts = part.bytes.as_chunks_mut::<128>().0.iter_mut();
    for ((bytes, ql), qh) in parts.zip(block.ql.as_chunks::<64>().0).zip(block.qh.as_chunks::<32>().0) {
        let [first, second]: [__m256i; 2] = bytemuck::cast(*ql);
        let qh: __m256i = bytemuck::cast(*qh);
        let ([a, c], [b, d]) = (nibbles(first), nibbles(second));
        // The two upper bits come to bits 5 and 4; with 32 taken away, the quant is signed.
        let six_bits = |low: __m256i, upper: __m256i| {
            let upper = _mm256_and_si256(upper, _mm256_set1_epi8(0x30));
            _mm256_sub_epi8(_mm256_or_si256(low, upper), _mm256_set1_epi8(32))
        };
        *bytes = bytemuck::cast([
            six_bits(a, _mm256_slli_epi16::<4>(qh)),
            six_bits(b, _mm256_slli_epi16::<2>(qh)),
            six_bits(c, qh),
            six_bits(d, _mm256_srli_epi16::<2>(qh)),
        ]);
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q8_k<T: Target>([block]: &[Q8_K; 1], out: &mut [T; 256]) {
    signed_bytes(&block.qs, _mm256_set1_ps(f32::from_le_bytes(block.d)), out);
}
