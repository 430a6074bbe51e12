//! Q4_0 to Q8_1.

use core::arch::x86_64::*;

use super::super::quants::Part;
use super::lanes::{half, scaled};
use crate::block::legacy::{Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q8_1};
use crate::target::Target;

/// The low nibbles, then the high nibbles.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn nibbles(bytes: &[u8; 16]) -> __m256i {
    let bytes: __m128i = bytemuck::cast(*bytes);
    let both = _mm256_set_m128i(_mm_srli_epi16::<4>(bytes), bytes);
    _mm256_and_si256(both, _mm256_set1_epi8(0x0f))
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q4_0(block: &Q4_0, mut part: Part<'_, 32, 2>) {
    let q = _mm256_sub_epi8(nibbles(&block.qs), _mm256_set1_epi8(8));
    *part.bytes = bytemuck::cast(q);
    part.set_scale(half(block.d));
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q4_1(block: &Q4_1, mut part: Part<'_, 32, 2>) {
    *part.bytes = bytemuck::cast(nibbles(&block.qs));
    part.set_scale(half(block.d));
    part.set_offset(half(block.m));
}

/// Bit *i* of `bits` as byte *i*: all ones if it is set.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn bits_to_bytes(bits: [u8; 4]) -> __m256i {
    const BYTE_OF_LANE: [u64; 4] = [0, 0x0101_0101_0101_0101, 0x0202_0202_0202_0202, 0x0303_0303_0303_0303];
    let bits = _mm256_set1_epi32(i32::from_le_bytes(bits));
    let each_byte_eight_times = _mm256_shuffle_epi8(bits, bytemuck::cast(BYTE_OF_LANE));
    let bit_of_lane = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64.cast_signed());
    _mm256_cmpeq_epi8(_mm256_and_si256(each_byte_eight_times, bit_of_lane), bit_of_lane)
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q5_0(block: &Q5_0, mut part: Part<'_, 32, 2>) {
    // A clear fifth bit takes 16 away, which in two's complement sets the upper four bits.
    let minus_16 = _mm256_andnot_si256(bits_to_bytes(block.qh), _mm256_set1_epi8(-16));
    *part.bytes = bytemuck::cast(_mm256_or_si256(nibbles(&block.qs), minus_16));
    part.set_scale(half(block.d));
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q5_1(block: &Q5_1, mut part: Part<'_, 32, 2>) {
    let plus_16 = _mm256_and_si256(bits_to_bytes(block.qh), _mm256_set1_epi8(16));
    *part.bytes = bytemuck::cast(_mm256_or_si256(nibbles(&block.qs), plus_16));
    part.set_scale(half(block.d));
    part.set_offset(half(block.m));
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q8_0<T: Target>([block]: &[Q8_0; 1], out: &mut [T; 32]) {
    signed_bytes(&block.qs, half(block.d), out);
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q8_1<T: Target>([block]: &[Q8_1; 1], out: &mut [T; 32]) {
    signed_bytes(&block.qs, half(block.d), out);
}

/// Quants that are bytes already, which need no unpacking.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn signed_bytes<T: Target, const N: usize>(qs: &[u8; N], d: __m256, out: &mut [T; N]) {
    for (out, q) in out.as_chunks_mut::<16>().0.iter_mut().zip(qs.as_chunks::<16>().0) {
        scaled(out, q, d);
    }
}
