//! The tensor index: name, dims, ggml type and offset of each tensor, in file order.

use core::fmt;
use core::ops::Deref;

use bstr::{BStr, ByteSlice};

use crate::error::ParserError;
use crate::limits::{MAX_DIMS, MAX_TENSOR_NAME, MAX_TENSORS};
use crate::names::Names;
use crate::reader::{Reader, Span, Within};
use crate::types::GgmlType;

/// A tensor's dims in the GGUF order: `dims[0]` varies fastest. None to four; the rank is kept, so that
/// `[4, 1, 1, 1]` and `[4]` differ.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Dims {
    values: [u64; MAX_DIMS as usize],
    rank: u8,
}

impl Deref for Dims {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.values[..usize::from(self.rank)]
    }
}

impl fmt::Debug for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl Dims {
    /// Dims, fastest first; `None` for more than four.
    #[must_use]
    pub fn new(dims: &[u64]) -> Option<Self> {
        let mut values = [0; MAX_DIMS as usize];
        values.get_mut(..dims.len())?.copy_from_slice(dims);
        Some(Self { values, rank: u8::try_from(dims.len()).ok()? })
    }

    /// Values in all; 1 for a scalar, `None` where the product overflows 64 bits.
    #[must_use]
    pub fn values(&self) -> Option<u64> {
        product(self)
    }

    /// Values a row: `dims[0]`, 1 for a scalar.
    #[must_use]
    pub fn row(&self) -> u64 {
        self.first().copied().unwrap_or(1)
    }

    /// The row-major order of safetensors, NumPy and PyTorch: dims reversed.
    #[must_use]
    pub fn shape(&self) -> Vec<u64> {
        self.iter().rev().copied().collect()
    }
}

/// A product; `None` where it, or that of its factors other than zero, overflows: readers multiply in other
/// orders than ours.
fn product(factors: &[u64]) -> Option<u64> {
    let others =
        factors.iter().filter(|factor| **factor != 0).try_fold(1_u64, |product, factor| product.checked_mul(*factor));
    if factors.contains(&0) { others.map(|_| 0) } else { others }
}

/// One tensor of the index.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct TensorInfo<'a> {
    /// Its name: UTF-8 by the specification, any bytes in practice.
    pub name: &'a BStr,
    /// Its dims, fastest first.
    pub dims: Dims,
    /// How its values are stored.
    pub ggml_type: GgmlType,
    /// Where its bytes begin, in bytes from the start of the data section.
    pub offset: u64,
}

impl TensorInfo<'_> {
    /// The row-major shape: dims reversed.
    #[must_use]
    pub fn shape(&self) -> Vec<u64> {
        self.dims.shape()
    }

    /// Bytes of one row (`dims[0]` values).
    ///
    /// # Errors
    ///
    /// [`ParserError::UnknownGgmlType`] where the type has no known size,
    /// [`ParserError::RowNotWholeBlocks`] where the row is not a multiple of the block, and
    /// [`ParserError::SizeOverflow`].
    pub fn row_bytes(&self) -> Result<u64, ParserError> {
        let (Some(block), Some(bytes)) = (self.ggml_type.block_size(), self.ggml_type.type_size()) else {
            return Err(ParserError::UnknownGgmlType { name: self.name.into(), ggml_type: self.ggml_type });
        };
        let row = self.dims.row();
        if !row.is_multiple_of(block) {
            let (name, ggml_type) = (self.name.into(), self.ggml_type);
            return Err(ParserError::RowNotWholeBlocks { name, ggml_type, row, block });
        }
        // Blocks first, then bytes: values times bytes could wrap where the size itself does not.
        (row / block).checked_mul(bytes).ok_or_else(|| self.overflow())
    }

    /// Bytes of the whole tensor, without padding.
    ///
    /// # Errors
    ///
    /// As for [`row_bytes`](Self::row_bytes).
    pub fn byte_size(&self) -> Result<u64, ParserError> {
        let row_bytes = self.row_bytes()?;
        // ggml counts values and bytes in 64-bit signed integers; more is no tensor.
        self.dims
            .values()
            .filter(|values| i64::try_from(*values).is_ok())
            .and_then(|_| product(&[row_bytes, product(self.dims.get(1..).unwrap_or_default())?]))
            .filter(|bytes| i64::try_from(*bytes).is_ok())
            .ok_or_else(|| self.overflow())
    }

    fn overflow(&self) -> ParserError {
        ParserError::SizeOverflow { name: self.name.into(), dims: self.dims.to_vec(), ggml_type: self.ggml_type }
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Where the entry, that is its name's length, begins.
    position: u64,
    name: Span,
    dims: Dims,
    ggml_type: GgmlType,
    offset: u64,
}

impl Entry {
    fn info<'a>(&self, head: &'a [u8]) -> TensorInfo<'a> {
        TensorInfo {
            name: self.name.of(head).as_bstr(),
            dims: self.dims,
            ggml_type: self.ggml_type,
            offset: self.offset,
        }
    }
}

/// The index of the tensors.
#[derive(Clone, Debug, Default)]
pub(crate) struct TensorIndex {
    entries: Vec<Entry>,
    by_name: Names,
}

/// Weighs the count against what follows the header: an entry has a name's length, a rank, a type and an
/// offset at the least.
pub(crate) fn weigh(reader: &mut Reader<'_>, count: u64) -> Result<(), ParserError> {
    reader.weigh(count, reader.layout.length_size() + 4 + 4 + 8, "tensors")?;
    if count > MAX_TENSORS {
        return Err(reader.over_limit("tensors", count, MAX_TENSORS, reader.offset()));
    }
    Ok(())
}

pub(crate) fn read(reader: &mut Reader<'_>, count: u64) -> Result<TensorIndex, ParserError> {
    weigh(reader, count)?;
    let mut index = TensorIndex::default();
    for position in 0..count {
        reader.within = Within::Tensor { index: position, name: None };
        index.entries.push(read_entry(reader, position)?);
    }
    index.sort(reader.head())?;
    Ok(index)
}

fn read_entry(reader: &mut Reader<'_>, index: u64) -> Result<Entry, ParserError> {
    let position = reader.offset();
    let name = reader.read_string(MAX_TENSOR_NAME, "name bytes")?;
    if name.is_empty() {
        return Err(ParserError::EmptyTensorName { index, offset: position });
    }
    reader.within = Within::Tensor { index, name: Some(name) };
    let at_rank = reader.offset();
    let rank = reader.read_u32()?;
    let mut dims = Dims::default();
    if rank > MAX_DIMS {
        return Err(reader.over_limit("dimensions", rank.into(), MAX_DIMS.into(), at_rank));
    }
    for dim in &mut dims.values[..rank as usize] {
        *dim = reader.read_length()?;
        dims.rank += 1;
    }
    let ggml_type = GgmlType(reader.read_u32()?);
    let offset = reader.read_u64()?;
    Ok(Entry { position, name: reader.span(name), dims, ggml_type, offset })
}

impl TensorIndex {
    /// Sorts by name and finds a name that stands twice.
    fn sort(&mut self, head: &[u8]) -> Result<(), ParserError> {
        let entries = &self.entries;
        self.by_name =
            Names::sort(entries.len(), |position| entries[position].name.of(head)).map_err(|(first, second)| {
                ParserError::DuplicateTensor {
                    name: entries[first].name.of(head).into(),
                    first: entries[first].position,
                    second: entries[second].position,
                }
            })?;
        Ok(())
    }
}

/// A container's tensors: a view, in file order.
#[derive(Clone, Copy, Debug)]
pub struct Tensors<'a> {
    pub(crate) index: &'a TensorIndex,
    pub(crate) head: &'a [u8],
}

impl<'a> Tensors<'a> {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The tensors in file order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = TensorInfo<'a>> + use<'a> {
        let head = self.head;
        self.index.entries.iter().map(move |entry| entry.info(head))
    }

    /// The tensor at a position in file order.
    #[must_use]
    pub fn get(&self, position: usize) -> Option<TensorInfo<'a>> {
        self.index.entries.get(position).map(|entry| entry.info(self.head))
    }

    /// The tensor of a name.
    #[must_use]
    pub fn find(&self, name: impl AsRef<[u8]>) -> Option<TensorInfo<'a>> {
        let Self { index, head } = *self;
        self.get(index.by_name.find(name.as_ref(), |position| index.entries[position].name.of(head))?)
    }
}
