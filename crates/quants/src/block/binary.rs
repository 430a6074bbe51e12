//! One and two bits a value with one scale: the smallest blocks.

use super::{Block, block, half};

block! {
    /// One bit a value: `d` if it is set, `−d` if not.
    ///
    /// ```text
    ///   0       2                              18
    ///   ├───────┼───────────────────────────────┤
    ///   │ d f16 │ qs: 16 bytes                  │
    ///   └───────┴───────────────────────────────┘
    ///   bit b of byte j of qs is value 8j + b
    /// ```
    Q1_0: 18 bytes {
        d: [u8; 2],
        qs: [u8; 16],
    }
}

impl Block<128> for Q1_0 {
    #[inline(always)]
    fn decode(&self, y: &mut [f32; 128]) {
        let d = half(self.d);
        for (y, byte) in y.as_chunks_mut::<8>().0.iter_mut().zip(self.qs) {
            for (bit, y) in y.iter_mut().enumerate() {
                *y = if byte >> bit & 1 == 1 { d } else { -d };
            }
        }
    }
}

block! {
    /// Two bits a value: `(q − 1) × d`, so −1, 0, 1 or 2 times the scale.
    ///
    /// ```text
    ///   0       2                              18
    ///   ├───────┼───────────────────────────────┤
    ///   │ d f16 │ qs: 16 bytes                  │
    ///   └───────┴───────────────────────────────┘
    ///   byte j of qs:   7 6    │ 5 4    │ 3 2    │ 1 0
    ///                   q[4j+3]  q[4j+2]  q[4j+1]  q[4j]     j = 0..16
    /// ```
    Q2_0: 18 bytes {
        d: [u8; 2],
        qs: [u8; 16],
    }
}

impl Block<64> for Q2_0 {
    #[inline(always)]
    fn decode(&self, y: &mut [f32; 64]) {
        let d = half(self.d);
        for (y, byte) in y.as_chunks_mut::<4>().0.iter_mut().zip(self.qs) {
            for (y, shift) in y.iter_mut().zip([0, 2, 4, 6]) {
                *y = (f32::from(byte >> shift & 3) - 1.0) * d;
            }
        }
    }
}
