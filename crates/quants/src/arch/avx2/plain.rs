//! F32, F16 and BF16. F64 is rare and left to the compiler.

use core::arch::x86_64::{
    __m128i, __m256, _mm256_castsi256_ps, _mm256_cvtepu16_epi32, _mm256_cvtph_ps, _mm256_slli_epi32,
};

use super::lanes::store_in_order;
use crate::block;
use crate::target::{Kind, Target};

#[target_feature(enable = "avx2,f16c,bmi2")]
pub(super) fn f32_to<T: Target>(values: &[u8], out: &mut [T]) {
    if T::KIND == Kind::F32 {
        return block::plain::f32_to(values, out);
    }
    let (sixteens, rest) = values.as_chunks::<64>();
    let (targets, rest_out) = out.as_chunks_mut::<16>();
    for (bytes, out) in sixteens.iter().zip(targets) {
        let [a, b]: [__m256; 2] = bytemuck::cast(*bytes);
        store_in_order(out, a, b);
    }
    block::plain::f32_to(rest, rest_out);
}

#[target_feature(enable = "avx2,f16c,bmi2")]
pub(super) fn f16_to<T: Target>(values: &[u8], out: &mut [T]) {
    if T::KIND == Kind::F16 {
        return block::plain::f16_to(values, out);
    }
    let (sixteens, rest) = values.as_chunks::<32>();
    let (targets, rest_out) = out.as_chunks_mut::<16>();
    for (bytes, out) in sixteens.iter().zip(targets) {
        let [a, b]: [__m128i; 2] = bytemuck::cast(*bytes);
        store_in_order(out, _mm256_cvtph_ps(a), _mm256_cvtph_ps(b));
    }
    block::plain::f16_to(rest, rest_out);
}

#[target_feature(enable = "avx2,f16c,bmi2")]
pub(super) fn bf16_to<T: Target>(values: &[u8], out: &mut [T]) {
    if T::KIND == Kind::Bf16 {
        return block::plain::bf16_to(values, out);
    }
    let (sixteens, rest) = values.as_chunks::<32>();
    let (targets, rest_out) = out.as_chunks_mut::<16>();
    for (bytes, out) in sixteens.iter().zip(targets) {
        let [a, b]: [__m128i; 2] = bytemuck::cast(*bytes);
        store_in_order(out, from_bf16(a), from_bf16(b));
    }
    block::plain::bf16_to(rest, rest_out);
}

#[target_feature(enable = "avx2,f16c,bmi2")]
#[inline]
fn from_bf16(upper_halves: __m128i) -> __m256 {
    _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(upper_halves)))
}
