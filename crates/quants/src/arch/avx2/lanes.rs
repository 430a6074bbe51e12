//! From quants, a byte each, to values in the target: what all kernels share.
//!
//! To move data between the two 128-bit halves of a register costs several times what other instructions
//! do, but widening bytes *from memory* is cheap. So a kernel first unpacks 256 values to [`Quants`],
//! bytes in the order of the values, and then all are widened, scaled, narrowed and written. The few
//! hundred bytes in between never leave the first-level cache.

use core::arch::x86_64::*;

use super::super::quants::{Part, Quants, VALUES};
use crate::target::{Kind, Target};

impl<const N: usize, const GROUPS: usize> Part<'_, N, GROUPS> {
    /// One scale for the whole block, the same in all lanes.
    #[inline(always)]
    pub(super) fn set_scale(&mut self, scale: __m256) {
        fill(self.scales, scale);
    }

    /// One offset for the whole block, the same in all lanes.
    #[inline(always)]
    pub(super) fn set_offset(&mut self, offset: __m256) {
        fill(self.offsets, offset);
    }
}

#[inline(always)]
fn fill<const GROUPS: usize>(groups: &mut [f32; GROUPS], value: __m256) {
    let lanes: [f32; 8] = bytemuck::cast(value);
    for eight in groups.chunks_mut(8) {
        eight.copy_from_slice(&lanes[..eight.len()]);
    }
}

impl Quants {
    /// Whether no scale or offset is NaN or infinite. Then no value is NaN: a product of a finite scale
    /// and a quant can be infinite at worst, and stays so with a finite offset.
    #[target_feature(enable = "avx2,f16c,bmi2")]
    #[inline]
    fn is_finite(&self) -> bool {
        let [a, b]: [__m256; 2] = bytemuck::cast(self.scales);
        let [c, d]: [__m256; 2] = bytemuck::cast(self.offsets);
        // x − x is 0 for finite x and NaN for others.
        let zero = |x: __m256| _mm256_sub_ps(x, x);
        let sum = _mm256_add_ps(_mm256_add_ps(zero(a), zero(b)), _mm256_add_ps(zero(c), zero(d)));
        _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_UNORD_Q>(sum, sum)) == 0
    }

    /// Whether rounding to bf16 meets no tie, provided that all products are exact.
    ///
    /// A tie is a product of nine significant bits, the last one being set. The significant bits of an
    /// exact product, up to the last one set, are no fewer than those of either factor; so a scale with a
    /// bit set beyond the first nine rules ties out. Three in four f16 scales have one.
    #[target_feature(enable = "avx2,f16c,bmi2")]
    #[inline]
    fn has_no_ties(&self) -> bool {
        let [a, b]: [__m256i; 2] = bytemuck::cast(self.scales);
        let nine_bits_suffice = |scales: __m256i| {
            let beyond = _mm256_and_si256(scales, _mm256_set1_epi32(0x7fff));
            _mm256_cmpeq_epi32(beyond, _mm256_setzero_si256())
        };
        let some = _mm256_or_si256(nine_bits_suffice(a), nine_bits_suffice(b));
        _mm256_testz_si256(some, some) == 1
    }

    /// Writes `scale × q` for signed quants. All products are exact: no scale has more than 17
    /// significant bits, and no quant more than 7.
    ///
    /// Not to be inlined: the compiler would see the bytes in registers and widen them from there.
    #[target_feature(enable = "avx2,f16c,bmi2")]
    #[inline(never)]
    pub(super) fn scale<T: Target>(&self, out: &mut [T; VALUES]) {
        match T::KIND {
            Kind::F32 | Kind::F16 => self.scale_as::<T, FINITE>(out),
            Kind::Bf16 if !self.is_finite() => self.scale_as::<T, ANY>(out),
            Kind::Bf16 if self.has_no_ties() => self.scale_as::<T, NO_TIES>(out),
            Kind::Bf16 => self.scale_as::<T, FINITE>(out),
        }
    }

    #[target_feature(enable = "avx2,f16c,bmi2")]
    #[inline]
    fn scale_as<T: Target, const VALUES_ARE: u8>(&self, out: &mut [T; VALUES]) {
        let (out, _) = out.as_chunks_mut::<16>();
        for ((out, q), scale) in out.iter_mut().zip(self.bytes.as_chunks().0).zip(&self.scales) {
            let (a, b) = signed::<T>(q);
            let scale = _mm256_set1_ps(*scale);
            store::<T, VALUES_ARE>(out, _mm256_mul_ps(a, scale), _mm256_mul_ps(b, scale));
        }
    }

    /// Writes `scale × q + offset` for unsigned quants: a product and a sum, rounded one after the other.
    #[target_feature(enable = "avx2,f16c,bmi2")]
    #[inline(never)]
    pub(super) fn scale_and_move<T: Target>(&self, out: &mut [T; VALUES]) {
        if T::KIND != Kind::Bf16 || self.is_finite() {
            self.scale_and_move_as::<T, FINITE>(out);
        } else {
            self.scale_and_move_as::<T, ANY>(out);
        }
    }

    #[target_feature(enable = "avx2,f16c,bmi2")]
    #[inline]
    fn scale_and_move_as<T: Target, const VALUES_ARE: u8>(&self, out: &mut [T; VALUES]) {
        let (out, _) = out.as_chunks_mut::<16>();
        let factors = self.scales.iter().zip(&self.offsets);
        for ((out, q), (scale, offset)) in out.iter_mut().zip(self.bytes.as_chunks().0).zip(factors) {
            let (a, b) = unsigned::<T>(q);
            let (scale, offset) = (_mm256_set1_ps(*scale), _mm256_set1_ps(*offset));
            let a = _mm256_add_ps(_mm256_mul_ps(a, scale), offset);
            let b = _mm256_add_ps(_mm256_mul_ps(b, scale), offset);
            store::<T, VALUES_ARE>(out, a, b);
        }
    }
}

/// What is known of values that are narrowed to bf16: nothing, …
const ANY: u8 = 0;
/// … that none is NaN, …
pub(super) const FINITE: u8 = 1;
/// … or besides that none lies in the middle between two bf16.
const NO_TIES: u8 = 2;

/// Writes `scale × q` for 16 signed quants that already lie in memory as bytes; `scale` is finite.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn scaled<T: Target>(out: &mut [T; 16], q: &[u8; 16], scale: __m256) {
    let (a, b) = signed::<T>(q);
    store::<T, FINITE>(out, _mm256_mul_ps(a, scale), _mm256_mul_ps(b, scale));
}

/// A half in all lanes, widened.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn half(bytes: [u8; 2]) -> __m256 {
    _mm256_cvtph_ps(_mm_set1_epi16(i16::from_le_bytes(bytes)))
}

/// Sixteen signed quants as float32. Which of them each lane holds is the target's choice: bf16 takes
/// those with even numbers in one register and those with odd numbers in the other, so that two rounded
/// float32 merge in place; the others take the first eight and the last eight.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn signed<T: Target>(q: &[u8; 16]) -> (__m256, __m256) {
    let (a, b) = match T::KIND {
        Kind::Bf16 => {
            let words = _mm256_cvtepi8_epi16(bytemuck::cast(*q));
            // The multiplier's 1 × even + 0 × odd is a sign extension of the even words.
            (_mm256_madd_epi16(words, _mm256_set1_epi32(1)), _mm256_srai_epi32::<16>(words))
        }
        Kind::F32 | Kind::F16 => {
            let [a, b] = eights(q);
            (_mm256_cvtepi8_epi32(a), _mm256_cvtepi8_epi32(b))
        }
    };
    (_mm256_cvtepi32_ps(a), _mm256_cvtepi32_ps(b))
}

/// Sixteen unsigned quants as float32, laid as by [`signed`].
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn unsigned<T: Target>(q: &[u8; 16]) -> (__m256, __m256) {
    let (a, b) = match T::KIND {
        Kind::Bf16 => {
            let words = _mm256_cvtepu8_epi16(bytemuck::cast(*q));
            (_mm256_and_si256(words, _mm256_set1_epi32(0xffff)), _mm256_srli_epi32::<16>(words))
        }
        Kind::F32 | Kind::F16 => {
            let [a, b] = eights(q);
            (_mm256_cvtepu8_epi32(a), _mm256_cvtepu8_epi32(b))
        }
    };
    (_mm256_cvtepi32_ps(a), _mm256_cvtepi32_ps(b))
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn eights(q: &[u8; 16]) -> [__m128i; 2] {
    let [a, b]: [i64; 2] = bytemuck::cast(*q);
    [_mm_cvtsi64_si128(a), _mm_cvtsi64_si128(b)]
}

/// Narrows and writes 16 values that lie as [`signed`] lays them.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn store<T: Target, const VALUES_ARE: u8>(out: &mut [T; 16], a: __m256, b: __m256) {
    match T::KIND {
        Kind::F32 => put::<T, [f32; 16], _>(out, [a, b]),
        Kind::Bf16 | Kind::F16 => put::<T, [u16; 16], _>(out, narrowed::<T, VALUES_ARE>(a, b)),
    }
}

/// Sixteen values in a 16-bit target, in their order.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn narrowed<T: Target, const VALUES_ARE: u8>(a: __m256, b: __m256) -> __m256i {
    match T::KIND {
        Kind::Bf16 => {
            let even = _mm256_srli_epi32::<16>(rounded_to_bf16::<VALUES_ARE>(a));
            _mm256_blend_epi16::<0b1010_1010>(even, rounded_to_bf16::<VALUES_ARE>(b))
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

/// Values whose upper half is the nearest bf16, ties to even; see `float::f32_to_bf16`. NaN, where there
/// may be one, turns quiet and keeps its upper half.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn rounded_to_bf16<const VALUES_ARE: u8>(values: __m256) -> __m256i {
    let bits = _mm256_castps_si256(values);
    if VALUES_ARE == NO_TIES {
        return _mm256_add_epi32(bits, _mm256_set1_epi32(0x8000));
    }
    let last_place = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
    let rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), last_place);
    if VALUES_ARE == FINITE {
        return rounded;
    }
    let quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x0040_0000));
    let nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(values, values));
    _mm256_blendv_epi8(rounded, quiet, nan)
}

/// Narrows and writes 16 values in their order, of which any may be NaN.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn store_in_order<T: Target>(out: &mut [T; 16], a: __m256, b: __m256) {
    match T::KIND {
        Kind::Bf16 => {
            let a = _mm256_srli_epi32::<16>(rounded_to_bf16::<ANY>(a));
            let b = _mm256_srli_epi32::<16>(rounded_to_bf16::<ANY>(b));
            let packed = _mm256_packus_epi32(a, b);
            put::<T, [u16; 16], _>(out, _mm256_permute4x64_epi64::<0b11_01_10_00>(packed));
        }
        Kind::F32 | Kind::F16 => store::<T, ANY>(out, a, b),
    }
}
