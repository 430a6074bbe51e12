//! The four components joined: a head, parsed once, that hands out views.

use core::ops::Range;

use bytemuck::{AnyBitPattern, PodCastError};
use bytes::Bytes;

use crate::error::{ParserError, SliceFault};
use crate::header::{self, Header};
use crate::metadata::{self, Metadata, MetadataIndex};
use crate::reader::{ByteOrder, Reader};
use crate::tensors::{self, TensorIndex, TensorInfo, Tensors};
use crate::types::GgmlType;

/// A parsed container. It keeps the head it was parsed from (a slice, a `Vec`, [`Bytes`], a mapping:
/// whatever derefs to bytes) and allocates only an index of fixed-size entries, one a metadata key and one
/// a tensor.
#[derive(Clone, Debug)]
pub struct GgufFile<H = Bytes> {
    head: H,
    container_len: u64,
    header: Header,
    metadata: MetadataIndex,
    tensors: TensorIndex,
    index_end: u64,
    data_offset: u64,
}

/// Parses the head of a container of `container_len` bytes.
///
/// `head` holds the container's first bytes, as many as are at hand: all of it for a mapping, a prefix for
/// a remote file. Nothing is copied from it.
///
/// ```
/// use gguf2st_gguf::{GgmlType, parse_gguf, write::Builder};
///
/// let mut container = Builder::new()
///     .metadata("general.architecture", "llama")
///     .tensor("token_embd.weight", &[4, 2], GgmlType::F32)
///     .head()?;
/// container.extend([0; 32]); // the tensor's 8 values
///
/// let file = parse_gguf(&container, container.len() as u64)?;
/// assert_eq!(file.version(), 3);
/// let tensor = file.tensors().find("token_embd.weight").unwrap();
/// assert_eq!(*tensor.dims, [4, 2]); // fastest first
/// assert_eq!(tensor.shape(), [2, 4]); // row-major
/// assert_eq!(tensor.byte_size()?, 32);
/// assert_eq!(file.tensor_bytes(&container, &tensor)?, [0; 32]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Fed from a source that hands out prefixes:
///
/// ```
/// use gguf2st_gguf::{ParserError, parse_gguf, write::Builder};
///
/// let container = Builder::new().metadata("general.name", "a long enough name").head()?;
/// let mut have = 8;
/// let file = loop {
///     match parse_gguf(&container[..have], container.len() as u64) {
///         Err(ParserError::NeedMore { at_least, .. }) => have = at_least as usize,
///         parsed => break parsed?,
///     }
/// };
/// assert_eq!(file.metadata().len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`ParserError::NeedMore`] where the head goes on behind the bytes given; any other variant where the
/// container is not one that can be read. Whether the tensors' bytes are there is not looked at here, see
/// [`GgufFile::check`].
pub fn parse_gguf<H: AsRef<[u8]>>(head: H, container_len: u64) -> Result<GgufFile<H>, ParserError> {
    let mut reader = Reader::new(head.as_ref(), container_len);
    let header = header::read(&mut reader)?;
    // Both counts are weighed before either is followed.
    tensors::weigh(&mut reader, header.tensor_count)?;
    let metadata = metadata::read(&mut reader, header.metadata_count)?;
    let tensors = tensors::read(&mut reader, header.tensor_count)?;
    let index_end = reader.offset();
    // Heads end below 2^27 and alignments below 2^32, so the sum can't overflow.
    let data_offset = index_end.next_multiple_of(u64::from(metadata.alignment));
    Ok(GgufFile { head, container_len, header, metadata, tensors, index_end, data_offset })
}

impl<H: AsRef<[u8]>> GgufFile<H> {
    /// 1, 2 or 3.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.header.version
    }

    /// The order of the bytes of all numbers, tensor data included.
    #[must_use]
    pub fn byte_order(&self) -> ByteOrder {
        self.header.byte_order
    }

    /// What tensor offsets are multiples of, in bytes: `general.alignment`, 32 without it.
    #[must_use]
    pub fn alignment(&self) -> u32 {
        self.metadata.alignment
    }

    /// The container's length in bytes, as it was given.
    #[must_use]
    pub fn container_len(&self) -> u64 {
        self.container_len
    }

    /// Where the tensor index ends, in bytes.
    #[must_use]
    pub fn index_end(&self) -> u64 {
        self.index_end
    }

    /// Where the data section starts, in bytes: the next multiple of the alignment after the index. Behind
    /// the container's end where there is no data and no padding.
    #[must_use]
    pub fn data_offset(&self) -> u64 {
        self.data_offset
    }

    /// The length of the head in bytes: all before the data section, or all there is.
    #[must_use]
    pub fn head_len(&self) -> u64 {
        self.data_offset.min(self.container_len)
    }

    /// The bytes that it was parsed from, as many as were given.
    #[must_use]
    pub fn given(&self) -> &[u8] {
        self.head.as_ref()
    }

    /// The metadata, in file order.
    #[must_use]
    pub fn metadata(&self) -> Metadata<'_> {
        Metadata { index: &self.metadata, head: self.head.as_ref() }
    }

    /// The tensors, in file order.
    #[must_use]
    pub fn tensors(&self) -> Tensors<'_> {
        Tensors { index: &self.tensors, head: self.head.as_ref() }
    }

    /// Keys with a bool byte that is neither 0 nor 1, and the first such byte of each.
    pub(crate) fn odd_bools(&self) -> &[(bstr::BString, u8)] {
        &self.metadata.odd_bools
    }

    /// A tensor's bytes, from the whole container's.
    ///
    /// # Errors
    ///
    /// Those of [`byte_range`](Self::byte_range), and [`ParserError::OutOfBounds`] where `container` is
    /// shorter than the length it was parsed with.
    pub fn tensor_bytes<'c>(&self, container: &'c [u8], tensor: &TensorInfo<'_>) -> Result<&'c [u8], ParserError> {
        let range = self.byte_range(tensor)?;
        usize_range(&range).and_then(|range| container.get(range)).ok_or_else(|| ParserError::OutOfBounds {
            name: tensor.name.into(),
            start: range.start.into(),
            bytes: range.end - range.start,
            len: container.len() as u64,
        })
    }

    /// A tensor's values as a slice, from the whole container's bytes and without a copy.
    ///
    /// F16 and BF16 are given as the `u16` of their bits.
    ///
    /// ```
    /// use gguf2st_gguf::{GgmlType, parse_gguf, write::Builder};
    ///
    /// let builder = Builder::new().tensor("steps", &[2], GgmlType::I8);
    /// let container = builder.container(|_, bytes| bytes.copy_from_slice(&[1, 255]))?;
    /// let file = parse_gguf(&container, container.len() as u64)?;
    /// let steps = file.tensors().find("steps").unwrap();
    /// assert_eq!(file.tensor_slice::<i8>(&container, &steps)?, [1, -1]);
    /// assert!(file.tensor_slice::<f32>(&container, &steps).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`tensor_bytes`](Self::tensor_bytes), and [`ParserError::NotASlice`] where the type, the
    /// alignment in memory or the byte order forbids it.
    pub fn tensor_slice<'c, T: Element>(
        &self,
        container: &'c [u8],
        tensor: &TensorInfo<'_>,
    ) -> Result<&'c [T], ParserError> {
        let not = |reason| ParserError::NotASlice {
            name: tensor.name.into(),
            ggml_type: tensor.ggml_type,
            wanted: core::any::type_name::<T>(),
            reason,
        };
        if !T::GGML_TYPES.contains(&tensor.ggml_type) {
            return Err(not(SliceFault::Type));
        }
        if size_of::<T>() > 1 && self.byte_order() != ByteOrder::NATIVE {
            return Err(not(SliceFault::ByteOrder));
        }
        bytemuck::try_cast_slice(self.tensor_bytes(container, tensor)?).map_err(|error| match error {
            PodCastError::TargetAlignmentGreaterAndInputNotAligned => not(SliceFault::Alignment),
            _ => not(SliceFault::Type),
        })
    }
}

/// A range of bytes as positions in memory, where this machine's memory is that large.
pub(crate) fn usize_range(range: &Range<u64>) -> Option<Range<usize>> {
    Some(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
}

/// A Rust type that some ggml types are stored as, see [`GgufFile::tensor_slice`].
pub trait Element: AnyBitPattern {
    /// The types stored as it.
    const GGML_TYPES: &'static [GgmlType];
}

macro_rules! elements {
    ($($type:ty: $($ggml:ident),+;)*) => {
        $(impl Element for $type {
            const GGML_TYPES: &'static [GgmlType] = &[$(GgmlType::$ggml),+];
        })*
    };
}

elements! {
    f32: F32;
    f64: F64;
    i8: I8;
    i16: I16;
    i32: I32;
    i64: I64;
    u16: F16, BF16;
}
