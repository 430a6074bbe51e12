//! The IQ1 types: eleven bits choose eight values of −1, 0 or 1 from a [grid](crate::grids), and a
//! group of values is moved up or down by an eighth.

use super::{Block, block, bytes_at, half};
use crate::grids;

/// How far a group is moved.
const DELTA: f32 = 0.125;

block! {
    /// Eight groups of 32 values: `(d × (2 × scale + 1)) × (grid ± 0.125)`.
    ///
    /// ```text
    ///   0       2                           34                            50
    ///   ├───────┼───────────────────────────┼─────────────────────────────┤
    ///   │ d f16 │ qs: 8 × 4 bytes           │ qh: 8 × u16                 │
    ///   └───────┴───────────────────────────┴─────────────────────────────┘
    ///   byte 4g + l of qs:  low 8 bits of the grid index of values 32g + 8l .. +8    l = 0..4
    ///   qh[g]:   15        │ 14 13 12 │ 11 10 9 │ 8 7 6 │ 5 4 3 │ 2 1 0
    ///            minus ⅛?  │ scale    │ upper 3 bits of the index of l = 3, 2, 1, 0
    /// ```
    IQ1_S: 50 bytes {
        d: [u8; 2],
        qs: [u8; 32],
        qh: [u8; 16],
    }
}

impl Block<256> for IQ1_S {
    #[inline(always)]
    fn decode(&self, y: &mut [f32; 256]) {
        let d = half(self.d);
        for (g, y) in y.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let qh = u16::from_le_bytes(bytes_at(&self.qh, g * 2));
            let dl = d * f32::from(2 * (qh >> 12 & 7) + 1);
            let delta = if qh & 0x8000 != 0 { -DELTA } else { DELTA };
            for (l, y) in y.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                let index = u16::from(self.qs[g * 4 + l]) | (qh >> (3 * l) & 7) << 8;
                eight(y, index, dl, delta);
            }
        }
    }
}

/// Eight values of one grid entry.
#[inline(always)]
fn eight(y: &mut [f32; 8], index: u16, dl: f32, delta: f32) {
    let grid = &grids::IQ1[usize::from(index & 0x7ff)];
    for (y, g) in y.iter_mut().zip(grid) {
        *y = dl * (f32::from(g.cast_signed()) + delta);
    }
}

block! {
    /// Sixteen groups of 16 values with scales of 3 bits, each half group with its own eighth:
    /// `(d × (2 × scale + 1)) × (grid ± 0.125)`. The only type without a field for `d`: its 16 bits
    /// are spread over the top nibbles of the scales.
    ///
    /// ```text
    ///   0                           32              48              56
    ///   ├───────────────────────────┼───────────────┼───────────────┤
    ///   │ qs: 32 bytes              │ qh: 16 bytes  │ scales: 4 u16 │
    ///   └───────────────────────────┴───────────────┴───────────────┘
    ///   byte i of qs:    low 8 bits of the grid index of values 8i .. 8i+8        i = 0..32
    ///   byte j of qh:    7        │ 6 5 4           │ 3        │ 2 1 0
    ///                    minus ⅛? │ upper 3 bits of │ minus ⅛? │ upper 3 bits of
    ///                             │ index 2j+1      │          │ index 2j          j = 0..16
    ///   scales[k]:       15 14 13 12         │ 11 10 9 │ 8 7 6  │ 5 4 3  │ 2 1 0
    ///                    bits 4k+3..4k of d  │ 4k+3    │ 4k+2   │ 4k+1   │ 4k       scale of group
    /// ```
    IQ1_M: 56 bytes {
        qs: [u8; 32],
        qh: [u8; 16],
        scales: [u8; 8],
    }
}

impl IQ1_M {
    /// The four words of scales and, from their top nibbles, the bytes of the f16 `d`.
    #[inline(always)]
    pub(crate) fn scales_and_d(&self) -> ([u16; 4], [u8; 2]) {
        let words: [u16; 4] =
            core::array::from_fn(|k| u16::from_le_bytes([self.scales[2 * k], self.scales[2 * k + 1]]));
        let d = words[0] >> 12 | words[1] >> 12 << 4 | words[2] >> 12 << 8 | words[3] >> 12 << 12;
        (words, d.to_le_bytes())
    }
}

impl Block<256> for IQ1_M {
    #[inline(always)]
    fn decode(&self, y: &mut [f32; 256]) {
        let (scales, d) = self.scales_and_d();
        let d = half(d);
        for (group, y) in y.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let dl = d * f32::from(2 * (scales[group / 4] >> (group % 4 * 3) & 7) + 1);
            for (l, y) in y.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                let upper = self.qh[group] >> (l * 4);
                let delta = if upper & 8 != 0 { -DELTA } else { DELTA };
                let index = u16::from(self.qs[group * 2 + l]) | u16::from(upper & 7) << 8;
                eight(y, index, dl, delta);
            }
        }
    }
}
