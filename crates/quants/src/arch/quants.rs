//! What an instruction set unpacks blocks to before it widens them: a byte a quant.

/// Values in a [`Quants`]: one block of most types, several of the others.
pub(super) const VALUES: usize = 256;

/// 256 quants, with a scale and an offset for every 16 of them.
#[repr(align(32))]
pub(super) struct Quants {
    pub(super) bytes: [u8; VALUES],
    pub(super) scales: [f32; VALUES / 16],
    pub(super) offsets: [f32; VALUES / 16],
}

/// The place of one block's `N` values in a [`Quants`], with its `GROUPS` = `N` ÷ 16 scales.
pub(super) struct Part<'a, const N: usize, const GROUPS: usize> {
    pub(super) bytes: &'a mut [u8; N],
    pub(super) scales: &'a mut [f32; GROUPS],
    pub(super) offsets: &'a mut [f32; GROUPS],
}

impl Quants {
    pub(super) const ZERO: Self = Self { bytes: [0; VALUES], scales: [0.0; VALUES / 16], offsets: [0.0; VALUES / 16] };

    /// The place of block `index`.
    #[inline(always)]
    pub(super) fn part<const N: usize, const GROUPS: usize>(&mut self, index: usize) -> Part<'_, N, GROUPS> {
        Part {
            bytes: &mut self.bytes.as_chunks_mut().0[index],
            scales: &mut self.scales.as_chunks_mut().0[index],
            offsets: &mut self.offsets.as_chunks_mut().0[index],
        }
    }
}
