//! Types with four-bit codes to 16-bit targets.
//!
//! Only sixteen different values occur in a group of 32: it takes less to narrow each of them once and to
//! look 32 codes up by byte shuffles than to narrow 32 values. A byte shuffle looks up in its own half of
//! the register, so two groups are decoded at once, each with its table in one half.

use core::arch::x86_64::*;

use super::iq::iq4_scales;
use super::k::scales_and_offsets;
use super::lanes::{FINITE, narrowed};
use crate::block::bytes_at;
use crate::block::iq4::{IQ4_NL, IQ4_VALUES, IQ4_XS};
use crate::block::k::Q4_K;
use crate::block::legacy::{Q4_0, Q4_1};
use crate::block::micro::{E2M1_DOUBLED, MXFP4};
use crate::target::{Kind, Target};

/// A code itself.
const FOUR_BITS: [i8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// A code less eight.
const Q4_0_QUANTS: [i8; 16] = [-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7];

/// The quants of sixteen codes as float32, in the order in which [`narrowed`] takes them: for bf16 those
/// with even numbers and those with odd numbers apart. Each register has four quants, twice.
struct Spread<T>(core::marker::PhantomData<T>);

impl<T: Target> Spread<T> {
    const fn of(quants: [i8; 16]) -> [[f32; 8]; 4] {
        let mut spread = [[0.0; 8]; 4];
        let mut i = 0;
        while i < 16 {
            let (register, lane) = match T::KIND {
                Kind::Bf16 => (i / 8 * 2 + i % 2, i % 8 / 2),
                Kind::F32 | Kind::F16 => (i / 4, i % 4),
            };
            spread[register][lane] = quants[i] as f32;
            spread[register][lane + 4] = quants[i] as f32;
            i += 1;
        }
        spread
    }
}

/// The values of sixteen codes for two groups, the first group's in the lower half of the registers.
#[derive(Clone, Copy)]
struct Tables {
    /// The low bytes of the values.
    low: __m256i,
    /// The high bytes.
    high: __m256i,
}

impl Tables {
    /// `scale × quants[code]`, and if there are offsets, these added. All are finite; the first group's
    /// are in the lower half.
    #[target_feature(enable = "avx2,f16c,bmi2")]
    #[inline]
    fn new<T: Target>(quants: [i8; 16], scales: __m256, offsets: Option<__m256>) -> Self {
        const LOW_THEN_HIGH: [u8; 16] = [0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15];
        let value = |quants: [f32; 8]| {
            let product = _mm256_mul_ps(bytemuck::cast(quants), scales);
            offsets.map_or(product, |offsets| _mm256_add_ps(product, offsets))
        };
        let [a, b, c, d] = Spread::<T>::of(quants);
        let split = |values: __m256i| _mm256_shuffle_epi8(values, bytemuck::cast([LOW_THEN_HIGH; 2]));
        let first_eight = split(in_halves::<T>(value(a), value(b)));
        let last_eight = split(in_halves::<T>(value(c), value(d)));
        Self {
            low: _mm256_unpacklo_epi64(first_eight, last_eight),
            high: _mm256_unpackhi_epi64(first_eight, last_eight),
        }
    }

    /// Writes the values of 16 codes of each group; the first group's are in the lower half.
    #[target_feature(enable = "avx2,f16c,bmi2")]
    #[inline]
    fn look_up<T: Target>(self, codes: __m256i, first: &mut [T], second: &mut [T]) {
        let low = _mm256_shuffle_epi8(self.low, codes);
        let high = _mm256_shuffle_epi8(self.high, codes);
        let (a, b) = (_mm256_unpacklo_epi8(low, high), _mm256_unpackhi_epi8(low, high));
        put(first, _mm256_permute2x128_si256::<0x20>(a, b));
        put(second, _mm256_permute2x128_si256::<0x31>(a, b));
    }
}

/// Eight values of each group in a 16-bit target, in order, each group's in its half of the register.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn in_halves<T: Target>(a: __m256, b: __m256) -> __m256i {
    let values = narrowed::<T, FINITE>(a, b);
    match T::KIND {
        Kind::Bf16 => values,
        // Four of the first group, four of the second, four of the first, four of the second.
        Kind::F32 | Kind::F16 => _mm256_permute4x64_epi64::<0b11_01_10_00>(values),
    }
}

#[inline(always)]
fn put<T: Target>(out: &mut [T], values: __m256i) {
    let values: [u16; 16] = bytemuck::cast(values);
    bytemuck::cast_slice_mut(out).copy_from_slice(&values);
}

/// One number for each group: the first in the lower half, the second in the upper half.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn two(first: f32, second: f32) -> __m256 {
    _mm256_blend_ps::<0b1111_0000>(_mm256_set1_ps(first), _mm256_set1_ps(second))
}

/// [`two`] of halves.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn two_halves(first: [u8; 2], second: [u8; 2]) -> __m256 {
    const FOUR_TIMES: [u8; 16] = [0, 1, 0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 2, 3];
    let both: i32 = bytemuck::cast([first, second]);
    _mm256_cvtph_ps(_mm_shuffle_epi8(_mm_cvtsi32_si128(both), bytemuck::cast(FOUR_TIMES)))
}

/// Two groups of 32 values; `qs` has 16 bytes of each, the low nibbles being the first 16 values.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn look_up_nibbles<T: Target>(tables: Tables, qs: [[u8; 16]; 2], out: &mut [T; 64]) {
    let qs: __m256i = bytemuck::cast(qs);
    let mask = _mm256_set1_epi8(0x0f);
    let (first, second) = out.split_at_mut(32);
    let (first_low, first_high) = first.split_at_mut(16);
    let (second_low, second_high) = second.split_at_mut(16);
    tables.look_up(_mm256_and_si256(qs, mask), first_low, second_low);
    tables.look_up(_mm256_and_si256(_mm256_srli_epi16::<4>(qs), mask), first_high, second_high);
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q4_0<T: Target>([a, b]: &[Q4_0; 2], out: &mut [T; 64]) {
    let tables = Tables::new::<T>(Q4_0_QUANTS, two_halves(a.d, b.d), None);
    look_up_nibbles(tables, [a.qs, b.qs], out);
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q4_1<T: Target>([a, b]: &[Q4_1; 2], out: &mut [T; 64]) {
    let tables = Tables::new::<T>(FOUR_BITS, two_halves(a.d, b.d), Some(two_halves(a.m, b.m)));
    look_up_nibbles(tables, [a.qs, b.qs], out);
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn iq4_nl<T: Target>([a, b]: &[IQ4_NL; 2], out: &mut [T; 64]) {
    let tables = Tables::new::<T>(IQ4_VALUES, two_halves(a.d, b.d), None);
    look_up_nibbles(tables, [a.qs, b.qs], out);
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn mxfp4<T: Target>([a, b]: &[MXFP4; 2], out: &mut [T; 64]) {
    let tables = Tables::new::<T>(E2M1_DOUBLED, two(a.half_scale(), b.half_scale()), None);
    look_up_nibbles(tables, [a.qs, b.qs], out);
}

/// Eight scales, two and two as [`two`] lays them.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn pairs(scales: [f32; 8]) -> [__m256; 4] {
    let scales = bytemuck::cast(scales);
    [
        _mm256_permutevar8x32_ps(scales, _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1)),
        _mm256_permutevar8x32_ps(scales, _mm256_setr_epi32(2, 2, 2, 2, 3, 3, 3, 3)),
        _mm256_permutevar8x32_ps(scales, _mm256_setr_epi32(4, 4, 4, 4, 5, 5, 5, 5)),
        _mm256_permutevar8x32_ps(scales, _mm256_setr_epi32(6, 6, 6, 6, 7, 7, 7, 7)),
    ]
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn iq4_xs<T: Target>([block]: &[IQ4_XS; 1], out: &mut [T; 256]) {
    let scales = pairs(iq4_scales(block));
    for (pair, out) in out.as_chunks_mut::<64>().0.iter_mut().enumerate() {
        let tables = Tables::new::<T>(IQ4_VALUES, scales[pair], None);
        look_up_nibbles(tables, bytemuck::cast(bytes_at::<32>(&block.qs, pair * 32)), out);
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q4_k<T: Target>([block]: &[Q4_K; 1], out: &mut [T; 256]) {
    let [scales, offsets] = scales_and_offsets(&block.scales, block.d, block.dmin);
    let (scales, offsets) = (pairs(scales), pairs(offsets));
    for (pair, out) in out.as_chunks_mut::<64>().0.iter_mut().enumerate() {
        let tables = Tables::new::<T>(FOUR_BITS, scales[pair], Some(offsets[pair]));
        let (first, second) = out.split_at_mut(32);
        for (half, (first, second)) in first.chunks_mut(16).zip(second.chunks_mut(16)).enumerate() {
            // The low nibbles are the first group, the high nibbles the second.
            let bytes: __m128i = bytemuck::cast(bytes_at::<16>(&block.qs, pair * 32 + half * 16));
            let shift = _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4);
            let shifted = _mm256_srlv_epi32(_mm256_broadcastsi128_si256(bytes), shift);
            tables.look_up(_mm256_and_si256(shifted, _mm256_set1_epi8(0x0f)), first, second);
        }
    }
}
