//! Metadata values, decoded when they are looked at.

use core::fmt;

use bstr::{BStr, BString, ByteSlice};

use crate::escape::Escaped;
use crate::reader::Layout;
use crate::types::ValueType;

/// A metadata value, borrowed from the head.
///
/// `Display` shows a scalar as it is, a string in quotes and escaped, an array by its type, its
/// length and its first five elements.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the variants are those of `ValueType`")]
pub enum Value<'a> {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    String(&'a BStr),
    Array(Array<'a>),
    U64(u64),
    I64(i64),
    F64(f64),
}

impl<'a> Value<'a> {
    /// How it is encoded.
    #[must_use]
    pub const fn value_type(&self) -> ValueType {
        match self {
            Self::U8(_) => ValueType::U8,
            Self::I8(_) => ValueType::I8,
            Self::U16(_) => ValueType::U16,
            Self::I16(_) => ValueType::I16,
            Self::U32(_) => ValueType::U32,
            Self::I32(_) => ValueType::I32,
            Self::F32(_) => ValueType::F32,
            Self::Bool(_) => ValueType::Bool,
            Self::String(_) => ValueType::String,
            Self::Array(_) => ValueType::Array,
            Self::U64(_) => ValueType::U64,
            Self::I64(_) => ValueType::I64,
            Self::F64(_) => ValueType::F64,
        }
    }

    /// The type's name, with an array's element type: `u32`, `string`, `array[string]`.
    #[must_use]
    pub fn type_name(&self) -> String {
        match self {
            Self::Array(array) => format!("array[{}]", array.element_type()),
            other => other.value_type().name().to_owned(),
        }
    }

    /// The value as any integer, where it is one.
    #[must_use]
    pub fn as_integer(&self) -> Option<i128> {
        Some(match *self {
            Self::U8(value) => value.into(),
            Self::I8(value) => value.into(),
            Self::U16(value) => value.into(),
            Self::I16(value) => value.into(),
            Self::U32(value) => value.into(),
            Self::I32(value) => value.into(),
            Self::U64(value) => value.into(),
            Self::I64(value) => value.into(),
            _ => return None,
        })
    }

    /// The value as a string's bytes, where it is one.
    #[must_use]
    pub fn as_string(&self) -> Option<&'a BStr> {
        match *self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The value as an array, where it is one.
    #[must_use]
    pub fn as_array(&self) -> Option<Array<'a>> {
        match *self {
            Self::Array(array) => Some(array),
            _ => None,
        }
    }

    /// The same value on its own, for the [writer](crate::write).
    #[must_use]
    pub fn to_owned(&self) -> OwnedValue {
        match *self {
            Self::U8(value) => OwnedValue::U8(value),
            Self::I8(value) => OwnedValue::I8(value),
            Self::U16(value) => OwnedValue::U16(value),
            Self::I16(value) => OwnedValue::I16(value),
            Self::U32(value) => OwnedValue::U32(value),
            Self::I32(value) => OwnedValue::I32(value),
            Self::F32(value) => OwnedValue::F32(value),
            Self::Bool(value) => OwnedValue::Bool(value),
            Self::String(text) => OwnedValue::String(text.into()),
            Self::Array(array) => {
                OwnedValue::Array(array.element_type(), array.iter().map(|value| value.to_owned()).collect())
            }
            Self::U64(value) => OwnedValue::U64(value),
            Self::I64(value) => OwnedValue::I64(value),
            Self::F64(value) => OwnedValue::F64(value),
        }
    }

    /// Decodes the fixed-size value or string at the front of `bytes`, or the view of an array; gives it and
    /// its length in bytes. `None` only where the bytes are not what the parser saw: a mapping was changed.
    pub(crate) fn decode(value_type: ValueType, bytes: &'a [u8], layout: Layout) -> Option<(Self, usize)> {
        let fixed2 = || bytes.first_chunk::<2>().map(|raw| layout.u16(*raw));
        let fixed4 = || bytes.first_chunk::<4>().map(|raw| layout.u32(*raw));
        let fixed8 = || bytes.first_chunk::<8>().map(|raw| layout.u64(*raw));
        let value = match value_type {
            ValueType::U8 => Self::U8(*bytes.first()?),
            ValueType::I8 => Self::I8(bytes.first()?.cast_signed()),
            ValueType::U16 => Self::U16(fixed2()?),
            ValueType::I16 => Self::I16(fixed2()?.cast_signed()),
            ValueType::U32 => Self::U32(fixed4()?),
            ValueType::I32 => Self::I32(fixed4()?.cast_signed()),
            ValueType::F32 => Self::F32(f32::from_bits(fixed4()?)),
            ValueType::Bool => Self::Bool(*bytes.first()? != 0),
            ValueType::U64 => Self::U64(fixed8()?),
            ValueType::I64 => Self::I64(fixed8()?.cast_signed()),
            ValueType::F64 => Self::F64(f64::from_bits(fixed8()?)),
            ValueType::String => {
                let (len, prefix) = decode_length(bytes, layout)?;
                let end = prefix.checked_add(usize::try_from(len).ok()?)?;
                let text = layout.text(bytes.get(prefix..end)?);
                return Some((Self::String(text.as_bstr()), end));
            }
            ValueType::Array => {
                let element = ValueType::try_from(layout.u32(*bytes.first_chunk()?)).ok()?;
                let (len, prefix) = decode_length(bytes.get(4..)?, layout)?;
                let body = bytes.get(4 + prefix..)?;
                let whole = Array { element, len, bytes: body, layout };
                let taken = whole.measure()?;
                return Some((Self::Array(Array { bytes: &body[..taken], ..whole }), 4 + prefix + taken));
            }
        };
        Some((value, value_type.size()?))
    }
}

fn decode_length(bytes: &[u8], layout: Layout) -> Option<(u64, usize)> {
    if layout.narrow {
        Some((u64::from(layout.u32(*bytes.first_chunk()?)), 4))
    } else {
        Some((layout.u64(*bytes.first_chunk()?), 8))
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::U8(value) => value.fmt(f),
            Self::I8(value) => value.fmt(f),
            Self::U16(value) => value.fmt(f),
            Self::I16(value) => value.fmt(f),
            Self::U32(value) => value.fmt(f),
            Self::I32(value) => value.fmt(f),
            Self::F32(value) => fmt::Debug::fmt(value, f),
            Self::Bool(value) => value.fmt(f),
            Self::String(text) => fmt::Debug::fmt(&Escaped(text), f),
            Self::Array(array) => array.fmt(f),
            Self::U64(value) => value.fmt(f),
            Self::I64(value) => value.fmt(f),
            Self::F64(value) => fmt::Debug::fmt(value, f),
        }
    }
}

/// An array value: a view of its bytes in the head, decoded as it is walked.
///
/// Nothing is allocated for it, whatever its length; a tokenizer's 262,144 strings cost the walk over
/// them.
#[derive(Clone, Copy)]
pub struct Array<'a> {
    pub(crate) element: ValueType,
    pub(crate) len: u64,
    pub(crate) bytes: &'a [u8],
    pub(crate) layout: Layout,
}

/// Elements that `Display` shows before it says how many more there are.
pub const SHOWN_ELEMENTS: u64 = 5;

impl<'a> Array<'a> {
    /// The type of its elements.
    #[must_use]
    pub const fn element_type(&self) -> ValueType {
        self.element
    }

    /// How many elements it has.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether it has none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements as the file holds them, in the container's byte order: for fixed-size types, `len`
    /// times the type's size.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The elements, in order.
    #[must_use]
    pub const fn iter(&self) -> ArrayIter<'a> {
        ArrayIter { element: self.element, left: self.len, bytes: self.bytes, layout: self.layout }
    }

    /// One element; at once for fixed-size types, by a walk for strings and arrays.
    #[must_use]
    pub fn get(&self, index: u64) -> Option<Value<'a>> {
        match self.element.size() {
            _ if index >= self.len => None,
            Some(size) => {
                let start = usize::try_from(index).ok()?.checked_mul(size)?;
                Some(Value::decode(self.element, self.bytes.get(start..)?, self.layout)?.0)
            }
            None => self.iter().nth(usize::try_from(index).ok()?),
        }
    }

    /// The bytes that the elements take.
    fn measure(&self) -> Option<usize> {
        match self.element.size() {
            Some(size) => usize::try_from(self.len).ok()?.checked_mul(size).filter(|bytes| *bytes <= self.bytes.len()),
            None => {
                let mut iter = self.iter();
                for _ in 0..self.len {
                    iter.next()?;
                }
                Some(self.bytes.len() - iter.bytes.len())
            }
        }
    }
}

impl fmt::Display for Array<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "array[{}; {}] [", self.element, self.len)?;
        for (index, value) in (0..SHOWN_ELEMENTS).zip(self.iter()) {
            write!(f, "{}{value}", if index == 0 { "" } else { ", " })?;
        }
        if self.len > SHOWN_ELEMENTS {
            write!(f, ", … +{} more", self.len - SHOWN_ELEMENTS)?;
        }
        f.write_str("]")
    }
}

impl fmt::Debug for Array<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl PartialEq for Array<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.element == other.element && self.len == other.len && self.iter().eq(other.iter())
    }
}

impl<'a> IntoIterator for Array<'a> {
    type Item = Value<'a>;
    type IntoIter = ArrayIter<'a>;

    fn into_iter(self) -> ArrayIter<'a> {
        self.iter()
    }
}

/// Walks an [`Array`].
#[derive(Clone, Debug)]
pub struct ArrayIter<'a> {
    element: ValueType,
    left: u64,
    bytes: &'a [u8],
    layout: Layout,
}

impl<'a> Iterator for ArrayIter<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        self.left = self.left.checked_sub(1)?;
        let (value, taken) = Value::decode(self.element, self.bytes, self.layout)?;
        self.bytes = &self.bytes[taken..];
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // Each element takes a byte at least, so the hint never exceeds what the head holds.
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(self.bytes.len());
        (0, Some(most))
    }
}

/// A metadata value on its own: what the [writer](crate::write) takes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the variants are those of `ValueType`")]
pub enum OwnedValue {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    String(BString),
    /// Elements, each of the type named.
    Array(ValueType, Vec<OwnedValue>),
    U64(u64),
    I64(i64),
    F64(f64),
}

macro_rules! owned_from {
    ($($variant:ident $type:ty),*) => {
        $(impl From<$type> for OwnedValue {
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        })*
    };
}

owned_from!(
    U8 u8, I8 i8, U16 u16, I16 i16, U32 u32, I32 i32, F32 f32, Bool bool, U64 u64, I64 i64, F64 f64,
    String &str, String BString
);

impl OwnedValue {
    /// How it is encoded.
    #[must_use]
    pub const fn value_type(&self) -> ValueType {
        match self {
            Self::U8(_) => ValueType::U8,
            Self::I8(_) => ValueType::I8,
            Self::U16(_) => ValueType::U16,
            Self::I16(_) => ValueType::I16,
            Self::U32(_) => ValueType::U32,
            Self::I32(_) => ValueType::I32,
            Self::F32(_) => ValueType::F32,
            Self::Bool(_) => ValueType::Bool,
            Self::String(_) => ValueType::String,
            Self::Array(..) => ValueType::Array,
            Self::U64(_) => ValueType::U64,
            Self::I64(_) => ValueType::I64,
            Self::F64(_) => ValueType::F64,
        }
    }
}
