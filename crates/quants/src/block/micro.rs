//! Four-bit floats (E2M1) in small groups with an eight-bit float as scale.
//!
//! An E2M1 number is a sign, two bits of exponent and one of mantissa: ±0, 0.5, 1, 1.5, 2, 3, 4, 6.
//! ggml keeps twice these values, which are integers, and takes half of each scale. Its −0 is the
//! integer 0, so that it decodes to the scale's +0.

use super::{Block, block, nibbles};

/// Twice the value of each E2M1 code (`kvalues_mxfp4` in ggml).
pub(crate) const E2M1_DOUBLED: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

#[inline(always)]
fn e2m1_doubled(code: u8) -> f32 {
    f32::from(E2M1_DOUBLED[usize::from(code & 0x0f)])
}

block! {
    /// The OCP microscaling format: 32 E2M1 values with a power of two as scale.
    ///
    /// ```text
    ///   0      1                              17
    ///   ├──────┼───────────────────────────────┤
    ///   │ e u8 │ qs: 16 bytes                  │
    ///   └──────┴───────────────────────────────┘
    ///   e: the scale is 2^(e − 127)
    ///   byte j of qs:   7 6 5 4 │ 3 2 1 0
    ///                   q[j+16] │ q[j]          j = 0..16
    /// ```
    MXFP4: 17 bytes {
        e: [u8; 1],
        qs: [u8; 16],
    }
}

impl MXFP4 {
    /// Half of the scale: 2^(e − 128), of which e = 0 and e = 1 are subnormal float32.
    #[inline(always)]
    pub(crate) fn half_scale(&self) -> f32 {
        let e = u32::from(self.e[0]);
        f32::from_bits(if e < 2 { 0x0020_0000 << e } else { (e - 1) << 23 })
    }
}

impl Block<32> for MXFP4 {
    #[inline(always)]
    fn decode(&self, y: &mut [f32; 32]) {
        let d = self.half_scale();
        for j in 0..16 {
            let (low, high) = nibbles(self.qs[j]);
            y[j] = e2m1_doubled(low) * d;
            y[j + 16] = e2m1_doubled(high) * d;
        }
    }
}

block! {
    /// NVIDIA's format: four groups of 16 E2M1 values, each with an unsigned E4M3 float as scale.
    ///
    /// ```text
    ///   0           4                                               36
    ///   ├───────────┼────────────────────────────────────────────────┤
    ///   │ d: 4 × u8 │ qs: 4 × 8 bytes                                │
    ///   └───────────┴────────────────────────────────────────────────┘
    ///   byte g of d:         7 │ 6 5 4 3  │ 2 1 0
    ///                        – │ exponent │ mantissa       the scale of values 16g .. 16g+16
    ///   byte 8g + j of qs:   7 6 5 4     │ 3 2 1 0
    ///                        q[16g+8+j]  │ q[16g+j]        j = 0..8
    /// ```
    NVFP4: 36 bytes {
        d: [u8; 4],
        qs: [u8; 32],
    }
}

/// Half of the value of an unsigned E4M3 number: exponent bias 7, subnormals, 0x7f is taken as zero.
const fn half_of_ue4m3(bits: u8) -> f32 {
    if bits == 0x7f {
        return 0.0;
    }
    // Exponent and mantissa in the places of a float32 have the right value but for the bias, 7
    // against 127; this holds for subnormals too, and scaling by a power of two is exact.
    let misbiased = f32::from_bits((bits as u32 & 0x7f) << 20);
    const TWO_TO_119: f32 = f32::from_bits((127 + 119) << 23);
    misbiased * TWO_TO_119
}

/// [`half_of_ue4m3`] of all bytes.
pub(crate) static HALF_OF_UE4M3: [f32; 256] = {
    let mut table = [0.0; 256];
    let mut bits = 0_u8;
    loop {
        table[bits as usize] = half_of_ue4m3(bits);
        if bits == u8::MAX {
            break table;
        }
        bits += 1;
    }
};

impl Block<64> for NVFP4 {
    #[inline(always)]
    fn decode(&self, y: &mut [f32; 64]) {
        for ((y, qs), d) in y.as_chunks_mut::<16>().0.iter_mut().zip(self.qs.as_chunks::<8>().0).zip(self.d) {
            let d = HALF_OF_UE4M3[usize::from(d)];
            for j in 0..8 {
                let (low, high) = nibbles(qs[j]);
                y[j] = e2m1_doubled(low) * d;
                y[j + 8] = e2m1_doubled(high) * d;
            }
        }
    }
}
