//! The IQ3 types: eight or nine bits choose the sizes of four values from a [grid](crate::grids),
//! seven or eight bits give the signs of eight.

use super::iq2::signed;
use super::{Block, block, bytes_at, half, nibbles};
use crate::grids;

/// `d × (scale + ½) ÷ 2`, in that order.
#[inline(always)]
pub(crate) fn half_scale(d: f32, scale: u8) -> f32 {
    d * (0.5 + f32::from(scale)) * 0.5
}

/// `d × (2 × scale + 1)`.
#[inline(always)]
pub(crate) fn odd_scale(d: f32, scale: u8) -> f32 {
    d * f32::from(2 * scale + 1)
}

block! {
    /// Eight groups of 32 values: `(d × (scale + ½) ÷ 2) × ±grid`.
    ///
    /// ```text
    ///   0       2                                 66                      98
    ///   ├───────┼──────────────────────────────────┼───────────────────────┤
    ///   │ d f16 │ qs: 64 bytes                     │ scales_and_signs: 8 u32│
    ///   └───────┴──────────────────────────────────┴───────────────────────┘
    ///   byte i of qs:  grid index of values 4i .. 4i+4                   i = 0..64
    ///   u32 of group g:  31 30 29 28 │ 27..21 │ 20..14 │ 13..7 │ 6..0
    ///                    scale       │ seven signs of values 32g + 8l .. +8, l = 3, 2, 1, 0
    /// ```
    /// The eighth sign makes the number of negative values even.
    IQ3_XXS: 98 bytes {
        d: [u8; 2],
        qs: [u8; 64],
        scales_and_signs: [u8; 32],
    }
}

impl Block<256> for IQ3_XXS {
    #[inline(always)]
    fn decode(&self, y: &mut [f32; 256]) {
        let d = half(self.d);
        for (g, y) in y.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let word = u32::from_le_bytes(bytes_at(&self.scales_and_signs, g * 4));
            let db = half_scale(d, (word >> 28) as u8);
            for (i, y) in y.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                let signs = grids::EVEN_SIGNS[(word >> (7 * (i / 2)) & 0x7f) as usize] >> (i % 2 * 4);
                signed(y, db, &grids::IQ3_XXS[usize::from(self.qs[g * 8 + i])], signs);
            }
        }
    }
}

block! {
    /// Eight groups of 32 values: `(d × (2 × scale + 1)) × ±grid`.
    ///
    /// ```text
    ///   0       2                 66          74                 106         110
    ///   ├───────┼─────────────────┼───────────┼──────────────────┼───────────┤
    ///   │ d f16 │ qs: 64 bytes    │ qh: 8     │ signs: 32 bytes  │ scales: 4 │
    ///   └───────┴─────────────────┴───────────┴──────────────────┴───────────┘
    ///   byte i of qs:      low 8 bits of the grid index of values 4i .. 4i+4     i = 0..64
    ///   byte g of qh:      bit b is the ninth bit of index 8g + b                g = 0..8
    ///   byte i of signs:   bit j set: value 8i + j is negative                   i = 0..32
    ///   byte k of scales:  7 6 5 4       │ 3 2 1 0
    ///                      scale[2k+1]   │ scale[2k]     of groups of 32 values
    /// ```
    IQ3_S: 110 bytes {
        d: [u8; 2],
        qs: [u8; 64],
        qh: [u8; 8],
        signs: [u8; 32],
        scales: [u8; 4],
    }
}

impl Block<256> for IQ3_S {
    #[inline(always)]
    fn decode(&self, y: &mut [f32; 256]) {
        let d = half(self.d);
        for (g, y) in y.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let (low, high) = nibbles(self.scales[g / 2]);
            let db = odd_scale(d, if g % 2 == 0 { low } else { high });
            for (i, y) in y.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                let index = usize::from(self.qs[g * 8 + i]) | usize::from(self.qh[g] >> i & 1) << 8;
                let signs = self.signs[g * 4 + i / 2] >> (i % 2 * 4);
                signed(y, db, &grids::IQ3_S[index], signs);
            }
        }
    }
}
