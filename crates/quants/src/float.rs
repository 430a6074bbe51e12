//! The float formats and the way between them.
//!
//! Widening (f16 or bf16 to f32, f32 to f64) is exact. Narrowing rounds once, to nearest, ties to the
//! even neighbour. NaN stays NaN: it turns quiet and keeps its sign and as much of its payload as the
//! narrower format holds, never infinity. All of it is integer work without a branch, so that the
//! compiler can vectorise it, and it gives the bits that x86's F16C instructions give.

use half::{bf16, f16};

const F32_SIGN: u32 = 0x8000_0000;
const F32_INFINITY: u32 = 0x7f80_0000;

/// The nearest bf16, ties to even; NaN stays NaN with its sign.
///
/// ```
/// # use gguf2st_quants::f32_to_bf16;
/// assert_eq!(f32_to_bf16(1.0 + 1.0 / 256.0).to_f32(), 1.0); // a tie: 1.0 is even
/// assert_eq!(f32_to_bf16(1.0 + 3.0 / 256.0).to_f32(), 1.0 + 4.0 / 256.0);
/// assert!(f32_to_bf16(f32::from_bits(0x7fff_ffff)).is_nan());
/// ```
#[must_use]
#[inline]
pub const fn f32_to_bf16(value: f32) -> bf16 {
    let bits = value.to_bits();
    let upper = (bits >> 16) as u16;
    // Adding just under half of the last place, and one more if that place is odd, carries into it
    // exactly when rounding goes up. It would also carry a NaN's payload into its sign.
    let rounded = (bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16) as u16;
    bf16::from_bits(if bits & !F32_SIGN > F32_INFINITY { upper | 0x0040 } else { rounded })
}

/// The nearest f16, ties to even; a finite value of 65,520 or more in size becomes infinity, NaN
/// stays NaN with its sign.
///
/// ```
/// # use gguf2st_quants::f32_to_f16;
/// assert_eq!(f32_to_f16(65519.0).to_f32(), 65504.0); // the largest f16
/// assert!(f32_to_f16(65520.0).is_infinite());
/// ```
#[must_use]
#[inline]
pub const fn f32_to_f16(value: f32) -> f16 {
    let sign = (value.to_bits() & F32_SIGN) >> 16;
    let size = value.to_bits() & !F32_SIGN;
    let nan = 0x7e00 | ((size >> 13) & 0x03ff);
    // Re-bias the exponent from 127 to 15 and round off 13 bits, as in `f32_to_bf16`.
    let normal = size.wrapping_sub(112 << 23).wrapping_add(0x0fff + ((size >> 13) & 1)) >> 13;
    // Below 2⁻¹⁴ the last place is 2⁻²⁴ throughout, and that is the last place of a float in
    // 0.5..1.0: the addition makes the hardware round there.
    let subnormal = (f32::from_bits(size) + 0.5).to_bits().wrapping_sub(0.5_f32.to_bits());
    let bits = if size > F32_INFINITY {
        nan
    } else if size >= 0x4780_0000 {
        0x7c00
    } else if size < 0x3880_0000 {
        subnormal
    } else {
        normal
    };
    #[allow(clippy::cast_possible_truncation, reason = "a sign in bit 15 and 15 bits")]
    f16::from_bits((sign | bits) as u16)
}

/// The float32 that has the same value; a signalling NaN turns quiet.
#[must_use]
#[inline]
pub const fn f16_to_f32(value: f16) -> f32 {
    let half = value.to_bits() as u32;
    let sign = (half & 0x8000) << 16;
    let shifted = (half & 0x7fff) << 13;
    let exponent = shifted & (0x1f << 23);
    let normal = shifted.wrapping_add(112 << 23);
    // An f16 without exponent is a count of 2⁻²⁴; put it behind an implicit one of weight 2⁻¹⁴ and
    // take that away again, which is exact.
    let subnormal = (f32::from_bits(shifted + (113 << 23)) - f32::from_bits(113 << 23)).to_bits();
    let quiet = if shifted > exponent { 0x0040_0000 } else { 0 };
    let special = shifted | F32_INFINITY | quiet;
    let bits = if exponent == 0 {
        subnormal
    } else if exponent == 0x1f << 23 {
        special
    } else {
        normal
    };
    f32::from_bits(sign | bits)
}

/// The float32 that has the same value, bit for bit: bf16 is the upper half of float32.
#[must_use]
#[inline]
pub const fn bf16_to_f32(value: bf16) -> f32 {
    f32::from_bits((value.to_bits() as u32) << 16)
}

/// The nearest f32, ties to even; a finite value beyond f32's range becomes infinity.
#[must_use]
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "`as` between floats rounds to nearest even")]
pub const fn f64_to_f32(value: f64) -> f32 {
    value as f32
}

/// The nearest bf16 in one rounding, ties to even.
///
/// Rounding to f32 on the way would round twice:
///
/// ```
/// # use gguf2st_quants::{f32_to_bf16, f64_to_bf16};
/// let just_above_a_tie = 1.0 + 1.0 / 256.0 + 1e-12;
/// assert_eq!(f64_to_bf16(just_above_a_tie).to_f64(), 1.0 + 2.0 / 256.0);
/// assert_eq!(f32_to_bf16(just_above_a_tie as f32).to_f64(), 1.0);
/// ```
#[must_use]
#[inline]
pub const fn f64_to_bf16(value: f64) -> bf16 {
    f32_to_bf16(f64_to_f32_odd(value))
}

/// The nearest f16 in one rounding, ties to even.
#[must_use]
#[inline]
pub const fn f64_to_f16(value: f64) -> f16 {
    f32_to_f16(f64_to_f32_odd(value))
}

/// The float32 beside an inexact value whose last bit is odd ("round to odd").
///
/// An odd last bit says "and something more", so that a second rounding to a format at least two bits
/// shorter comes out as if it were the only one.
#[inline]
const fn f64_to_f32_odd(value: f64) -> f32 {
    let nearest = f64_to_f32(value);
    let bits = nearest.to_bits();
    // The cast to i32 of a comparison instead of a branch; both are false for NaN.
    let above = (nearest as f64).abs() > value.abs();
    let below = (nearest as f64).abs() < value.abs();
    if bits & 1 == 1 {
        nearest
    } else if above {
        f32::from_bits(bits - 1)
    } else if below {
        f32::from_bits(bits + 1)
    } else {
        nearest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All f16 (or bf16) bit patterns of finite values from the smallest to the largest, and the
    /// infinities: the candidates that rounding chooses from.
    fn candidates(widen: fn(u16) -> f32) -> Vec<(f64, u16)> {
        let mut all: Vec<(f64, u16)> =
            (0..=u16::MAX).filter(|&bits| widen(bits).is_finite()).map(|bits| (f64::from(widen(bits)), bits)).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        all
    }

    /// Rounding by its definition: the nearer neighbour, or the even one.
    fn nearest_even(candidates: &[(f64, u16)], value: f64, infinity: u16, overflow: f64) -> u16 {
        if value.is_sign_negative() {
            return nearest_even(candidates, -value, infinity, overflow) | 0x8000;
        }
        if value >= overflow {
            return infinity;
        }
        let above = candidates.partition_point(|c| c.0.total_cmp(&value).is_lt());
        let Some(&(high, high_bits)) = candidates.get(above) else {
            return candidates[candidates.len() - 1].1;
        };
        if high == value {
            return high_bits;
        }
        let (low, low_bits) = candidates[above - 1];
        // Exact: neighbours share the exponent or differ by one place of it.
        let (to_low, to_high) = (value - low, high - value);
        if to_low < to_high || (to_low == to_high && low_bits & 1 == 0) { low_bits } else { high_bits }
    }

    fn f16_by_definition(value: f64) -> u16 {
        thread_local!(static ALL: Vec<(f64, u16)> = candidates(|b| f16::from_bits(b).to_f32()));
        ALL.with(|all| nearest_even(all, value, 0x7c00, 65520.0))
    }

    fn bf16_by_definition(value: f64) -> u16 {
        thread_local!(static ALL: Vec<(f64, u16)> = candidates(|b| bf16::from_bits(b).to_f32()));
        // Half a place above the largest bf16, whose place is 2¹²⁰.
        ALL.with(|all| nearest_even(all, value, 0x7f80, f64::from(bf16::MAX) + 2f64.powi(119)))
    }

    #[test]
    fn every_f16_widens_and_narrows_back() {
        for bits in 0..=u16::MAX {
            let value = f16::from_bits(bits);
            let wide = f16_to_f32(value);
            assert_eq!(wide.to_bits(), value.to_f32().to_bits(), "{bits:#06x}");
            let quiet = if value.is_nan() { bits | 0x0200 } else { bits };
            assert_eq!(f32_to_f16(wide).to_bits(), quiet, "{bits:#06x}");
        }
    }

    #[test]
    fn every_bf16_widens_and_narrows_back() {
        for bits in 0..=u16::MAX {
            let value = bf16::from_bits(bits);
            let quiet = if value.is_nan() { bits | 0x0040 } else { bits };
            assert_eq!(f32_to_bf16(bf16_to_f32(value)).to_bits(), quiet, "{bits:#06x}");
        }
    }

    #[test]
    fn ties_and_their_neighbours_in_f64() {
        let exponents = [-160, -149, -134, -133, -126, -30, -25, -24, -15, -14, -1, 0, 7, 15, 16, 127];
        for exponent in exponents {
            for mantissa in 0..2048_u32 {
                let base = (1.0 + f64::from(mantissa) / 2048.0) * 2f64.powi(exponent);
                for offset in [-1_i64, 0, 1] {
                    let near = f64::from_bits(base.to_bits().wrapping_add_signed(offset));
                    for value in [near, -near] {
                        assert_eq!(f64_to_f16(value).to_bits(), f16_by_definition(value), "{value:e}");
                        assert_eq!(f64_to_bf16(value).to_bits(), bf16_by_definition(value), "{value:e}");
                    }
                }
            }
        }
    }

    #[test]
    fn nan_stays_nan_with_its_sign() {
        for payload in [1, 0x1fff, 0x2000, 0x0040_0000, 0x007f_ffff] {
            for sign in [0, F32_SIGN] {
                let nan = f32::from_bits(sign | F32_INFINITY | payload);
                assert!(f32_to_bf16(nan).is_nan() && f32_to_f16(nan).is_nan());
                assert_eq!(f32_to_bf16(nan).is_sign_negative(), sign != 0);
                assert_eq!(f32_to_f16(nan).is_sign_negative(), sign != 0);
                assert!(f64_to_bf16(f64::from(nan)).is_nan() && f64_to_f16(f64::from(nan)).is_nan());
            }
        }
    }

    proptest! {
        #[test]
        fn f32_narrows_as_defined(bits: u32) {
            let value = f32::from_bits(bits);
            prop_assume!(!value.is_nan());
            prop_assert_eq!(f32_to_f16(value).to_bits(), f16_by_definition(f64::from(value)));
            prop_assert_eq!(f32_to_bf16(value).to_bits(), bf16_by_definition(f64::from(value)));
        }

        #[test]
        fn f64_narrows_as_defined(mantissa in 0..1_u64 << 52, exponent in 860..1160_u64, sign in 0..2_u64) {
            let value = f64::from_bits(sign << 63 | exponent << 52 | mantissa);
            prop_assert_eq!(f64_to_f16(value).to_bits(), f16_by_definition(value));
            prop_assert_eq!(f64_to_bf16(value).to_bits(), bf16_by_definition(value));
        }
    }
}
