//! The K types: super-blocks of 256 values, cut into groups of 16 or 32 with a small integer scale
//! each, and one or two f16 that scale these scales.

use super::{Block, block, bytes_at, half, nibbles};

block! {
    /// Two bits a value: `(d × scale) × q − (dmin × min)`, a scale and a min for every 16 values.
    ///
    /// ```text
    ///   0                16                                          80      82         84
    ///   ├────────────────┼───────────────────────────────────────────┼───────┼──────────┤
    ///   │ scales: 16     │ qs: 64 bytes                              │ d f16 │ dmin f16 │
    ///   └────────────────┴───────────────────────────────────────────┴───────┴──────────┘
    ///   byte g of scales:  7 6 5 4 │ 3 2 1 0
    ///                      min     │ scale        of values 16g .. 16g+16
    ///
    ///   byte l of qs:      7 6   │ 5 4   │ 3 2   │ 1 0
    ///                      q[96+l] q[64+l] q[32+l] q[l]      l = 0..32 → values   0..128
    ///   byte 32 + l likewise                                             values 128..256
    /// ```
    Q2_K: 84 bytes {
        scales: [u8; 16],
        qs: [u8; 64],
        d: [u8; 2],
        dmin: [u8; 2],
    }
}

impl Block<256> for Q2_K {
    #[inline(always)]
    fn decode(&self, y: &mut [f32; 256]) {
        let (d, dmin) = (half(self.d), half(self.dmin));
        for (group, y) in y.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let (scale, min) = nibbles(self.scales[group]);
            let (dl, ml) = (d * f32::from(scale), dmin * f32::from(min));
            let qs: [u8; 16] = bytes_at(&self.qs, group / 8 * 32 + group % 2 * 16);
            let shift = group % 8 / 2 * 2;
            for (y, q) in y.iter_mut().zip(qs) {
                *y = dl * f32::from(q >> shift & 3) - ml;
            }
        }
    }
}

block! {
    /// Three bits a value: `(d × (scale − 32)) × q`, q from −4 to 3, a scale for every 16 values.
    ///
    /// The third bit is stored inverted in meaning: clear, it takes 4 away.
    ///
    /// ```text
    ///   0              32                             96            108     110
    ///   ├──────────────┼──────────────────────────────┼──────────────┼───────┤
    ///   │ hmask: 32    │ qs: 64 bytes                 │ scales: 12   │ d f16 │
    ///   └──────────────┴──────────────────────────────┴──────────────┴───────┘
    ///   byte l of hmask:  bit b is the third bit of value 32b + l       b = 0..8, l = 0..32
    ///   qs                as in Q2_K
    ///
    ///   sixteen scales of 6 bits, s[0..16]:
    ///   bytes 0..8  of scales:   7 6 5 4         │ 3 2 1 0
    ///               byte j       low 4 of s[j+8] │ low 4 of s[j]
    ///   bytes 8..12 of scales:   7 6     │ 5 4   │ 3 2   │ 1 0
    ///               byte 8+j     s[j+12] │ s[j+8]│ s[j+4]│ s[j]    the upper 2 bits, j = 0..4
    /// ```
    Q3_K: 110 bytes {
        hmask: [u8; 32],
        qs: [u8; 64],
        scales: [u8; 12],
        d: [u8; 2],
    }
}

impl Q3_K {
    /// The sixteen scales, 0 to 63.
    #[inline(always)]
    pub(crate) fn scales(&self) -> [u8; 16] {
        core::array::from_fn(|group| {
            let (low, high) = nibbles(self.scales[group % 8]);
            let upper = self.scales[8 + group % 4] >> (group / 4 * 2) & 3;
            (if group < 8 { low } else { high }) | upper << 4
        })
    }
}

impl Block<256> for Q3_K {
    #[inline(always)]
    fn decode(&self, y: &mut [f32; 256]) {
        let d = half(self.d);
        let scales = self.scales();
        for (group, y) in y.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let dl = d * (f32::from(scales[group]) - 32.0);
            let first = group % 2 * 16;
            let qs: [u8; 16] = bytes_at(&self.qs, group / 8 * 32 + first);
            let hmask: [u8; 16] = bytes_at(&self.hmask, first);
            let (shift, bit) = (group % 8 / 2 * 2, group / 2);
            for ((y, q), h) in y.iter_mut().zip(qs).zip(hmask) {
                let q = (q >> shift & 3) | (h >> bit & 1) << 2;
                *y = dl * (f32::from(q) - 4.0);
            }
        }
    }
}

/// The twelve bytes of Q4_K and Q5_K that hold eight scales and eight mins of 6 bits.
///
/// ```text
///   bytes 0..4    7 6               │ 5 4 3 2 1 0
///       byte j    upper 2 of s[j+4] │ s[j]                j = 0..4
///   bytes 4..8    7 6               │ 5 4 3 2 1 0
///       byte 4+j  upper 2 of m[j+4] │ m[j]
///   bytes 8..12   7 6 5 4           │ 3 2 1 0
///       byte 8+j  low 4 of m[j+4]   │ low 4 of s[j+4]
/// ```
#[inline(always)]
pub(crate) fn scales_and_mins(packed: &[u8; 12]) -> ([u8; 8], [u8; 8]) {
    let scale = |j: usize| match j {
        0..4 => packed[j] & 0x3f,
        _ => packed[j + 4] & 0x0f | packed[j - 4] >> 6 << 4,
    };
    let min = |j: usize| match j {
        0..4 => packed[j + 4] & 0x3f,
        _ => packed[j + 4] >> 4 | packed[j] >> 6 << 4,
    };
    (core::array::from_fn(scale), core::array::from_fn(min))
}

block! {
    /// Four bits a value: `(d × scale) × q − (dmin × min)`, a scale and a min for every 32 values.
    ///
    /// ```text
    ///   0       2          4             16                                    144
    ///   ├───────┼──────────┼──────────────┼─────────────────────────────────────┤
    ///   │ d f16 │ dmin f16 │ scales: 12   │ qs: 128 bytes                       │
    ///   └───────┴──────────┴──────────────┴─────────────────────────────────────┘
    ///   scales: see scales_and_mins
    ///   byte 32c + l of qs:  7 6 5 4     │ 3 2 1 0
    ///                        q[64c+32+l] │ q[64c+l]      c = 0..4, l = 0..32
    /// ```
    Q4_K: 144 bytes {
        d: [u8; 2],
        dmin: [u8; 2],
        scales: [u8; 12],
        qs: [u8; 128],
    }
}

impl Block<256> for Q4_K {
    #[inline(always)]
    fn decode(&self, y: &mut [f32; 256]) {
        let (d, dmin) = (half(self.d), half(self.dmin));
        let (scales, mins) = scales_and_mins(&self.scales);
        for (group, y) in y.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let (dl, ml) = (d * f32::from(scales[group]), dmin * f32::from(mins[group]));
            let qs: [u8; 32] = bytes_at(&self.qs, group / 2 * 32);
            let shift = group % 2 * 4;
            for (y, q) in y.iter_mut().zip(qs) {
                *y = dl * f32::from(q >> shift & 0x0f) - ml;
            }
        }
    }
}

block! {
    /// Five bits a value: `(d × scale) × q − (dmin × min)`, a scale and a min for every 32 values.
    ///
    /// ```text
    ///   0       2          4            16            48                           176
    ///   ├───────┼──────────┼─────────────┼─────────────┼────────────────────────────┤
    ///   │ d f16 │ dmin f16 │ scales: 12  │ qh: 32      │ qs: 128 bytes, as in Q4_K  │
    ///   └───────┴──────────┴─────────────┴─────────────┴────────────────────────────┘
    ///   scales: see scales_and_mins
    ///   byte l of qh:  bit b is bit 4 of value 32b + l        b = 0..8, l = 0..32
    /// ```
    Q5_K: 176 bytes {
        d: [u8; 2],
        dmin: [u8; 2],
        scales: [u8; 12],
        qh: [u8; 32],
        qs: [u8; 128],
    }
}

impl Block<256> for Q5_K {
    #[inline(always)]
    fn decode(&self, y: &mut [f32; 256]) {
        let (d, dmin) = (half(self.d), half(self.dmin));
        let (scales, mins) = scales_and_mins(&self.scales);
        for (group, y) in y.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let (dl, ml) = (d * f32::from(scales[group]), dmin * f32::from(mins[group]));
            let qs: [u8; 32] = bytes_at(&self.qs, group / 2 * 32);
            let shift = group % 2 * 4;
            for ((y, q), h) in y.iter_mut().zip(qs).zip(self.qh) {
                let q = (q >> shift & 0x0f) | (h >> group & 1) << 4;
                *y = dl * f32::from(q) - ml;
            }
        }
    }
}

block! {
    /// Six bits a value: `(d × scale) × (q − 32)`, a signed byte as scale for every 16 values.
    ///
    /// ```text
    ///   0                        128                 192              208     210
    ///   ├────────────────────────┼───────────────────┼────────────────┼───────┤
    ///   │ ql: 128 bytes          │ qh: 64 bytes      │ scales: 16 i8  │ d f16 │
    ///   └────────────────────────┴───────────────────┴────────────────┴───────┘
    ///   byte l of ql:       7 6 5 4        │ 3 2 1 0         the low 4 bits
    ///                       q[64+l]        │ q[l]            l = 0..64
    ///   byte l of qh:       7 6   │ 5 4   │ 3 2   │ 1 0      the upper 2 bits
    ///                       q[96+l] q[64+l] q[32+l] q[l]     l = 0..32
    ///   bytes 64 + l of ql and 32 + l of qh likewise for values 128..256
    /// ```
    Q6_K: 210 bytes {
        ql: [u8; 128],
        qh: [u8; 64],
        scales: [u8; 16],
        d: [u8; 2],
    }
}

impl Block<256> for Q6_K {
    #[inline(always)]
    fn decode(&self, y: &mut [f32; 256]) {
        let d = half(self.d);
        for (group, y) in y.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let dl = d * f32::from(self.scales[group].cast_signed());
            let (part, quarter, first) = (group / 8, group % 8 / 2, group % 2 * 16);
            let ql: [u8; 16] = bytes_at(&self.ql, part * 64 + quarter % 2 * 32 + first);
            let qh: [u8; 16] = bytes_at(&self.qh, part * 32 + first);
            for ((y, l), h) in y.iter_mut().zip(ql).zip(qh) {
                let q = (l >> (quarter / 2 * 4) & 0x0f) | (h >> (quarter * 2) & 3) << 4;
                *y = dl * (f32::from(q) - 32.0);
            }
        }
    }
}

block! {
    /// A signed byte a value: `d × q`. ggml computes with this type; the only one whose scale is a
    /// whole float32. `bsums`, sums of 16 quants each, is there for dot products.
    ///
    /// ```text
    ///   0       4                                       260                 292
    ///   ├───────┼───────────────────────────────────────┼────────────────────┤
    ///   │ d f32 │ qs: 256 × i8, in order of the values  │ bsums: 16 × i16    │
    ///   └───────┴───────────────────────────────────────┴────────────────────┘
    /// ```
    Q8_K: 292 bytes {
        d: [u8; 4],
        qs: [u8; 256],
        bsums: [u8; 32],
    }
}

impl Block<256> for Q8_K {
    #[inline(always)]
    fn decode(&self, y: &mut [f32; 256]) {
        let d = f32::from_le_bytes(self.d);
        for (y, q) in y.iter_mut().zip(self.qs) {
            *y = d * f32::from(q.cast_signed());
        }
    }
}
