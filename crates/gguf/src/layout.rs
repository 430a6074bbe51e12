//! Where each tensor's bytes are, what lies between them, and how much room there is.

use core::ops::Range;

use crate::error::ParserError;
use crate::file::GgufFile;
use crate::tensors::TensorInfo;

impl<H: AsRef<[u8]>> GgufFile<H> {
    /// Where a tensor's bytes are, from the container's start.
    ///
    /// # Errors
    ///
    /// Those of [`TensorInfo::byte_size`], and [`ParserError::OutOfBounds`] where they are not inside the
    /// container.
    pub fn byte_range(&self, tensor: &TensorInfo<'_>) -> Result<Range<u64>, ParserError> {
        let bytes = tensor.byte_size()?;
        let out_of_bounds = || ParserError::OutOfBounds {
            name: tensor.name.into(),
            start: u128::from(self.data_offset()) + u128::from(tensor.offset),
            bytes,
            len: self.container_len(),
        };
        let start = self.data_offset().checked_add(tensor.offset).ok_or_else(out_of_bounds)?;
        let end = start.checked_add(bytes).ok_or_else(out_of_bounds)?;
        if end > self.container_len() { Err(out_of_bounds()) } else { Ok(start..end) }
    }

    /// Where a tensor's bytes begin, from the container's start; `None` where that overflows.
    #[must_use]
    pub fn byte_start(&self, tensor: &TensorInfo<'_>) -> Option<u64> {
        self.data_offset().checked_add(tensor.offset)
    }

    /// The room of each tensor, in file order: the bytes from its offset up to the next larger offset of
    /// another tensor, or the container's end. What a tensor of an unknown type can take at the most.
    #[must_use]
    pub fn rooms(&self) -> Vec<u64> {
        let data_len = self.container_len().saturating_sub(self.data_offset());
        let mut offsets: Vec<u64> = self.tensors().iter().map(|tensor| tensor.offset).collect();
        offsets.push(data_len);
        offsets.sort_unstable();
        let room = |tensor: TensorInfo<'_>| {
            let next = offsets.partition_point(|offset| *offset <= tensor.offset);
            offsets.get(next).map_or(0, |next| (*next).min(data_len).saturating_sub(tensor.offset))
        };
        self.tensors().iter().map(room).collect()
    }

    /// The tensors' positions in file order, sorted by where their bytes begin.
    #[must_use]
    pub fn by_offset(&self) -> Vec<usize> {
        let offsets: Vec<u64> = self.tensors().iter().map(|tensor| tensor.offset).collect();
        let mut positions: Vec<usize> = (0..offsets.len()).collect();
        positions.sort_by_key(|position| offsets[*position]);
        positions
    }

    /// The parts of the container that are neither head nor tensor: padding, gaps and what trails, each not
    /// empty, in order.
    ///
    /// # Errors
    ///
    /// Those of [`byte_range`](Self::byte_range).
    pub fn gaps(&self) -> Result<Vec<Range<u64>>, ParserError> {
        let mut gaps = Vec::new();
        let mut end = self.head_len();
        let tensors = self.tensors();
        for tensor in self.by_offset().into_iter().filter_map(|position| tensors.get(position)) {
            let range = self.byte_range(&tensor)?;
            if range.start > end {
                gaps.push(end..range.start);
            }
            end = end.max(range.end);
        }
        if self.container_len() > end {
            gaps.push(end..self.container_len());
        }
        Ok(gaps)
    }
}
