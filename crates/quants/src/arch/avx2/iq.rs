//! The IQ types: grid entries are gathered eight (or four) quants at a time into 32 signed bytes.

use core::arch::x86_64::*;

use super::lanes::{half, scaled_halves};
use super::legacy::{bits_to_bytes, coded};
use crate::block::bytes_at;
use crate::block::iq1::{IQ1_M, IQ1_S};
use crate::block::iq2::{IQ2_S, IQ2_XS, IQ2_XXS};
use crate::block::iq3::{IQ3_S, IQ3_XXS};
use crate::block::iq4::{IQ4_NL, IQ4_VALUES, IQ4_XS};
use crate::grids;
use crate::target::Target;

/// Thirty-two quants: sizes from a grid, negative where the bit of `signs` is set.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn signed(sizes: __m256i, signs: u32) -> __m256i {
    // −q is (q xor −1) − (−1): all ones are −1.
    let negative = bits_to_bytes(signs);
    _mm256_sub_epi8(_mm256_xor_si256(sizes, negative), negative)
}

/// The signs of 32 values from four times seven stored bits, the first in the lowest.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn even_signs(stored: u32) -> u32 {
    let seven = _pdep_u32(stored, 0x7f7f_7f7f);
    with_even_signs(seven)
}

/// The eighth sign of each byte, which makes the number of signs in it even.
#[inline(always)]
fn with_even_signs(seven: u32) -> u32 {
    // Fold each byte's bits onto its lowest one; what comes in from the byte above stays above bit 0.
    let folded = seven ^ (seven >> 4 & 0x0707_0707);
    let folded = folded ^ (folded >> 2 & 0x0303_0303);
    let folded = (folded ^ folded >> 1) & 0x0101_0101;
    seven | folded << 7
}

/// `d × (scale + ½) × factor` for 16 scales, in the order of `block::iq2::quarter_scale`.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn half_step_scales(d: __m256, scales: __m128i, factor: f32) -> [f32; 16] {
    let eight = |scales: __m128i| {
        let wide = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(scales));
        let product = _mm256_mul_ps(d, _mm256_add_ps(_mm256_set1_ps(0.5), wide));
        _mm256_mul_ps(product, _mm256_set1_ps(factor))
    };
    bytemuck::cast([eight(scales), eight(_mm_unpackhi_epi64(scales, scales))])
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

/// `2 × scale + 1` for 16 scales.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn odd(scales: __m128i) -> __m128i {
    _mm_add_epi8(_mm_add_epi8(scales, scales), _mm_set1_epi8(1))
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn iq2_xxs<T: Target>(block: &IQ2_XXS, out: &mut [T; 256]) {
    let words: [[u32; 2]; 8] = bytemuck::cast(block.qs);
    let scales: [u8; 16] = core::array::from_fn(|g| (words[g % 8][1] >> 28) as u8);
    let db = half_step_scales(half(block.d), bytemuck::cast(scales), 0.25);
    for (g, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let [indices, word] = words[g];
        let sizes: [[u8; 8]; 4] = indices.to_le_bytes().map(|index| grids::IQ2_XXS[usize::from(index)]);
        scaled_halves(out, signed(bytemuck::cast(sizes), even_signs(word)), [db[g]; 2]);
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn iq2_xs<T: Target>(block: &IQ2_XS, out: &mut [T; 256]) {
    let words: [u64; 8] = bytemuck::cast(block.qs);
    let db = half_step_scales(half(block.d), nibbles_in_order(block.scales), 0.25);
    for (g, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let word = words[g];
        let sizes: [[u8; 8]; 4] = core::array::from_fn(|l| grids::IQ2_XS[(word >> (16 * l)) as usize & 0x1ff]);
        let stored = _pext_u64(word, 0xfe00_fe00_fe00_fe00) as u32;
        let signs = even_signs(stored);
        scaled_halves(out, signed(bytemuck::cast(sizes), signs), [db[2 * g], db[2 * g + 1]]);
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn iq2_s<T: Target>(block: &IQ2_S, out: &mut [T; 256]) {
    let db = half_step_scales(half(block.d), nibbles_in_order(block.scales), 0.25);
    for (g, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let qs = bytes_at::<4>(&block.qs, g * 4);
        let qh = usize::from(block.qh[g]);
        let sizes: [[u8; 8]; 4] =
            core::array::from_fn(|l| grids::IQ2_S[usize::from(qs[l]) | (qh << (8 - 2 * l) & 0x300)]);
        let signs = u32::from_le_bytes(bytes_at(&block.signs, g * 4));
        scaled_halves(out, signed(bytemuck::cast(sizes), signs), [db[2 * g], db[2 * g + 1]]);
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn iq3_xxs<T: Target>(block: &IQ3_XXS, out: &mut [T; 256]) {
    let words: [u32; 8] = bytemuck::cast(block.scales_and_signs);
    let scales: [u8; 16] = core::array::from_fn(|g| (words[g % 8] >> 28) as u8);
    let db = half_step_scales(half(block.d), bytemuck::cast(scales), 0.5);
    for (g, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let qs = bytes_at::<8>(&block.qs, g * 8);
        let sizes: [[u8; 4]; 8] = qs.map(|index| grids::IQ3_XXS[usize::from(index)]);
        scaled_halves(out, signed(bytemuck::cast(sizes), even_signs(words[g])), [db[g]; 2]);
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn iq3_s<T: Target>(block: &IQ3_S, out: &mut [T; 256]) {
    let [a, b, c, e] = block.scales;
    let scales = odd(nibbles_in_order([a, b, c, e, 0, 0, 0, 0]));
    let wide = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(scales));
    let db: [f32; 8] = bytemuck::cast(_mm256_mul_ps(half(block.d), wide));
    for (g, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let qs = bytes_at::<8>(&block.qs, g * 8);
        let qh = usize::from(block.qh[g]);
        let sizes: [[u8; 4]; 8] = core::array::from_fn(|i| grids::IQ3_S[usize::from(qs[i]) | (qh << (8 - i) & 0x100)]);
        let signs = u32::from_le_bytes(bytes_at(&block.signs, g * 4));
        scaled_halves(out, signed(bytemuck::cast(sizes), signs), [db[g]; 2]);
    }
}

/// Eight times (grid ± ⅛): IQ1 moves a group by an eighth, so eighths are whole numbers.
///
/// Taking the eighth into the scale instead is exact: it is a power of two, and the scale, an f16 times
/// at most 15, is far from float32's subnormals.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn eighths(entries: [[u8; 8]; 4], minus: [bool; 4]) -> __m256i {
    let delta: [u64; 4] = minus.map(|minus| if minus { u64::MAX } else { 0x0101_0101_0101_0101 });
    let grid: __m256i = bytemuck::cast(entries);
    // Bits that a 16-bit shift carries from one byte into the next are cut off.
    let times_8 = _mm256_and_si256(_mm256_slli_epi16::<3>(grid), _mm256_set1_epi8(0xf8_u8.cast_signed()));
    _mm256_add_epi8(times_8, bytemuck::cast(delta))
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn iq1_s<T: Target>(block: &IQ1_S, out: &mut [T; 256]) {
    let qh: __m128i = bytemuck::cast(block.qh);
    let scales = _mm_and_si128(_mm_srli_epi16::<12>(qh), _mm_set1_epi16(7));
    let odd = _mm_add_epi16(_mm_add_epi16(scales, scales), _mm_set1_epi16(1));
    let dl = _mm256_mul_ps(half(block.d), _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(odd)));
    let dl: [f32; 8] = bytemuck::cast(_mm256_mul_ps(dl, _mm256_set1_ps(0.125)));
    for (g, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let qs = bytes_at::<4>(&block.qs, g * 4);
        let qh = u16::from_le_bytes(bytes_at(&block.qh, g * 2));
        let entries: [[u8; 8]; 4] =
            core::array::from_fn(|l| grids::IQ1[usize::from(qs[l]) | usize::from(qh >> (3 * l) & 7) << 8]);
        scaled_halves(out, eighths(entries, [qh & 0x8000 != 0; 4]), [dl[g]; 2]);
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn iq1_m<T: Target>(block: &IQ1_M, out: &mut [T; 256]) {
    let (words, d) = block.scales_and_d();
    let scales: [u8; 16] = core::array::from_fn(|k| (words[k / 4] >> (k % 4 * 3) & 7) as u8);
    let odd = odd(bytemuck::cast(scales));
    let eight = |odd: __m128i| {
        let dl = _mm256_mul_ps(half(d), _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(odd)));
        _mm256_mul_ps(dl, _mm256_set1_ps(0.125))
    };
    let dl: [f32; 16] = bytemuck::cast([eight(odd), eight(_mm_unpackhi_epi64(odd, odd))]);
    for (g, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let qs = bytes_at::<4>(&block.qs, g * 4);
        let qh = u16::from_le_bytes(bytes_at(&block.qh, g * 2));
        let entries: [[u8; 8]; 4] =
            core::array::from_fn(|l| grids::IQ1[usize::from(qs[l]) | usize::from(qh >> (4 * l) & 7) << 8]);
        let minus = core::array::from_fn(|l| qh >> (4 * l) & 8 != 0);
        scaled_halves(out, eighths(entries, minus), [dl[2 * g], dl[2 * g + 1]]);
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn iq4_nl<T: Target>(block: &IQ4_NL, out: &mut [T; 32]) {
    coded(out, &block.qs, IQ4_VALUES, half(block.d));
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn iq4_xs<T: Target>(block: &IQ4_XS, out: &mut [T; 256]) {
    let scales: [i32; 8] = core::array::from_fn(|g| i32::from(block.scale(g)));
    let dl = _mm256_mul_ps(half(block.d), _mm256_cvtepi32_ps(bytemuck::cast(scales)));
    let dl: [f32; 8] = bytemuck::cast(dl);
    for (g, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        coded(out, &bytes_at(&block.qs, g * 16), IQ4_VALUES, _mm256_set1_ps(dl[g]));
    }
}
