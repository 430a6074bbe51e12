//! Q4_0 to Q8_1, and the other types of 32 values with four bits each.

use core::arch::x86_64::*;

use super::lanes::{Table, both, half, halves, interleaved, scaled, scaled_and_moved};
use crate::block::legacy::{Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q8_1};
use crate::target::{Kind, Target};

/// The low nibbles, then the high nibbles.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn nibbles(bytes: &[u8; 16]) -> __m256i {
    let bytes: __m128i = bytemuck::cast(*bytes);
    let both = _mm256_set_m128i(_mm_srli_epi16::<4>(bytes), bytes);
    _mm256_and_si256(both, _mm256_set1_epi8(0x0f))
}

/// `scale × quants[code]` for 16 bytes of two codes each, the low ones first.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn coded<T: Target>(out: &mut [T; 32], qs: &[u8; 16], quants: [i8; 16], scale: __m256) {
    let codes = nibbles(qs);
    if T::KIND != Kind::F32 {
        return Table::new::<T>(quants, scale, None).look_up(out, interleaved(codes));
    }
    let q = _mm256_shuffle_epi8(bytemuck::cast([quants; 2]), codes);
    for (out, q) in halves(out).into_iter().zip(both(q)) {
        scaled(out, q, scale);
    }
}

/// A code less eight.
const Q4_0_QUANTS: [i8; 16] = [-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7];

/// A code itself.
pub(super) const FOUR_BITS: [i8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q4_0<T: Target>(block: &Q4_0, out: &mut [T; 32]) {
    coded(out, &block.qs, Q4_0_QUANTS, half(block.d));
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q4_1<T: Target>(block: &Q4_1, out: &mut [T; 32]) {
    let (d, m) = (half(block.d), half(block.m));
    let q = nibbles(&block.qs);
    if T::KIND != Kind::F32 {
        return Table::new::<T>(FOUR_BITS, d, Some(m)).look_up(out, interleaved(q));
    }
    for (out, q) in halves(out).into_iter().zip(both(q)) {
        scaled_and_moved(out, q, d, m);
    }
}

/// Bit *i* of `bits` as byte *i*: all ones if it is set.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn bits_to_bytes(bits: u32) -> __m256i {
    const BYTE_OF_LANE: [u64; 4] = [0, 0x0101_0101_0101_0101, 0x0202_0202_0202_0202, 0x0303_0303_0303_0303];
    let each_byte_eight_times =
        _mm256_shuffle_epi8(_mm256_set1_epi32(bits.cast_signed()), bytemuck::cast(BYTE_OF_LANE));
    let bit_of_lane = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64.cast_signed());
    _mm256_cmpeq_epi8(_mm256_and_si256(each_byte_eight_times, bit_of_lane), bit_of_lane)
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q5_0<T: Target>(block: &Q5_0, out: &mut [T; 32]) {
    let d = half(block.d);
    let fifth = bits_to_bytes(u32::from_le_bytes(block.qh));
    // A clear fifth bit takes 16 away, which in two's complement sets the upper four bits.
    let minus_16 = _mm256_andnot_si256(fifth, _mm256_set1_epi8(0xf0_u8.cast_signed()));
    let q = _mm256_or_si256(nibbles(&block.qs), minus_16);
    for (out, q) in halves(out).into_iter().zip(both(q)) {
        scaled(out, q, d);
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q5_1<T: Target>(block: &Q5_1, out: &mut [T; 32]) {
    let (d, m) = (half(block.d), half(block.m));
    let fifth = bits_to_bytes(u32::from_le_bytes(block.qh));
    let plus_16 = _mm256_and_si256(fifth, _mm256_set1_epi8(16));
    let q = _mm256_or_si256(nibbles(&block.qs), plus_16);
    for (out, q) in halves(out).into_iter().zip(both(q)) {
        scaled_and_moved(out, q, d, m);
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q8_0<T: Target>(block: &Q8_0, out: &mut [T; 32]) {
    signed_bytes(&block.qs, half(block.d), out);
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q8_1<T: Target>(block: &Q8_1, out: &mut [T; 32]) {
    signed_bytes(&block.qs, half(block.d), out);
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn signed_bytes<T: Target>(qs: &[u8; 32], d: __m256, out: &mut [T; 32]) {
    for (out, q) in halves(out).into_iter().zip(qs.as_chunks::<16>().0) {
        scaled(out, bytemuck::cast(*q), d);
    }
}
