//! What values are decoded to.

use half::{bf16, f16};

use crate::float;

/// A float type that blocks can be decoded to: [`f32`], [`half::bf16`] or [`half::f16`].
///
/// Sealed: the kernels know these three.
pub trait Target: private::Target {}

impl Target for f32 {}
impl Target for bf16 {}
impl Target for f16 {}

/// Which of the three a [`Target`] is, for code that is written once for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    F32,
    Bf16,
    F16,
}

pub(crate) mod private {
    use super::*;

    pub trait Target: bytemuck::Pod + Send + Sync + core::fmt::Debug {
        const KIND: Kind;

        /// The value in one rounding.
        fn from_f32(value: f32) -> Self;

        /// The value in one rounding.
        fn from_f64(value: f64) -> Self;

        /// Whether any value is infinite; the compiler makes this wide compares without a branch.
        fn any_infinite(values: &[Self]) -> bool;

        fn is_infinite(self) -> bool {
            Self::any_infinite(&[self])
        }

        /// Lets `decode` write `N` float32 and puts them into `out`: directly, or by way of a buffer
        /// on the stack that is narrowed while it is still in the first-level cache.
        fn write<const N: usize>(out: &mut [Self; N], decode: impl FnOnce(&mut [f32; N]));
    }

    impl Target for f32 {
        const KIND: Kind = Kind::F32;

        #[inline(always)]
        fn from_f32(value: f32) -> Self {
            value
        }

        #[inline(always)]
        fn from_f64(value: f64) -> Self {
            float::f64_to_f32(value)
        }

        fn any_infinite(values: &[Self]) -> bool {
            values.iter().fold(false, |any, value| any | value.is_infinite())
        }

        #[inline(always)]
        fn write<const N: usize>(out: &mut [Self; N], decode: impl FnOnce(&mut [f32; N])) {
            decode(out);
        }
    }

    macro_rules! half_target {
        ($type:ty, $kind:expr, $from_f32:path, $from_f64:path) => {
            impl Target for $type {
                const KIND: Kind = $kind;

                #[inline(always)]
                fn from_f32(value: f32) -> Self {
                    $from_f32(value)
                }

                #[inline(always)]
                fn from_f64(value: f64) -> Self {
                    $from_f64(value)
                }

                fn any_infinite(values: &[Self]) -> bool {
                    let infinity = <$type>::INFINITY.to_bits();
                    values.iter().fold(false, |any, value| any | (value.to_bits() & 0x7fff == infinity))
                }

                #[inline(always)]
                fn write<const N: usize>(out: &mut [Self; N], decode: impl FnOnce(&mut [f32; N])) {
                    let mut values = [0.0; N];
                    decode(&mut values);
                    for (slot, value) in out.iter_mut().zip(values) {
                        *slot = $from_f32(value);
                    }
                }
            }
        };
    }

    half_target!(bf16, Kind::Bf16, float::f32_to_bf16, float::f64_to_bf16);
    half_target!(f16, Kind::F16, float::f32_to_f16, float::f64_to_f16);
}
