//! The way back: a container's head, written. Sizes are known before any byte is.
//!
//! The writer writes what the parser reads, every version, byte order and value type, and no more: it
//! does no I/O and holds no tensor data.

use bstr::BString;

use crate::limits::{DEFAULT_ALIGNMENT, MAX_DIMS};
use crate::reader::ByteOrder;
use crate::types::{GgmlType, ValueType};
use crate::value::OwnedValue;

/// Why a container can't be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// Big-endian containers exist in version 3 only, and versions end at 3.
    #[error("version {version} in {} byte order can't be written", order.name())]
    Version {
        /// The version asked for.
        version: u32,
        /// The byte order asked for.
        order: ByteOrder,
    },
    /// A number or length that version 1's 32 bits can't hold.
    #[error("{value} does not fit version 1's 32 bits")]
    TooWide {
        /// The number.
        value: u64,
    },
    /// More dims than the format has.
    #[error("{dims} dims; the format has at most {MAX_DIMS}")]
    TooManyDims {
        /// How many were given.
        dims: usize,
    },
    /// An array element of another type than its array's.
    #[error("an element of type {found} in an array of {expected}")]
    MixedArray {
        /// The array's element type.
        expected: ValueType,
        /// The element's.
        found: ValueType,
    },
    /// `general.alignment` is no `u32` that is a power of two.
    #[error("general.alignment must be a u32 that is a power of two")]
    Alignment,
    /// A tensor of a type or shape without a size.
    #[error(transparent)]
    Size(#[from] crate::ParserError),
    /// The container would be longer than 64 bits count.
    #[error("the container's length overflows 64 bits")]
    Overflow,
}

/// A container to be: metadata and tensors in the order they are added.
///
/// ```
/// use gguf2st_gguf::{GgmlType, write::Builder};
///
/// let builder = Builder::new()
///     .metadata("general.architecture", "llama")
///     .tensor("output_norm.weight", &[2], GgmlType::F32);
/// let container = builder.container(|_, bytes| {
///     bytes[..4].copy_from_slice(&1.0_f32.to_le_bytes());
///     bytes[4..].copy_from_slice(&2.0_f32.to_le_bytes());
/// })?;
/// assert!(container.starts_with(b"GGUF\x03\0\0\0"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    version: u32,
    order: ByteOrder,
    metadata: Vec<(BString, OwnedValue)>,
    tensors: Vec<Tensor>,
}

#[derive(Clone, Debug)]
struct Tensor {
    name: BString,
    dims: Vec<u64>,
    ggml_type: GgmlType,
    offset: Option<u64>,
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// An empty container of version 3, little-endian.
    pub fn new() -> Self {
        Self { version: 3, order: ByteOrder::Little, metadata: Vec::new(), tensors: Vec::new() }
    }

    /// Another version (1 to 3) or byte order (big with version 3 only).
    pub fn format(mut self, version: u32, order: ByteOrder) -> Self {
        (self.version, self.order) = (version, order);
        self
    }

    /// Adds a metadata entry. `general.alignment` also sets the alignment.
    pub fn metadata(mut self, key: impl Into<BString>, value: impl Into<OwnedValue>) -> Self {
        self.metadata.push((key.into(), value.into()));
        self
    }

    /// Adds a tensor behind the ones before it; `dims` are fastest first.
    pub fn tensor(mut self, name: impl Into<BString>, dims: &[u64], ggml_type: GgmlType) -> Self {
        self.tensors.push(Tensor { name: name.into(), dims: dims.to_vec(), ggml_type, offset: None });
        self
    }

    /// Adds a tensor with an offset of the caller's choosing, which is not checked: for tests of readers.
    pub fn tensor_at(mut self, name: impl Into<BString>, dims: &[u64], ggml_type: GgmlType, offset: u64) -> Self {
        self = self.tensor(name, dims, ggml_type);
        if let Some(last) = self.tensors.last_mut() {
            last.offset = Some(offset);
        }
        self
    }

    fn alignment(&self) -> Result<u64, WriteError> {
        let value = self.metadata.iter().find(|(key, _)| key == "general.alignment");
        match value.map(|(_, value)| value) {
            None => Ok(DEFAULT_ALIGNMENT.into()),
            Some(OwnedValue::U32(value)) if value.is_power_of_two() => Ok((*value).into()),
            Some(_) => Err(WriteError::Alignment),
        }
    }

    /// Where each tensor's bytes begin, from the data section's start, and the section's length, padding
    /// after the last tensor included. In bytes.
    ///
    /// # Errors
    ///
    /// [`WriteError::Size`] for a tensor without a size, [`WriteError::Alignment`],
    /// [`WriteError::TooManyDims`] and [`WriteError::Overflow`].
    pub fn offsets(&self) -> Result<(Vec<u64>, u64), WriteError> {
        let alignment = self.alignment()?;
        let mut end = 0_u64;
        let mut offsets = Vec::with_capacity(self.tensors.len());
        for tensor in &self.tensors {
            let offset = tensor.offset.unwrap_or(end);
            offsets.push(offset);
            if tensor.offset.is_none() {
                end = offset
                    .checked_add(tensor.byte_size()?)
                    .and_then(|end| end.checked_next_multiple_of(alignment))
                    .ok_or(WriteError::Overflow)?;
            }
        }
        Ok((offsets, end))
    }

    /// The head: header, metadata, tensor index and the padding up to the data section.
    ///
    /// # Errors
    ///
    /// Those of [`offsets`](Self::offsets), [`WriteError::Version`], [`WriteError::TooWide`] and
    /// [`WriteError::MixedArray`].
    pub fn head(&self) -> Result<Vec<u8>, WriteError> {
        let (version, order) = (self.version, self.order);
        if !matches!((version, order), (1..=3, ByteOrder::Little) | (3, ByteOrder::Big)) {
            return Err(WriteError::Version { version, order });
        }
        let (offsets, _) = self.offsets()?;
        let mut out = Out { bytes: crate::MAGIC.to_vec(), order, narrow: version == 1 };
        out.u32(version);
        out.length(self.tensors.len() as u64)?;
        out.length(self.metadata.len() as u64)?;
        for (key, value) in &self.metadata {
            out.string(key)?;
            out.u32(value.value_type().id());
            out.value(value)?;
        }
        for (tensor, offset) in self.tensors.iter().zip(offsets) {
            out.string(&tensor.name)?;
            let rank = u32::try_from(tensor.dims.len()).ok().filter(|rank| *rank <= MAX_DIMS);
            out.u32(rank.ok_or(WriteError::TooManyDims { dims: tensor.dims.len() })?);
            for dim in &tensor.dims {
                out.length(*dim)?;
            }
            out.u32(tensor.ggml_type.0);
            out.u64(offset);
        }
        let alignment = usize::try_from(self.alignment()?).map_err(|_| WriteError::Overflow)?;
        let padded = out.bytes.len().checked_next_multiple_of(alignment).ok_or(WriteError::Overflow)?;
        out.bytes.resize(padded, 0);
        Ok(out.bytes)
    }

    /// The whole container in memory; `fill` gets each tensor's position and its bytes, zeroed.
    ///
    /// # Errors
    ///
    /// Those of [`head`](Self::head).
    pub fn container(&self, mut fill: impl FnMut(usize, &mut [u8])) -> Result<Vec<u8>, WriteError> {
        let mut container = self.head()?;
        let (offsets, data_len) = self.offsets()?;
        let start = container.len();
        let len = usize::try_from(data_len).ok().and_then(|len| start.checked_add(len));
        container.resize(len.ok_or(WriteError::Overflow)?, 0);
        let data = &mut container[start..];
        for (position, (tensor, offset)) in self.tensors.iter().zip(offsets).enumerate() {
            let range = offset..offset.saturating_add(tensor.byte_size()?);
            let bytes = crate::file::usize_range(&range).and_then(|range| data.get_mut(range));
            fill(position, bytes.ok_or(WriteError::Overflow)?);
        }
        Ok(container)
    }
}

impl Tensor {
    fn byte_size(&self) -> Result<u64, WriteError> {
        let dims = crate::Dims::new(&self.dims).ok_or(WriteError::TooManyDims { dims: self.dims.len() })?;
        let info = crate::TensorInfo { name: self.name.as_ref(), dims, ggml_type: self.ggml_type, offset: 0 };
        Ok(info.byte_size()?)
    }
}

struct Out {
    bytes: Vec<u8>,
    order: ByteOrder,
    narrow: bool,
}

macro_rules! put {
    ($($name:ident $type:ty),*) => {
        $(fn $name(&mut self, value: $type) {
            match self.order {
                ByteOrder::Little => self.bytes.extend(value.to_le_bytes()),
                ByteOrder::Big => self.bytes.extend(value.to_be_bytes()),
            }
        })*
    };
}

impl Out {
    put!(u8 u8, i8 i8, u16 u16, i16 i16, u32 u32, i32 i32, u64 u64, i64 i64, f32 f32, f64 f64);

    fn length(&mut self, value: u64) -> Result<(), WriteError> {
        if self.narrow {
            self.u32(u32::try_from(value).map_err(|_| WriteError::TooWide { value })?);
        } else {
            self.u64(value);
        }
        Ok(())
    }

    fn string(&mut self, text: &[u8]) -> Result<(), WriteError> {
        self.length(text.len() as u64)?;
        self.bytes.extend_from_slice(text);
        Ok(())
    }

    fn value(&mut self, value: &OwnedValue) -> Result<(), WriteError> {
        match value {
            OwnedValue::U8(value) => self.u8(*value),
            OwnedValue::I8(value) => self.i8(*value),
            OwnedValue::U16(value) => self.u16(*value),
            OwnedValue::I16(value) => self.i16(*value),
            OwnedValue::U32(value) => self.u32(*value),
            OwnedValue::I32(value) => self.i32(*value),
            OwnedValue::F32(value) => self.f32(*value),
            OwnedValue::Bool(value) => self.u8((*value).into()),
            OwnedValue::U64(value) => self.u64(*value),
            OwnedValue::I64(value) => self.i64(*value),
            OwnedValue::F64(value) => self.f64(*value),
            OwnedValue::String(text) => self.string(text)?,
            OwnedValue::Array(expected, elements) => {
                self.u32(expected.id());
                self.length(elements.len() as u64)?;
                for element in elements {
                    let (expected, found) = (*expected, element.value_type());
                    if found != expected {
                        return Err(WriteError::MixedArray { expected, found });
                    }
                    self.value(element)?;
                }
            }
        }
        Ok(())
    }
}
