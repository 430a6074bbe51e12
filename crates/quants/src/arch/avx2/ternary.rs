//! TQ1_0 and TQ2_0.

use core::arch::x86_64::*;

use super::k::two_bits;
use super::lanes::{both, half, halves, scaled};
use crate::block::bytes_at;
use crate::block::ternary::{POW3, TQ1_0, TQ2_0};
use crate::target::Target;

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
pub(super) fn tq1_0<T: Target>(block: &TQ1_0, out: &mut [T; 256]) {
    let d = half(block.d);
    let (out, _) = out.as_chunks_mut::<16>();
    let mut fractions = bytemuck::cast(bytes_at::<32>(&block.qs, 0));
    for pair in out[..10].as_chunks_mut::<2>().0 {
        for (out, q) in pair.iter_mut().zip(both(first_digits(fractions))) {
            scaled(out, q, d);
        }
        fractions = times_3(fractions);
    }
    // The other 16 bytes of qs; and the last four bytes with their four digits, which come as 16 bytes
    // of which the first digit alone is taken.
    let qh: [[u8; 4]; 4] = core::array::from_fn(|n| block.qh.map(|byte| byte.wrapping_mul(POW3[n])));
    let mut fractions = _mm256_set_m128i(bytemuck::cast(qh), bytemuck::cast(bytes_at::<16>(&block.qs, 32)));
    let [_, last] = both(first_digits(fractions));
    scaled(&mut out[15], last, d);
    for out in &mut out[10..15] {
        let [q, _] = both(first_digits(fractions));
        scaled(out, q, d);
        fractions = times_3(fractions);
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn tq2_0<T: Target>(block: &TQ2_0, out: &mut [T; 256]) {
    let d = half(block.d);
    let (out, _) = out.as_chunks_mut::<32>();
    for (part, qs) in block.qs.as_chunks::<32>().0.iter().enumerate() {
        for (quarter, q) in two_bits(qs).into_iter().enumerate() {
            let q = _mm256_sub_epi8(q, _mm256_set1_epi8(1));
            for (out, q) in halves(&mut out[part * 4 + quarter]).into_iter().zip(both(q)) {
                scaled(out, q, d);
            }
        }
    }
}
