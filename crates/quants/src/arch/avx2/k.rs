//! The K types: the scales of a block are prepared all at once, then come 32 values at a time.
//!
//! Shifts are immediates, so loops whose step shifts are written out.

use core::arch::x86_64::*;

use super::lanes::{Table, half, interleaved, scaled_and_moved_halves, scaled_halves};
use super::legacy::{FOUR_BITS, signed_bytes};
use crate::block::k::{Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, Q8_K};
use crate::target::{Kind, Target};

/// `d × scale` for 16 scales, each a signed byte.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn group_scales(d: __m256, scales: __m128i) -> [[f32; 2]; 8] {
    let low = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(scales));
    let high = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(scales, scales)));
    bytemuck::cast([_mm256_mul_ps(d, low), _mm256_mul_ps(d, high)])
}

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

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q2_k<T: Target>(block: &Q2_K, out: &mut [T; 256]) {
    let packed: __m128i = bytemuck::cast(block.scales);
    let mask = _mm_set1_epi8(0x0f);
    let dl = group_scales(half(block.d), _mm_and_si128(packed, mask));
    // x − ml is x + (−ml), in every bit.
    let mins = _mm_and_si128(_mm_srli_epi16::<4>(packed), mask);
    let minus_ml = group_scales(negated(half(block.dmin)), mins);
    let (out, _) = out.as_chunks_mut::<32>();
    for (part, qs) in block.qs.as_chunks::<32>().0.iter().enumerate() {
        for (quarter, q) in two_bits(qs).into_iter().enumerate() {
            let at = part * 4 + quarter;
            scaled_and_moved_halves(&mut out[at], q, dl[at], minus_ml[at]);
        }
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q3_k<T: Target>(block: &Q3_K, out: &mut [T; 256]) {
    let scales: __m128i = bytemuck::cast(block.scales());
    let dl = group_scales(half(block.d), _mm_add_epi8(scales, _mm_set1_epi8(-32)));
    // A clear bit takes 4 away.
    let clear = _mm256_xor_si256(bytemuck::cast(block.hmask), _mm256_set1_epi8(-1));
    let (out, _) = out.as_chunks_mut::<32>();
    for (part, qs) in block.qs.as_chunks::<32>().0.iter().enumerate() {
        for (quarter, q) in two_bits(qs).into_iter().enumerate() {
            let at = part * 4 + quarter;
            let minus = _mm256_and_si256(bit_as_4(clear, at), _mm256_set1_epi8(4));
            scaled_halves(&mut out[at], _mm256_sub_epi8(q, minus), dl[at]);
        }
    }
}

/// Bit `bit` of each byte, moved to bit 2.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn bit_as_4(bytes: __m256i, bit: usize) -> __m256i {
    match bit {
        0 => _mm256_slli_epi16::<2>(bytes),
        1 => _mm256_slli_epi16::<1>(bytes),
        2 => bytes,
        3 => _mm256_srli_epi16::<1>(bytes),
        4 => _mm256_srli_epi16::<2>(bytes),
        5 => _mm256_srli_epi16::<3>(bytes),
        6 => _mm256_srli_epi16::<4>(bytes),
        _ => _mm256_srli_epi16::<5>(bytes),
    }
}

/// `d × scale` and `−(dmin × min)` of the eight groups of Q4_K and Q5_K.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn scales_and_mins(packed: &[u8; 12], d: [u8; 2], dmin: [u8; 2]) -> [[f32; 8]; 2] {
    // The layout that `block::k::scales_and_mins` draws, four bytes in a word.
    let [a, b, c]: [u32; 3] = bytemuck::cast(*packed);
    let six_bits = 0x3f3f_3f3f;
    let four_bits = 0x0f0f_0f0f;
    let two_bits = 0x0303_0303;
    let scales = [a & six_bits, (c & four_bits) | (a >> 6 & two_bits) << 4];
    let mins = [b & six_bits, (c >> 4 & four_bits) | (b >> 6 & two_bits) << 4];
    let widened = |words: [u32; 2]| {
        let bytes: i64 = bytemuck::cast(words);
        _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_cvtsi64_si128(bytes)))
    };
    [
        bytemuck::cast(_mm256_mul_ps(half(d), widened(scales))),
        bytemuck::cast(_mm256_mul_ps(negated(half(dmin)), widened(mins))),
    ]
}

/// The low nibbles, then the high nibbles, of 32 bytes.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn nibbles(bytes: __m256i) -> [__m256i; 2] {
    let mask = _mm256_set1_epi8(0x0f);
    [_mm256_and_si256(bytes, mask), _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), mask)]
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q4_k<T: Target>(block: &Q4_K, out: &mut [T; 256]) {
    let [dl, minus_ml] = scales_and_mins(&block.scales, block.d, block.dmin);
    let (out, _) = out.as_chunks_mut::<32>();
    for (pair, qs) in block.qs.as_chunks::<32>().0.iter().enumerate() {
        let bytes = bytemuck::cast(*qs);
        if T::KIND == Kind::F32 {
            for (half, q) in nibbles(bytes).into_iter().enumerate() {
                let at = pair * 2 + half;
                scaled_and_moved_halves(&mut out[at], q, [dl[at]; 2], [minus_ml[at]; 2]);
            }
        } else {
            for (half, codes) in nibbles(interleaved(bytes)).into_iter().enumerate() {
                let at = pair * 2 + half;
                let (dl, minus_ml) = (_mm256_set1_ps(dl[at]), _mm256_set1_ps(minus_ml[at]));
                Table::new::<T>(FOUR_BITS, dl, Some(minus_ml)).look_up(&mut out[at], codes);
            }
        }
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q5_k<T: Target>(block: &Q5_K, out: &mut [T; 256]) {
    let [dl, minus_ml] = scales_and_mins(&block.scales, block.d, block.dmin);
    let mut qh: __m256i = bytemuck::cast(block.qh);
    let (out, _) = out.as_chunks_mut::<32>();
    for (pair, qs) in block.qs.as_chunks::<32>().0.iter().enumerate() {
        let [low, high] = nibbles(bytemuck::cast(*qs));
        let sixteen = _mm256_set1_epi8(16);
        let fifth = [
            _mm256_and_si256(_mm256_slli_epi16::<4>(qh), sixteen),
            _mm256_and_si256(_mm256_slli_epi16::<3>(qh), sixteen),
        ];
        // The next two bits; what comes in from a byte's neighbour is masked off above.
        qh = _mm256_srli_epi16::<2>(qh);
        for (half, (q, fifth)) in [low, high].into_iter().zip(fifth).enumerate() {
            let at = pair * 2 + half;
            let q = _mm256_or_si256(q, fifth);
            scaled_and_moved_halves(&mut out[at], q, [dl[at]; 2], [minus_ml[at]; 2]);
        }
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q6_k<T: Target>(block: &Q6_K, out: &mut [T; 256]) {
    let dl = group_scales(half(block.d), bytemuck::cast(block.scales));
    let (out, _) = out.as_chunks_mut::<32>();
    for (part, qh) in block.qh.as_chunks::<32>().0.iter().enumerate() {
        let qh: __m256i = bytemuck::cast(*qh);
        let first = nibbles(bytemuck::cast(block.ql.as_chunks::<32>().0[part * 2]));
        let second = nibbles(bytemuck::cast(block.ql.as_chunks::<32>().0[part * 2 + 1]));
        // The two upper bits, brought to bits 5 and 4.
        let upper = [_mm256_slli_epi16::<4>(qh), _mm256_slli_epi16::<2>(qh), qh, _mm256_srli_epi16::<2>(qh)];
        let low = [first[0], second[0], first[1], second[1]];
        for (quarter, (low, upper)) in low.into_iter().zip(upper).enumerate() {
            let at = part * 4 + quarter;
            let upper = _mm256_and_si256(upper, _mm256_set1_epi8(0x30));
            let q = _mm256_add_epi8(_mm256_or_si256(low, upper), _mm256_set1_epi8(-32));
            scaled_halves(&mut out[at], q, dl[at]);
        }
    }
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn q8_k<T: Target>(block: &Q8_K, out: &mut [T; 256]) {
    let d = _mm256_set1_ps(f32::from_le_bytes(block.d));
    for (out, qs) in out.as_chunks_mut::<32>().0.iter_mut().zip(block.qs.as_chunks::<32>().0) {
        signed_bytes(qs, d, out);
    }
}
