//! From 16 quants, a byte each, to 16 values in the target: what all kernels share.

use core::arch::x86_64::{
    __m128i, __m256, __m256i, _CMP_UNORD_Q, _MM_FROUND_TO_NEAREST_INT, _mm_set1_epi16, _mm256_add_epi32, _mm256_add_ps,
    _mm256_and_si256, _mm256_blend_epi16, _mm256_blendv_epi8, _mm256_broadcastsi128_si256, _mm256_castps_si256,
    _mm256_castsi256_si128, _mm256_cmp_ps, _mm256_cvtepi32_ps, _mm256_cvtph_ps, _mm256_cvtps_ph, _mm256_mul_ps,
    _mm256_or_si256, _mm256_packus_epi32, _mm256_permute2x128_si256, _mm256_permute4x64_epi64, _mm256_set1_epi32,
    _mm256_shuffle_epi8, _mm256_srai_epi32, _mm256_srli_epi32,
};

use crate::target::{Kind, Target};

/// Sixteen quants, the same in both 128-bit halves of a register: a byte shuffle, which never crosses
/// these halves, can then bring any of them anywhere.
#[derive(Clone, Copy)]
pub(super) struct Bytes16(pub(super) __m256i);

impl Bytes16 {
    #[target_feature(enable = "avx2,f16c,bmi2")]
    #[inline]
    pub(super) fn load(bytes: &[u8; 16]) -> Self {
        Self::twice(bytemuck::cast(*bytes))
    }

    #[target_feature(enable = "avx2,f16c,bmi2")]
    #[inline]
    pub(super) fn twice(bytes: __m128i) -> Self {
        Self(_mm256_broadcastsi128_si256(bytes))
    }

    /// The lower and the upper half of 32 quants.
    #[target_feature(enable = "avx2,f16c,bmi2")]
    #[inline]
    pub(super) fn both(bytes: __m256i) -> [Self; 2] {
        [Self::twice(_mm256_castsi256_si128(bytes)), Self(_mm256_permute2x128_si256::<0x11>(bytes, bytes))]
    }
}

/// A half in all lanes, widened.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn half(bytes: [u8; 2]) -> __m256 {
    _mm256_cvtph_ps(_mm_set1_epi16(i16::from_le_bytes(bytes)))
}

/// `scale × q` for 16 signed quants.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn scaled<T: Target>(out: &mut [T; 16], q: Bytes16, scale: __m256) {
    let (a, b) = widen_signed::<T>(q);
    store(out, _mm256_mul_ps(a, scale), _mm256_mul_ps(b, scale));
}

/// `scale × q + offset` for 16 unsigned quants: a product and a sum, rounded one after the other.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn scaled_and_moved<T: Target>(out: &mut [T; 16], q: Bytes16, scale: __m256, offset: __m256) {
    let (a, b) = widen_unsigned::<T>(q);
    let a = _mm256_add_ps(_mm256_mul_ps(a, scale), offset);
    let b = _mm256_add_ps(_mm256_mul_ps(b, scale), offset);
    store(out, a, b);
}

/// Which value each lane of the two registers holds.
///
/// bf16 takes the even values in one and the odd values in the other, so that two rounded float32
/// halves merge in place; the others take the first eight and the last eight.
const fn value_of_lane(kind: Kind, register: usize, lane: usize) -> usize {
    match kind {
        Kind::Bf16 => 2 * lane + register,
        Kind::F32 | Kind::F16 => 8 * register + lane,
    }
}

/// A byte shuffle that brings the value of each lane into byte `to` of the lane and zeros elsewhere.
const fn spread(kind: Kind, register: usize, to: usize) -> [u8; 32] {
    let mut indices = [0x80; 32];
    let mut lane = 0;
    while lane < 8 {
        indices[4 * lane + to] = value_of_lane(kind, register, lane) as u8;
        lane += 1;
    }
    indices
}

struct Spread<T>(core::marker::PhantomData<T>);

impl<T: Target> Spread<T> {
    const UNSIGNED: [[u8; 32]; 2] = [spread(T::KIND, 0, 0), spread(T::KIND, 1, 0)];
    const SIGNED: [[u8; 32]; 2] = [spread(T::KIND, 0, 3), spread(T::KIND, 1, 3)];
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn widen_unsigned<T: Target>(q: Bytes16) -> (__m256, __m256) {
    let [a, b] = Spread::<T>::UNSIGNED;
    let a = _mm256_shuffle_epi8(q.0, bytemuck::cast(a));
    let b = _mm256_shuffle_epi8(q.0, bytemuck::cast(b));
    (_mm256_cvtepi32_ps(a), _mm256_cvtepi32_ps(b))
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn widen_signed<T: Target>(q: Bytes16) -> (__m256, __m256) {
    let [a, b] = Spread::<T>::SIGNED;
    let a = _mm256_srai_epi32::<24>(_mm256_shuffle_epi8(q.0, bytemuck::cast(a)));
    let b = _mm256_srai_epi32::<24>(_mm256_shuffle_epi8(q.0, bytemuck::cast(b)));
    (_mm256_cvtepi32_ps(a), _mm256_cvtepi32_ps(b))
}

/// Narrows and writes 16 values that lie as [`value_of_lane`] says and are not NaN (for bf16).
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn store<T: Target>(out: &mut [T; 16], a: __m256, b: __m256) {
    match T::KIND {
        Kind::F32 => put::<T, [f32; 16], _>(out, [a, b]),
        Kind::Bf16 => {
            let a = _mm256_srli_epi32::<16>(rounded_to_bf16(a));
            let merged = _mm256_blend_epi16::<0b1010_1010>(a, rounded_to_bf16(b));
            put::<T, [u16; 16], _>(out, merged);
        }
        Kind::F16 => put::<T, [u16; 16], _>(out, [to_f16(a), to_f16(b)]),
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
    _mm256_add_epi32(bits, _mm256_add_epi32(last_place, _mm256_set1_epi32(0x7fff)))
}

/// The nearest f16s, ties to even; the instruction keeps NaN as `float::f32_to_f16` does.
#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
pub(super) fn to_f16(values: __m256) -> __m128i {
    _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(values)
}

/// Narrows and writes 16 values in their natural order, of which any may be NaN.
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
