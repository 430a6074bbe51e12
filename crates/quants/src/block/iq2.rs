//! The IQ2 types: eight, nine or ten bits choose the sizes of eight values from a
//! [grid](crate::grids), seven or eight bits give their signs.

use super::{Block, block, bytes_at, half, nibbles};
use crate::grids;

/// `d × (scale + ½) ÷ 4`, in that order.
#[inline(always)]
pub(crate) fn quarter_scale(d: f32, scale: u8) -> f32 {
    d * (0.5 + f32::from(scale)) * 0.25
}

/// Eight values: sizes from the grid, bit *j* of `signs` set for a negative value *j*.
#[inline(always)]
pub(super) fn signed<const N: usize>(y: &mut [f32; N], db: f32, sizes: &[u8; N], signs: u8) {
    for (j, (y, size)) in y.iter_mut().zip(sizes).enumerate() {
        let value = db * f32::from(*size);
        *y = value * if signs >> j & 1 == 1 { -1.0 } else { 1.0 };
    }
}

block! {
    /// Eight groups of 32 values: `(d × (scale + ½) ÷ 4) × ±grid`.
    ///
    /// ```text
    ///   0       2                                             66
    ///   ├───────┼──────────────────────────────────────────────┤
    ///   │ d f16 │ qs: 8 × 8 bytes                              │
    ///   └───────┴──────────────────────────────────────────────┘
    ///   group g:  bytes 0..4   grid index of values 32g + 8l .. +8       l = 0..4
    ///             bytes 4..8   a u32:
    ///                          31 30 29 28 │ 27..21 │ 20..14 │ 13..7 │ 6..0
    ///                          scale       │ seven signs of l = 3, 2, 1, 0
    /// ```
    /// The eighth sign makes the number of negative values even.
    IQ2_XXS: 66 bytes {
        d: [u8; 2],
        qs: [u8; 64],
    }
}

impl Block<256> for IQ2_XXS {
    #[inline(always)]
    fn decode(&self, y: &mut [f32; 256]) {
        let d = half(self.d);
        for (y, qs) in y.as_chunks_mut::<32>().0.iter_mut().zip(self.qs.as_chunks::<8>().0) {
            let word = u32::from_le_bytes(bytes_at(qs, 4));
            let db = quarter_scale(d, (word >> 28) as u8);
            for (l, y) in y.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                let signs = grids::EVEN_SIGNS[(word >> (7 * l) & 0x7f) as usize];
                signed(y, db, &grids::IQ2_XXS[usize::from(qs[l])], signs);
            }
        }
    }
}

block! {
    /// Sixteen groups of 16 values: `(d × (scale + ½) ÷ 4) × ±grid`.
    ///
    /// ```text
    ///   0       2                                          66            74
    ///   ├───────┼───────────────────────────────────────────┼─────────────┤
    ///   │ d f16 │ qs: 32 × u16                              │ scales: 8   │
    ///   └───────┴───────────────────────────────────────────┴─────────────┘
    ///   qs[i]:             15 .. 9     │ 8 .. 0
    ///                      seven signs │ grid index      of values 8i .. 8i+8    i = 0..32
    ///   byte k of scales:  7 6 5 4       │ 3 2 1 0
    ///                      scale[2k+1]   │ scale[2k]     of groups of 16 values
    /// ```
    /// The eighth sign makes the number of negative values even.
    IQ2_XS: 74 bytes {
        d: [u8; 2],
        qs: [u8; 64],
        scales: [u8; 8],
    }
}

impl Block<256> for IQ2_XS {
    #[inline(always)]
    fn decode(&self, y: &mut [f32; 256]) {
        let d = half(self.d);
        for (g, y) in y.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let (low, high) = nibbles(self.scales[g]);
            let db = [quarter_scale(d, low), quarter_scale(d, high)];
            for (l, y) in y.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                let q = u16::from_le_bytes(bytes_at(&self.qs, g * 8 + l * 2));
                let signs = grids::EVEN_SIGNS[usize::from(q >> 9)];
                signed(y, db[l / 2], &grids::IQ2_XS[usize::from(q & 0x1ff)], signs);
            }
        }
    }
}

block! {
    /// Sixteen groups of 16 values with all eight signs: `(d × (scale + ½) ÷ 4) × ±grid`.
    ///
    /// ```text
    ///   0       2                 34                66          74            82
    ///   ├───────┼─────────────────┼─────────────────┼───────────┼─────────────┤
    ///   │ d f16 │ qs: 32 bytes    │ signs: 32 bytes │ qh: 8     │ scales: 8   │
    ///   └───────┴─────────────────┴─────────────────┴───────────┴─────────────┘
    ///   byte i of qs:      low 8 bits of the grid index of values 8i .. 8i+8     i = 0..32
    ///   byte i of signs:   bit j set: value 8i + j is negative
    ///   byte g of qh:      7 6     │ 5 4     │ 3 2     │ 1 0
    ///                      index 4g+3  4g+2      4g+1      4g    the upper 2 bits
    ///   scales             as in IQ2_XS
    /// ```
    IQ2_S: 82 bytes {
        d: [u8; 2],
        qs: [u8; 32],
        signs: [u8; 32],
        qh: [u8; 8],
        scales: [u8; 8],
    }
}

impl Block<256> for IQ2_S {
    #[inline(always)]
    fn decode(&self, y: &mut [f32; 256]) {
        let d = half(self.d);
        for (g, y) in y.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let (low, high) = nibbles(self.scales[g]);
            let db = [quarter_scale(d, low), quarter_scale(d, high)];
            for (l, y) in y.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                let upper = usize::from(self.qh[g] >> (2 * l) & 3);
                let index = usize::from(self.qs[g * 4 + l]) | upper << 8;
                signed(y, db[l / 2], &grids::IQ2_S[index], self.signs[g * 4 + l]);
            }
        }
    }
}
