//! Q4_0 to Q8_1: one block is two times 16 values.

use core::arch::x86_64::*;

use super::lanes::{Bytes16, half, scaled, scaled_and_moved};
use crate::block::legacy::{Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q8_1};
use crate::target::Target;

/// The low nibbles, then the high nibbles.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn nibbles(bytes: &[u8; 16]) -> [__m128i; 2] {
    let bytes: __m128i = bytemuck::cast(*bytes);
    let mask = _mm_set1_epi8(0x0f);
    [_mm_and_si128(bytes, mask), _mm_and_si128(_mm_srli_epi16::<4>(bytes), mask)]
}

/// The two halves of an output of 32 values.
#[inline(always)]
pub(super) fn halves<T>(out: &mut [T; 32]) -> [&mut [T; 16]; 2] {
    let ([low, high], []) = out.as_chunks_mut::<16>() else { unreachable!("32 is twice 16") };
    [low, high]
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q4_0<T: Target>(block: &Q4_0, out: &mut [T; 32]) {
    let d = half(block.d);
    for (out, q) in halves(out).into_iter().zip(nibbles(&block.qs)) {
        scaled(out, Bytes16::twice(_mm_add_epi8(q, _mm_set1_epi8(-8))), d);
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q4_1<T: Target>(block: &Q4_1, out: &mut [T; 32]) {
    let (d, m) = (half(block.d), half(block.m));
    for (out, q) in halves(out).into_iter().zip(nibbles(&block.qs)) {
        scaled_and_moved(out, Bytes16::twice(q), d, m);
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

/// The fifth bits of Q5_0 and Q5_1, as bytes of 0xff and 0.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn fifth_bits(qh: [u8; 4]) -> [__m128i; 2] {
    let set = bits_to_bytes(u32::from_le_bytes(qh));
    [_mm256_castsi256_si128(set), _mm256_extracti128_si256::<1>(set)]
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q5_0<T: Target>(block: &Q5_0, out: &mut [T; 32]) {
    let d = half(block.d);
    let quants = nibbles(&block.qs).into_iter().zip(fifth_bits(block.qh));
    for (out, (q, fifth)) in halves(out).into_iter().zip(quants) {
        // A clear fifth bit takes 16 away, which in two's complement sets the upper four bits.
        let minus_16 = _mm_andnot_si128(fifth, _mm_set1_epi8(0xf0_u8.cast_signed()));
        scaled(out, Bytes16::twice(_mm_or_si128(q, minus_16)), d);
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q5_1<T: Target>(block: &Q5_1, out: &mut [T; 32]) {
    let (d, m) = (half(block.d), half(block.m));
    let quants = nibbles(&block.qs).into_iter().zip(fifth_bits(block.qh));
    for (out, (q, fifth)) in halves(out).into_iter().zip(quants) {
        let plus_16 = _mm_and_si128(fifth, _mm_set1_epi8(0x10));
        scaled_and_moved(out, Bytes16::twice(_mm_or_si128(q, plus_16)), d, m);
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
fn signed_bytes<T: Target>(qs: &[u8; 32], d: __m256, out: &mut [T; 32]) {
    for (out, q) in halves(out).into_iter().zip(qs.as_chunks::<16>().0) {
        scaled(out, Bytes16::load(q), d);
    }
}
