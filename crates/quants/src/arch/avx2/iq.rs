//! The IQ types: grid entries are gathered, eight (or four) quants at a time, into 32 signed bytes.

use core::arch::x86_64::*;

use super::super::quants::Part;
use super::k::twice;
use super::lanes::half;
use super::legacy::{bits_to_bytes, nibbles};
use crate::block::bytes_at;
use crate::block::iq1::{IQ1_M, IQ1_S};
use crate::block::iq2::{IQ2_S, IQ2_XS, IQ2_XXS};
use crate::block::iq3::{IQ3_S, IQ3_XXS};
use crate::block::iq4::{IQ4_NL, IQ4_VALUES, IQ4_XS};
use crate::grids;

/// Thirty-two quants: sizes from a grid, negative where the bit of `signs` is set.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn signed<const N: usize, const ENTRIES: usize>(sizes: [[u8; N]; ENTRIES], signs: [u8; 4]) -> [u8; 32]
where
    [[u8; N]; ENTRIES]: bytemuck::Pod,
{
    // −q is (q xor −1) − (−1), and all ones are −1.
    let negative = bits_to_bytes(signs);
    let sizes: __m256i = bytemuck::cast(sizes);
    bytemuck::cast(_mm256_sub_epi8(_mm256_xor_si256(sizes, negative), negative))
}

/// The signs of 32 values from four times seven stored bits, the first in the lowest.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn even_signs(stored: u32) -> [u8; 4] {
    let seven = _pdep_u32(stored, 0x7f7f_7f7f);
    // Fold each byte's bits onto its lowest one; what comes in from the byte above is masked off.
    let folded = seven ^ (seven >> 4 & 0x0707_0707);
    let folded = folded ^ (folded >> 2 & 0x0303_0303);
    let odd = (folded ^ folded >> 1) & 0x0101_0101;
    (seven | odd << 7).to_le_bytes()
}

/// `d × (scale + ½) × factor`, in the order of `block::iq2::quarter_scale`.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn half_step_scales(d: __m256, scales: __m128i, factor: f32) -> [f32; 8] {
    let wide = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(scales));
    let product = _mm256_mul_ps(d, _mm256_add_ps(_mm256_set1_ps(0.5), wide));
    bytemuck::cast(_mm256_mul_ps(product, _mm256_set1_ps(factor)))
}

/// The nibbles of eight bytes, low before high.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn nibbles_in_order(bytes: [u8; 8]) -> __m128i {
    let bytes = _mm_cvtsi64_si128(i64::from_le_bytes(bytes));
    let mask = _mm_set1_epi8(0x0f);
    let low = _mm_and_si128(bytes, mask);
    let high = _mm_and_si128(_mm_srli_epi16::<4>(bytes), mask);
    _mm_unpacklo_epi8(low, high)
}

/// The sixteen scales of IQ2_XS and IQ2_S.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn iq2_scales(d: [u8; 2], packed: [u8; 8]) -> [f32; 16] {
    let scales = nibbles_in_order(packed);
    let last = _mm_unpackhi_epi64(scales, scales);
    bytemuck::cast([half_step_scales(half(d), scales, 0.25), half_step_scales(half(d), last, 0.25)])
}

/// `d × (2 × scale + 1) × factor` of eight scales.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn odd_scales(d: __m256, scales: __m128i, factor: f32) -> [f32; 8] {
    let odd = _mm_add_epi8(_mm_add_epi8(scales, scales), _mm_set1_epi8(1));
    let wide = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(odd));
    let product = _mm256_mul_ps(d, wide);
    bytemuck::cast(_mm256_mul_ps(product, _mm256_set1_ps(factor)))
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn iq2_xxs(block: &IQ2_XXS, part: Part<'_, 256, 16>) {
    let words: [[u32; 2]; 8] = bytemuck::cast(block.qs);
    let scales: [u8; 16] = core::array::from_fn(|g| (words[g % 8][1] >> 28) as u8);
    *part.scales = twice(half_step_scales(half(block.d), bytemuck::cast(scales), 0.25));
    for (bytes, [indices, word]) in part.bytes.as_chunks_mut::<32>().0.iter_mut().zip(words) {
        let sizes = indices.to_le_bytes().map(|index| grids::IQ2_XXS[usize::from(index)]);
        *bytes = signed(sizes, even_signs(word));
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn iq2_xs(block: &IQ2_XS, part: Part<'_, 256, 16>) {
    let words: [[u16; 4]; 8] = bytemuck::cast(block.qs);
    *part.scales = iq2_scales(block.d, block.scales);
    for (bytes, word) in part.bytes.as_chunks_mut::<32>().0.iter_mut().zip(words) {
        let sizes = word.map(|word| grids::IQ2_XS[usize::from(word & 0x1ff)]);
        *bytes = signed(sizes, word.map(|word| grids::EVEN_SIGNS[usize::from(word >> 9)]));
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn iq2_s(block: &IQ2_S, part: Part<'_, 256, 16>) {
    *part.scales = iq2_scales(block.d, block.scales);
    for (g, bytes) in part.bytes.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let qs = bytes_at::<4>(&block.qs, g * 4);
        let qh = usize::from(block.qh[g]);
        let sizes: [[u8; 8]; 4] =
            core::array::from_fn(|l| grids::IQ2_S[usize::from(qs[l]) | (qh << (8 - 2 * l) & 0x300)]);
        *bytes = signed(sizes, bytes_at(&block.signs, g * 4));
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn iq3_xxs(block: &IQ3_XXS, part: Part<'_, 256, 16>) {
    let words: [u32; 8] = bytemuck::cast(block.scales_and_signs);
    let scales: [u8; 16] = core::array::from_fn(|g| (words[g % 8] >> 28) as u8);
    *part.scales = twice(half_step_scales(half(block.d), bytemuck::cast(scales), 0.5));
    for (g, bytes) in part.bytes.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let qs = bytes_at::<8>(&block.qs, g * 8);
        let sizes = qs.map(|index| grids::IQ3_XXS[usize::from(index)]);
        *bytes = signed(sizes, even_signs(words[g]));
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn iq3_s(block: &IQ3_S, part: Part<'_, 256, 16>) {
    let [a, b, c, d] = block.scales;
    let scales = nibbles_in_order([a, b, c, d, 0, 0, 0, 0]);
    *part.scales = twice(odd_scales(half(block.d), scales, 1.0));
    for (g, bytes) in part.bytes.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let qs = bytes_at::<8>(&block.qs, g * 8);
        let qh = usize::from(block.qh[g]);
        let sizes: [[u8; 4]; 8] = core::array::from_fn(|i| grids::IQ3_S[usize::from(qs[i]) | (qh << (8 - i) & 0x100)]);
        *bytes = signed(sizes, bytes_at(&block.signs, g * 4));
    }
}

/// Eight times (grid ± ⅛): IQ1 moves a group by an eighth, so that eighths are whole numbers.
///
/// Taking the eighth into the scale instead is exact: it is a power of two, and the scale, an f16 times
/// at most 15, is far from float32's subnormals.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn eighths(entries: [[u8; 8]; 4], minus: [bool; 4]) -> [u8; 32] {
    let delta: [u64; 4] = minus.map(|minus| if minus { u64::MAX } else { 0x0101_0101_0101_0101 });
    let grid: __m256i = bytemuck::cast(entries);
    // The bits that a 16-bit shift carries from one byte into the next are cut off.
    let times_8 = _mm256_and_si256(_mm256_slli_epi16::<3>(grid), _mm256_set1_epi8(-8));
    bytemuck::cast(_mm256_add_epi8(times_8, bytemuck::cast(delta)))
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn iq1_s(block: &IQ1_S, part: Part<'_, 256, 16>) {
    let words: [u16; 8] = bytemuck::cast(block.qh);
    let scales: [u8; 16] = core::array::from_fn(|g| (words[g % 8] >> 12 & 7) as u8);
    *part.scales = twice(odd_scales(half(block.d), bytemuck::cast(scales), 0.125));
    for (g, bytes) in part.bytes.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let qs = bytes_at::<4>(&block.qs, g * 4);
        let qh = usize::from(words[g]);
        let entries = core::array::from_fn(|l| grids::IQ1[usize::from(qs[l]) | (qh >> (3 * l) & 7) << 8]);
        *bytes = eighths(entries, [qh & 0x8000 != 0; 4]);
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn iq1_m(block: &IQ1_M, part: Part<'_, 256, 16>) {
    let (words, d) = block.scales_and_d();
    let scales: [u8; 16] = core::array::from_fn(|k| (words[k / 4] >> (k % 4 * 3) & 7) as u8);
    let scales: __m128i = bytemuck::cast(scales);
    let last = _mm_unpackhi_epi64(scales, scales);
    let d = half(d);
    *part.scales = bytemuck::cast([odd_scales(d, scales, 0.125), odd_scales(d, last, 0.125)]);
    for (g, bytes) in part.bytes.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let qs = bytes_at::<4>(&block.qs, g * 4);
        let qh = usize::from(u16::from_le_bytes(bytes_at(&block.qh, g * 2)));
        let entries = core::array::from_fn(|l| grids::IQ1[usize::from(qs[l]) | (qh >> (4 * l) & 7) << 8]);
        let minus = core::array::from_fn(|l| qh >> (4 * l) & 8 != 0);
        *bytes = eighths(entries, minus);
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn iq4_nl(block: &IQ4_NL, mut part: Part<'_, 32, 2>) {
    *part.bytes = iq4_quants(&block.qs);
    part.set_scale(half(block.d));
}

/// `d × scale` of the eight groups of IQ4_XS.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn iq4_scales(block: &IQ4_XS) -> [f32; 8] {
    let scales: [i32; 8] = core::array::from_fn(|g| i32::from(block.scale(g)));
    bytemuck::cast(_mm256_mul_ps(half(block.d), _mm256_cvtepi32_ps(bytemuck::cast(scales))))
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn iq4_xs(block: &IQ4_XS, part: Part<'_, 256, 16>) {
    *part.scales = twice(iq4_scales(block));
    for (bytes, qs) in part.bytes.as_chunks_mut::<32>().0.iter_mut().zip(block.qs.as_chunks().0) {
        *bytes = iq4_quants(qs);
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn iq4_quants(qs: &[u8; 16]) -> [u8; 32] {
    bytemuck::cast(_mm256_shuffle_epi8(bytemuck::cast([IQ4_VALUES; 2]), nibbles(qs)))
}
