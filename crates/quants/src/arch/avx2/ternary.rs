//! TQ1_0 and TQ2_0.

use core::arch::x86_64::*;

use super::super::quants::Part;
use super::k::two_bits;
use super::lanes::half;
use crate::block::bytes_at;
use crate::block::ternary::{POW3, TQ1_0, TQ2_0};

/// The first ternary digit of each byte, less one.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn first_digits(fractions: __m256i) -> __m256i {
    // 3x ÷ 256 is (x + x ÷ 2) ÷ 2 ÷ 64. The averages round up, the one taken away first rounds down:
    // the results turn from 0 to 1 at 86 and from 1 to 2 at 171, as they should.
    let lowered = _mm256_subs_epu8(fractions, _mm256_set1_epi8(1));
    let half = _mm256_avg_epu8(lowered, _mm256_setzero_si256());
    let three_quarters = _mm256_avg_epu8(lowered, half);
    let digits = _mm256_and_si256(_mm256_srli_epi16::<6>(three_quarters), _mm256_set1_epi8(3));
    _mm256_sub_epi8(digits, _mm256_set1_epi8(1))
}

/// Drops the first digit, so that the second one is the first.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn times_3(fractions: __m256i) -> __m256i {
    _mm256_add_epi8(_mm256_add_epi8(fractions, fractions), fractions)
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn tq1_0(block: &TQ1_0, mut part: Part<'_, 256, 16>) {
    part.set_scale(half(block.d));
    let (first, rest) = part.bytes.split_at_mut(160);
    let mut fractions = bytemuck::cast(bytes_at::<32>(&block.qs, 0));
    for bytes in first.as_chunks_mut::<32>().0 {
        *bytes = bytemuck::cast(first_digits(fractions));
        fractions = times_3(fractions);
    }
    // The other 16 bytes of qs, beside them the last four bytes with their four digits, as 16 bytes of
    // which the first digit alone is taken.
    let qh: [[u8; 4]; 4] = core::array::from_fn(|n| block.qh.map(|byte| byte.wrapping_mul(POW3[n])));
    let mut fractions: __m256i = bytemuck::cast([bytes_at::<16>(&block.qs, 32), bytemuck::cast(qh)]);
    let [_, last]: [[u8; 16]; 2] = bytemuck::cast(first_digits(fractions));
    let (second, third) = rest.split_at_mut(80);
    third.copy_from_slice(&last);
    for bytes in second.as_chunks_mut::<16>().0 {
        *bytes = bytemuck::cast(_mm256_castsi256_si128(first_digits(fractions)));
        fractions = times_3(fractions);
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn tq2_0(block: &TQ2_0, mut part: Part<'_, 256, 16>) {
    part.set_scale(half(block.d));
    let one = _mm256_set1_epi8(1);
    for (bytes, qs) in part.bytes.as_chunks_mut::<128>().0.iter_mut().zip(block.qs.as_chunks().0) {
        let [a, b, c, d] = two_bits(qs);
        *bytes = bytemuck::cast([
            _mm256_sub_epi8(a, one),
            _mm256_sub_epi8(b, one),
            _mm256_sub_epi8(c, one),
            _mm256_sub_epi8(d, one),
        ]);
    }
}
