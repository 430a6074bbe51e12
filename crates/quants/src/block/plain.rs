//! The plain types, one float a value: a block is one value, little endian.

use half::{bf16, f16};

use crate::float::{bf16_to_f32, f16_to_f32};
use crate::target::Target;

/// F32 to F32 keeps every bit, NaN payloads too.
pub(crate) fn f32_to<T: Target>(values: &[u8], out: &mut [T]) {
    each(values, out, |bytes| T::from_f32(f32::from_le_bytes(bytes)));
}

/// F16 to F16 keeps every bit; to others it goes by way of the exact float32.
pub(crate) fn f16_to<T: Target>(values: &[u8], out: &mut [T]) {
    match bytemuck::try_cast_slice_mut::<T, f16>(out) {
        Ok(out) if T::KIND == crate::target::Kind::F16 => each(values, out, f16::from_le_bytes),
        _ => each(values, out, |bytes| T::from_f32(f16_to_f32(f16::from_le_bytes(bytes)))),
    }
}

/// BF16 to BF16 keeps every bit; to others it goes by way of the exact float32.
pub(crate) fn bf16_to<T: Target>(values: &[u8], out: &mut [T]) {
    match bytemuck::try_cast_slice_mut::<T, bf16>(out) {
        Ok(out) if T::KIND == crate::target::Kind::Bf16 => each(values, out, bf16::from_le_bytes),
        _ => each(values, out, |bytes| T::from_f32(bf16_to_f32(bf16::from_le_bytes(bytes)))),
    }
}

/// F64 to any target in one rounding.
pub(crate) fn f64_to<T: Target>(values: &[u8], out: &mut [T]) {
    each(values, out, |bytes| T::from_f64(f64::from_le_bytes(bytes)));
}

#[inline(always)]
fn each<T, const BYTES: usize>(values: &[u8], out: &mut [T], decode: impl Fn([u8; BYTES]) -> T) {
    for (bytes, slot) in values.as_chunks::<BYTES>().0.iter().zip(out) {
        *slot = decode(*bytes);
    }
}
