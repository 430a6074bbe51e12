//! The ternary types, for models trained to weights of −1, 0 and 1: 256 values, one scale `d`.

use super::{Block, block, half};

block! {
    /// Five values a byte, in base 3: `(digit − 1) × d`.
    ///
    /// A byte holds the *fraction* of five ternary digits, 0.t₀t₁t₂t₃t₄ in base 3 times 256, rounded
    /// up. So digit n is the integer part of 3 × fraction once the fraction has been multiplied by 3ⁿ
    /// and its integer part dropped, which is what an 8-bit product does.
    ///
    /// ```text
    ///   0                             32             48     52      54
    ///   ├─────────────────────────────┼──────────────┼──────┼───────┤
    ///   │ qs: 48 bytes                               │ qh 4 │ d f16 │
    ///   └─────────────────────────────┴──────────────┴──────┴───────┘
    ///   digit n of byte m of qs[0..32]    value        32n + m     n = 0..5
    ///   digit n of byte m of qs[32..48]   value  160 + 16n + m     n = 0..5
    ///   digit n of byte m of qh           value  240 +  4n + m     n = 0..4
    /// ```
    TQ1_0: 54 bytes {
        qs: [u8; 48],
        qh: [u8; 4],
        d: [u8; 2],
    }
}

/// Powers of three, to bring digit *n* to the front.
pub(crate) const POW3: [u8; 5] = [1, 3, 9, 27, 81];

impl Block<256> for TQ1_0 {
    #[inline(always)]
    fn decode(&self, y: &mut [f32; 256]) {
        let d = half(self.d);
        let (first, rest) = y.split_at_mut(160);
        let (second, third) = rest.split_at_mut(80);
        digits(&self.qs[..32], first, d);
        digits(&self.qs[32..], second, d);
        digits(&self.qh, third, d);
    }
}

/// As many digits of each byte as fill `y`: first the first digits of all bytes, then the second ones.
#[inline(always)]
fn digits(bytes: &[u8], y: &mut [f32], d: f32) {
    for (y, power) in y.chunks_exact_mut(bytes.len()).zip(POW3) {
        for (y, byte) in y.iter_mut().zip(bytes) {
            let fraction = byte.wrapping_mul(power);
            let digit = (u16::from(fraction) * 3) >> 8;
            *y = (f32::from(digit) - 1.0) * d;
        }
    }
}

block! {
    /// Two bits a value: `(q − 1) × d`.
    ///
    /// ```text
    ///   0                                        64      66
    ///   ├────────────────────────────────────────┼───────┤
    ///   │ qs: 64 bytes                           │ d f16 │
    ///   └────────────────────────────────────────┴───────┘
    ///   byte l of qs:   7 6   │ 5 4   │ 3 2   │ 1 0
    ///                   q[96+l] q[64+l] q[32+l] q[l]      l = 0..32 → values   0..128
    ///   byte 32 + l likewise                                          values 128..256
    /// ```
    TQ2_0: 66 bytes {
        qs: [u8; 64],
        d: [u8; 2],
    }
}

impl Block<256> for TQ2_0 {
    #[inline(always)]
    fn decode(&self, y: &mut [f32; 256]) {
        let d = half(self.d);
        for (qs, y) in self.qs.as_chunks::<32>().0.iter().zip(y.as_chunks_mut::<128>().0) {
            for (y, shift) in y.as_chunks_mut::<32>().0.iter_mut().zip([0, 2, 4, 6]) {
                for (y, q) in y.iter_mut().zip(qs) {
                    *y = (f32::from(q >> shift & 3) - 1.0) * d;
                }
            }
        }
    }
}
