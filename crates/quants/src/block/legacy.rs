//! The first quantised types: 32 values a block, one scale `d`, and with `_1` one offset `m` or sum.

use super::{Block, block, half, nibbles};

block! {
    /// Four bits a value: `(q − 8) × d`.
    ///
    /// ```text
    ///   0       2                              18
    ///   ├───────┼───────────────────────────────┤
    ///   │ d f16 │ qs: 16 bytes                  │
    ///   └───────┴───────────────────────────────┘
    ///   byte j of qs:   7 6 5 4 │ 3 2 1 0
    ///                   q[j+16] │ q[j]          j = 0..16
    /// ```
    Q4_0: 18 bytes {
        d: [u8; 2],
        qs: [u8; 16],
    }
}

impl Block<32> for Q4_0 {
    #[inline(always)]
    fn decode(&self, y: &mut [f32; 32]) {
        let d = half(self.d);
        for j in 0..16 {
            let (low, high) = nibbles(self.qs[j]);
            y[j] = (f32::from(low) - 8.0) * d;
            y[j + 16] = (f32::from(high) - 8.0) * d;
        }
    }
}

block! {
    /// Four bits a value and an offset: `q × d + m`.
    ///
    /// ```text
    ///   0       2       4                              20
    ///   ├───────┼───────┼───────────────────────────────┤
    ///   │ d f16 │ m f16 │ qs: 16 bytes, as in Q4_0      │
    ///   └───────┴───────┴───────────────────────────────┘
    /// ```
    Q4_1: 20 bytes {
        d: [u8; 2],
        m: [u8; 2],
        qs: [u8; 16],
    }
}

impl Block<32> for Q4_1 {
    #[inline(always)]
    fn decode(&self, y: &mut [f32; 32]) {
        let (d, m) = (half(self.d), half(self.m));
        for j in 0..16 {
            let (low, high) = nibbles(self.qs[j]);
            y[j] = f32::from(low) * d + m;
            y[j + 16] = f32::from(high) * d + m;
        }
    }
}

block! {
    /// Five bits a value: `(q − 16) × d`. The fifth bits of all values are kept together.
    ///
    /// ```text
    ///   0       2                6                              22
    ///   ├───────┼────────────────┼───────────────────────────────┤
    ///   │ d f16 │ qh: u32        │ qs: 16 bytes, as in Q4_0      │
    ///   └───────┴────────────────┴───────────────────────────────┘
    ///   bit i of qh (little endian) is bit 4 of q[i]     i = 0..32
    /// ```
    Q5_0: 22 bytes {
        d: [u8; 2],
        qh: [u8; 4],
        qs: [u8; 16],
    }
}

/// Bit 4 of value `i` in its place, as Q5_0 and Q5_1 store it.
#[inline(always)]
const fn fifth_bit(qh: u32, i: usize) -> u8 {
    ((qh >> i & 1) as u8) << 4
}

impl Block<32> for Q5_0 {
    #[inline(always)]
    fn decode(&self, y: &mut [f32; 32]) {
        let d = half(self.d);
        let qh = u32::from_le_bytes(self.qh);
        for j in 0..16 {
            let (low, high) = nibbles(self.qs[j]);
            y[j] = (f32::from(low | fifth_bit(qh, j)) - 16.0) * d;
            y[j + 16] = (f32::from(high | fifth_bit(qh, j + 16)) - 16.0) * d;
        }
    }
}

block! {
    /// Five bits a value and an offset: `q × d + m`.
    ///
    /// ```text
    ///   0       2       4                8                              24
    ///   ├───────┼───────┼────────────────┼───────────────────────────────┤
    ///   │ d f16 │ m f16 │ qh: u32        │ qs: 16 bytes                  │
    ///   └───────┴───────┴────────────────┴───────────────────────────────┘
    ///   qh and qs as in Q5_0
    /// ```
    Q5_1: 24 bytes {
        d: [u8; 2],
        m: [u8; 2],
        qh: [u8; 4],
        qs: [u8; 16],
    }
}

impl Block<32> for Q5_1 {
    #[inline(always)]
    fn decode(&self, y: &mut [f32; 32]) {
        let (d, m) = (half(self.d), half(self.m));
        let qh = u32::from_le_bytes(self.qh);
        for j in 0..16 {
            let (low, high) = nibbles(self.qs[j]);
            y[j] = f32::from(low | fifth_bit(qh, j)) * d + m;
            y[j + 16] = f32::from(high | fifth_bit(qh, j + 16)) * d + m;
        }
    }
}

block! {
    /// A signed byte a value: `q × d`.
    ///
    /// ```text
    ///   0       2                                              34
    ///   ├───────┼───────────────────────────────────────────────┤
    ///   │ d f16 │ qs: 32 × i8, in the order of the values       │
    ///   └───────┴───────────────────────────────────────────────┘
    /// ```
    Q8_0: 34 bytes {
        d: [u8; 2],
        qs: [u8; 32],
    }
}

impl Block<32> for Q8_0 {
    #[inline(always)]
    fn decode(&self, y: &mut [f32; 32]) {
        let d = half(self.d);
        for (y, q) in y.iter_mut().zip(self.qs) {
            *y = f32::from(q.cast_signed()) * d;
        }
    }
}

block! {
    /// A signed byte a value: `q × d`. ggml computes with this type and never decodes it; `s`, the
    /// scale times the sum of the quants, is there for its dot products and adds nothing to a value.
    ///
    /// ```text
    ///   0       2       4                                              36
    ///   ├───────┼───────┼───────────────────────────────────────────────┤
    ///   │ d f16 │ s f16 │ qs: 32 × i8, in the order of the values       │
    ///   └───────┴───────┴───────────────────────────────────────────────┘
    /// ```
    Q8_1: 36 bytes {
        d: [u8; 2],
        s: [u8; 2],
        qs: [u8; 32],
    }
}

impl Block<32> for Q8_1 {
    #[inline(always)]
    fn decode(&self, y: &mut [f32; 32]) {
        let d = half(self.d);
        for (y, q) in y.iter_mut().zip(self.qs) {
            *y = f32::from(q.cast_signed()) * d;
        }
    }
}
