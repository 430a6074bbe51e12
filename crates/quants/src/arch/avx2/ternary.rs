//! TQ1_0 and TQ2_0.

use core::arch::x86_64::*;

use super::k::two_bits;
use super::lanes::{Bytes16, half, scaled};
use crate::block::bytes_at;
use crate::block::ternary::{POW3, TQ1_0, TQ2_0};
use crate::target::Target;

/// Digit `n` of 16 bytes, less one.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn digits(bytes: __m128i, power: u8) -> __m128i {
    let wide = _mm256_cvtepu8_epi16(bytes);
    let fraction =
        _mm256_and_si256(_mm256_mullo_epi16(wide, _mm256_set1_epi16(i16::from(power))), _mm256_set1_epi16(0xff));
    let digit = _mm256_srli_epi16::<8>(_mm256_mullo_epi16(fraction, _mm256_set1_epi16(3)));
    let packed = _mm_packus_epi16(_mm256_castsi256_si128(digit), _mm256_extracti128_si256::<1>(digit));
    _mm_sub_epi8(packed, _mm_set1_epi8(1))
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn tq1_0<T: Target>(block: &TQ1_0, out: &mut [T; 256]) {
    let d = half(block.d);
    let out = out.as_chunks_mut::<16>().0;
    let (first, rest) = out.split_at_mut(10);
    for (n, out) in first.iter_mut().enumerate() {
        let bytes = bytemuck::cast(bytes_at::<16>(&block.qs, n % 2 * 16));
        scaled(out, Bytes16::twice(digits(bytes, POW3[n / 2])), d);
    }
    let (second, third) = rest.split_at_mut(5);
    let bytes = bytemuck::cast(bytes_at::<16>(&block.qs, 32));
    for (out, power) in second.iter_mut().zip(POW3) {
        scaled(out, Bytes16::twice(digits(bytes, power)), d);
    }
    // The last four bytes have four digits each, all of which fit in one register.
    let multiplied: [[u8; 4]; 4] = core::array::from_fn(|n| block.qh.map(|byte| byte.wrapping_mul(POW3[n])));
    scaled(&mut third[0], Bytes16::twice(digits(bytemuck::cast(multiplied), 1)), d);
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn tq2_0<T: Target>(block: &TQ2_0, out: &mut [T; 256]) {
    let d = half(block.d);
    for (group, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let q = _mm256_add_epi8(two_bits(&block.qs, group).0, _mm256_set1_epi8(-1));
        scaled(out, Bytes16(q), d);
    }
}
