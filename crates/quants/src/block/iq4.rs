//! The IQ4 types: four bits a value, not on an even scale but into a table of sixteen.

use super::{Block, block, half, nibbles};

/// What the sixteen codes stand for: denser around zero, where most weights are (`kvalues_iq4nl`).
pub(crate) const IQ4_VALUES: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

#[inline(always)]
fn iq4_value(code: u8) -> f32 {
    f32::from(IQ4_VALUES[usize::from(code & 0x0f)])
}

block! {
    /// 32 values and one scale: `d × IQ4_VALUES[q]`.
    ///
    /// ```text
    ///   0       2                              18
    ///   ├───────┼───────────────────────────────┤
    ///   │ d f16 │ qs: 16 bytes                  │
    ///   └───────┴───────────────────────────────┘
    ///   byte j of qs:   7 6 5 4 │ 3 2 1 0
    ///                   q[j+16] │ q[j]          j = 0..16
    /// ```
    IQ4_NL: 18 bytes {
        d: [u8; 2],
        qs: [u8; 16],
    }
}

impl Block<32> for IQ4_NL {
    #[inline(always)]
    fn decode(&self, y: &mut [f32; 32]) {
        let d = half(self.d);
        for j in 0..16 {
            let (low, high) = nibbles(self.qs[j]);
            y[j] = d * iq4_value(low);
            y[j + 16] = d * iq4_value(high);
        }
    }
}

block! {
    /// Eight groups of 32 values with scales of 6 bits: `(d × (scale − 32)) × IQ4_VALUES[q]`.
    ///
    /// ```text
    ///   0       2              4             8                                  136
    ///   ├───────┼──────────────┼─────────────┼───────────────────────────────────┤
    ///   │ d f16 │ scales_h u16 │ scales_l: 4 │ qs: 8 × 16 bytes                  │
    ///   └───────┴──────────────┴─────────────┴───────────────────────────────────┘
    ///   byte j of scales_l:  7 6 5 4         │ 3 2 1 0          the low 4 bits
    ///                        scale[2j+1]     │ scale[2j]
    ///   scales_h:            bits 2g+1, 2g are the upper 2 bits of scale[g]      g = 0..8
    ///   byte 16g + j of qs:  7 6 5 4     │ 3 2 1 0
    ///                        q[32g+16+j] │ q[32g+j]             j = 0..16
    /// ```
    IQ4_XS: 136 bytes {
        d: [u8; 2],
        scales_h: [u8; 2],
        scales_l: [u8; 4],
        qs: [u8; 128],
    }
}

impl IQ4_XS {
    /// The scale of group `g`, −32 to 31.
    #[inline(always)]
    pub(crate) fn scale(&self, g: usize) -> i8 {
        let low = self.scales_l[g / 2] >> (g % 2 * 4) & 0x0f;
        let upper = (u16::from_le_bytes(self.scales_h) >> (g * 2) & 3) as u8;
        (low | upper << 4).cast_signed() - 32
    }
}

impl Block<256> for IQ4_XS {
    #[inline(always)]
    fn decode(&self, y: &mut [f32; 256]) {
        let d = half(self.d);
        for (g, y) in y.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let dl = d * f32::from(self.scale(g));
            for j in 0..16 {
                let (low, high) = nibbles(self.qs[g * 16 + j]);
                y[j] = dl * iq4_value(low);
                y[j + 16] = dl * iq4_value(high);
            }
        }
    }
}
