//! From 16 or 32 quants, a byte each, to as many values in the target: what all kernels share.

use core::arch::x86_64::*;

use crate::target::{Kind, Target};

/// A half in all lanes, widened.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn half(bytes: [u8; 2]) -> __m256 {
    _mm256_cvtph_ps(_mm_set1_epi16(i16::from_le_bytes(bytes)))
}

/// The lower and the upper 16 bytes.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn both(bytes: __m256i) -> [__m128i; 2] {
    [_mm256_castsi256_si128(bytes), _mm256_extracti128_si256::<1>(bytes)]
}

/// The two halves of an output of 32 values.
#[inline(always)]
pub(super) fn halves<T>(out: &mut [T; 32]) -> [&mut [T; 16]; 2] {
    let ([low, high], []) = out.as_chunks_mut::<16>() else { unreachable!("32 is twice 16") };
    [low, high]
}

/// `scale × q` for 16 signed quants.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn scaled<T: Target>(out: &mut [T; 16], q: __m128i, scale: __m256) {
    let (a, b) = widen_signed::<T>(q);
    store(out, _mm256_mul_ps(a, scale), _mm256_mul_ps(b, scale));
}

/// `scale × q` for 32 signed quants, with a scale for each half.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn scaled_halves<T: Target>(out: &mut [T; 32], q: __m256i, scales: [f32; 2]) {
    let [low, high] = halves(out);
    let [q_low, q_high] = both(q);
    scaled(low, q_low, _mm256_set1_ps(scales[0]));
    scaled(high, q_high, _mm256_set1_ps(scales[1]));
}

/// `scale × q + offset` for 16 unsigned quants: a product and a sum, rounded one after the other.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn scaled_and_moved<T: Target>(out: &mut [T; 16], q: __m128i, scale: __m256, offset: __m256) {
    let (a, b) = widen_unsigned::<T>(q);
    let a = _mm256_add_ps(_mm256_mul_ps(a, scale), offset);
    let b = _mm256_add_ps(_mm256_mul_ps(b, scale), offset);
    store(out, a, b);
}

/// `scale × q + offset` for 32 unsigned quants, with a scale and an offset for each half.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn scaled_and_moved_halves<T: Target>(out: &mut [T; 32], q: __m256i, scales: [f32; 2], offsets: [f32; 2]) {
    let [low, high] = halves(out);
    let [q_low, q_high] = both(q);
    scaled_and_moved(low, q_low, _mm256_set1_ps(scales[0]), _mm256_set1_ps(offsets[0]));
    scaled_and_moved(high, q_high, _mm256_set1_ps(scales[1]), _mm256_set1_ps(offsets[1]));
}

/// Sixteen quants as float32. Which of them each lane holds is the target's choice: bf16 takes those
/// with even numbers in one register and those with odd numbers in the other, so that two rounded
/// float32 merge in place; the others take the first eight and the last eight.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn widen_signed<T: Target>(q: __m128i) -> (__m256, __m256) {
    let (a, b) = match T::KIND {
        Kind::Bf16 => {
            let words = _mm256_cvtepi8_epi16(q);
            // The multiplier's sum of 1 × even + 0 × odd is a sign extension of the even words.
            (_mm256_madd_epi16(words, _mm256_set1_epi32(1)), _mm256_srai_epi32::<16>(words))
        }
        Kind::F32 | Kind::F16 => (_mm256_cvtepi8_epi32(q), _mm256_cvtepi8_epi32(_mm_unpackhi_epi64(q, q))),
    };
    (_mm256_cvtepi32_ps(a), _mm256_cvtepi32_ps(b))
}

/// [`widen_signed`] for unsigned quants.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn widen_unsigned<T: Target>(q: __m128i) -> (__m256, __m256) {
    let (a, b) = match T::KIND {
        Kind::Bf16 => {
            let words = _mm256_cvtepu8_epi16(q);
            (_mm256_and_si256(words, _mm256_set1_epi32(0xffff)), _mm256_srli_epi32::<16>(words))
        }
        Kind::F32 | Kind::F16 => (_mm256_cvtepu8_epi32(q), _mm256_cvtepu8_epi32(_mm_unpackhi_epi64(q, q))),
    };
    (_mm256_cvtepi32_ps(a), _mm256_cvtepi32_ps(b))
}

/// Narrows and writes 16 values that lie as [`widen_signed`] lays them and are not NaN (for bf16).
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn store<T: Target>(out: &mut [T; 16], a: __m256, b: __m256) {
    match T::KIND {
        Kind::F32 => put::<T, [f32; 16], _>(out, [a, b]),
        Kind::Bf16 | Kind::F16 => put::<T, [u16; 16], _>(out, narrowed::<T>(a, b)),
    }
}

/// Sixteen values in a 16-bit target, in their order.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn narrowed<T: Target>(a: __m256, b: __m256) -> __m256i {
    match T::KIND {
        Kind::Bf16 => {
            let even = _mm256_srli_epi32::<16>(rounded_to_bf16(a));
            _mm256_blend_epi16::<0b1010_1010>(even, rounded_to_bf16(b))
        }
        // The instruction keeps NaN as `float::f32_to_f16` does.
        Kind::F32 | Kind::F16 => _mm256_set_m128i(
            _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(b),
            _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(a),
        ),
    }
}

/// Writes registers to memory of the same size, which is `Plain`s in all but name.
#[inline(always)]
fn put<T: Target, Plain: bytemuck::Pod, Registers: bytemuck::Pod>(out: &mut [T; 16], registers: Registers) {
    *bytemuck::cast_mut::<[T; 16], Plain>(out) = bytemuck::cast(registers);
}

/// Values whose upper half is the nearest bf16, ties to even; see `float::f32_to_bf16`.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn rounded_to_bf16(values: __m256) -> __m256i {
    let bits = _mm256_castps_si256(values);
    let last_place = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
    _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), last_place)
}

/// Narrows and writes 16 values in their order, of which any may be NaN.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn store_any<T: Target>(out: &mut [T; 16], a: __m256, b: __m256) {
    match T::KIND {
        Kind::Bf16 => {
            let packed = _mm256_packus_epi32(bf16_or_nan(a), bf16_or_nan(b));
            put::<T, [u16; 16], _>(out, _mm256_permute4x64_epi64::<0b11_01_10_00>(packed));
        }
        Kind::F32 | Kind::F16 => store(out, a, b),
    }
}

/// The bits of the nearest bf16s as 32-bit numbers; NaN turns quiet and keeps its upper half.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn bf16_or_nan(values: __m256) -> __m256i {
    let quiet = _mm256_or_si256(_mm256_castps_si256(values), _mm256_set1_epi32(0x0040_0000));
    let nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(values, values));
    _mm256_srli_epi32::<16>(_mm256_blendv_epi8(rounded_to_bf16(values), quiet, nan))
}

/// The values of sixteen codes in a 16-bit target, for groups of 32 or more codes of four bits: it takes
/// less to narrow sixteen values once and to look them up by byte shuffles than to narrow 32.
#[derive(Clone, Copy)]
pub(super) struct Table {
    /// The low bytes of the sixteen values, in both halves of the register.
    low: __m256i,
    /// The high bytes.
    high: __m256i,
}

impl Table {
    /// `scale × quants[code] + offset`, the sum only if there is an offset.
    #[target_feature(enable = "avx2,f16c,bmi2")]
    #[inline]
    pub(super) fn new<T: Target>(quants: [i8; 16], scale: __m256, offset: Option<__m256>) -> Self {
        const LOW_THEN_HIGH: [u8; 16] = [0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15];
        let (a, b) = widen_signed::<T>(bytemuck::cast(quants));
        let (a, b) = (_mm256_mul_ps(a, scale), _mm256_mul_ps(b, scale));
        let values = match offset {
            Some(offset) => narrowed::<T>(_mm256_add_ps(a, offset), _mm256_add_ps(b, offset)),
            None => narrowed::<T>(a, b),
        };
        let bytes = _mm256_shuffle_epi8(values, bytemuck::cast([LOW_THEN_HIGH; 2]));
        Self {
            low: _mm256_permute4x64_epi64::<0b10_00_10_00>(bytes),
            high: _mm256_permute4x64_epi64::<0b11_01_11_01>(bytes),
        }
    }

    /// Writes the values of 32 codes, which lie as [`interleaved`] lays them.
    #[target_feature(enable = "avx2,f16c,bmi2")]
    #[inline]
    pub(super) fn look_up<T: Target>(self, out: &mut [T; 32], codes: __m256i) {
        let low = _mm256_shuffle_epi8(self.low, codes);
        let high = _mm256_shuffle_epi8(self.high, codes);
        let [first, second] = halves(out);
        put::<T, [u16; 16], _>(first, _mm256_unpacklo_epi8(low, high));
        put::<T, [u16; 16], _>(second, _mm256_unpackhi_epi8(low, high));
    }
}

/// 32 bytes in the order 0..8, 16..24, 8..16, 24..32, which [`Table::look_up`] undoes.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn interleaved(bytes: __m256i) -> __m256i {
    _mm256_permute4x64_epi64::<0b11_01_10_00>(bytes)
}
