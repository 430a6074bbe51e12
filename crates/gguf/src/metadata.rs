//! The metadata: keys and values in file order, values left in the head until they are looked at.

use bstr::{BStr, BString, ByteSlice};

use crate::error::ParserError;
use crate::limits::{DEFAULT_ALIGNMENT, MAX_KEY, MAX_METADATA};
use crate::names::Names;
use crate::reader::{Layout, Reader, Span, Within};
use crate::types::ValueType;
use crate::value::{Array, Value};

/// The key that sets the alignment of tensor data.
const ALIGNMENT_KEY: &[u8] = b"general.alignment";

/// One entry as positions in the head: of one size, whatever the value.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Where the entry, that is its key's length, begins.
    offset: u64,
    key: Span,
    value: Stored,
}

#[derive(Clone, Copy, Debug)]
enum Stored {
    /// A fixed-size value's bytes, or a string's length and bytes.
    Plain(ValueType, Span),
    /// An array's elements.
    Array { element: ValueType, len: u64, elements: Span },
}

/// The index of the metadata.
#[derive(Clone, Debug)]
pub(crate) struct MetadataIndex {
    entries: Vec<Entry>,
    by_key: Names,
    layout: Layout,
    /// `general.alignment`, or what holds without it.
    pub(crate) alignment: u32,
    /// Keys whose value has a bool byte that is neither 0 nor 1, with the first such byte.
    pub(crate) odd_bools: Vec<(BString, u8)>,
}

pub(crate) fn read(reader: &mut Reader<'_>, count: u64) -> Result<MetadataIndex, ParserError> {
    // A key's length, a type, and a value of one byte. A key's own byte is left out, so that an empty key is named.
    reader.weigh(count, reader.layout.length_size() + 4 + 1, "metadata entries")?;
    if count > MAX_METADATA {
        return Err(reader.over_limit("metadata entries", count, MAX_METADATA, reader.offset()));
    }
    let mut index = MetadataIndex {
        entries: Vec::new(),
        by_key: Names::default(),
        layout: reader.layout,
        alignment: DEFAULT_ALIGNMENT,
        odd_bools: Vec::new(),
    };
    for position in 0..count {
        reader.within = Within::Metadata { index: position, key: None };
        let entry = index.read_entry(reader, position)?;
        index.entries.push(entry);
    }
    index.sort(reader.head())?;
    Ok(index)
}

impl MetadataIndex {
    fn read_entry(&mut self, reader: &mut Reader<'_>, position: u64) -> Result<Entry, ParserError> {
        let offset = reader.offset();
        let key = reader.read_string(MAX_KEY, "key bytes")?;
        if key.is_empty() {
            return Err(ParserError::EmptyKey { index: position, offset });
        }
        reader.within = Within::Metadata { index: position, key: Some(key) };
        let value_type = reader.read_value_type()?;
        let value = if value_type == ValueType::Array {
            let (element, len, elements) = reader.skip_array(1)?;
            if element == ValueType::Bool {
                self.note_odd_bool(key, elements);
            }
            Stored::Array { element, len, elements: reader.span(elements) }
        } else {
            let bytes = reader.skip_value(value_type)?;
            if value_type == ValueType::Bool {
                self.note_odd_bool(key, bytes);
            }
            Stored::Plain(value_type, reader.span(bytes))
        };
        let entry = Entry { offset, key: reader.span(key), value };
        if key == ALIGNMENT_KEY {
            self.alignment = alignment(entry.value(reader.head(), self.layout))?;
        }
        Ok(entry)
    }

    fn note_odd_bool(&mut self, key: &[u8], bytes: &[u8]) {
        if let Some(byte) = bytes.iter().find(|byte| **byte > 1) {
            self.odd_bools.push((key.into(), *byte));
        }
    }

    /// Sorts by key and finds a key that stands twice.
    fn sort(&mut self, head: &[u8]) -> Result<(), ParserError> {
        let entries = &self.entries;
        self.by_key =
            Names::sort(entries.len(), |position| entries[position].key.of(head)).map_err(|(first, second)| {
                ParserError::DuplicateKey {
                    key: entries[first].key.of(head).into(),
                    first: entries[first].offset,
                    second: entries[second].offset,
                }
            })?;
        Ok(())
    }
}

impl Entry {
    fn value<'a>(&self, head: &'a [u8], layout: Layout) -> Value<'a> {
        match self.value {
            Stored::Array { element, len, elements } => {
                Value::Array(Array { element, len, bytes: elements.of(head), layout })
            }
            // The parser saw these bytes; only a mapping that was changed since can fail to decode.
            Stored::Plain(value_type, bytes) => Value::decode(value_type, bytes.of(head), layout)
                .map_or(Value::String(BStr::new("")), |(value, _)| value),
        }
    }
}

fn alignment(value: Value<'_>) -> Result<u32, ParserError> {
    match value {
        Value::U32(value) if value.is_power_of_two() => Ok(value),
        Value::U32(value) => Err(ParserError::AlignmentValue { value }),
        other => Err(ParserError::AlignmentType { found: other.value_type() }),
    }
}

/// A container's metadata: a view, in file order.
///
/// ```
/// use gguf2st_gguf::{parse_gguf, write::Builder};
///
/// let head = Builder::new()
///     .metadata("general.architecture", "llama")
///     .metadata("llama.context_length", 4096_u32)
///     .head()?;
/// let file = parse_gguf(&head, head.len() as u64)?;
/// let metadata = file.metadata();
/// assert_eq!(metadata.read::<&str>("general.architecture")?, Some("llama"));
/// assert_eq!(metadata.read::<u64>("llama.context_length")?, Some(4096)); // any integer that fits
/// assert_eq!(metadata.read::<f32>("llama.rope.freq_base")?, None);
/// assert!(metadata.read::<bool>("llama.context_length").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Metadata<'a> {
    pub(crate) index: &'a MetadataIndex,
    pub(crate) head: &'a [u8],
}

impl<'a> Metadata<'a> {
    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keys and values in file order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'a BStr, Value<'a>)> + use<'a> {
        let Self { index, head } = *self;
        index.entries.iter().map(move |entry| (entry.key.of(head).as_bstr(), entry.value(head, index.layout)))
    }

    /// The value of a key, whatever its type.
    #[must_use]
    pub fn get(&self, key: impl AsRef<[u8]>) -> Option<Value<'a>> {
        let Self { index, head } = *self;
        let found = index.by_key.find(key.as_ref(), |position| index.entries[position].key.of(head))?;
        Some(index.entries[found].value(head, index.layout))
    }

    /// The value of a key as a Rust type; `None` where there is no such key.
    ///
    /// # Errors
    ///
    /// [`ParserError::WrongValueType`] where the key has a value of another type, and
    /// [`ParserError::ValueOutOfRange`] where the type fits and the value does not.
    pub fn read<T: FromValue<'a>>(&self, key: impl AsRef<[u8]>) -> Result<Option<T>, ParserError> {
        let key = key.as_ref();
        let Some(value) = self.get(key) else { return Ok(None) };
        T::from_value(value).map(Some).map_err(|fault| match fault {
            ValueFault::Type => {
                ParserError::WrongValueType { key: key.into(), expected: T::EXPECTED, found: value.type_name() }
            }
            ValueFault::Range => {
                ParserError::ValueOutOfRange { key: key.into(), expected: T::EXPECTED, value: value.to_string() }
            }
        })
    }
}

/// Why a value is not a Rust type's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueFault {
    /// It is of another type.
    Type,
    /// It is of a fitting type, but this value can't be held.
    Range,
}

/// A Rust type that metadata values can be read as, see [`Metadata::read`].
///
/// Integer types take any integer that fits, `f64` takes both float types, `f32` only its own, `&str`
/// takes strings that are UTF-8 and `&BStr` all.
pub trait FromValue<'a>: Sized {
    /// What it takes, for messages.
    const EXPECTED: &'static str;

    /// Reads the value.
    ///
    /// # Errors
    ///
    /// Whether the type or the value is what does not fit.
    fn from_value(value: Value<'a>) -> Result<Self, ValueFault>;
}

macro_rules! from_integer {
    ($($type:ty, $expected:literal;)*) => {
        $(impl FromValue<'_> for $type {
            const EXPECTED: &'static str = $expected;

            fn from_value(value: Value<'_>) -> Result<Self, ValueFault> {
                value.as_integer().ok_or(ValueFault::Type)?.try_into().map_err(|_| ValueFault::Range)
            }
        })*
    };
}

from_integer! {
    u8, "a u8"; i8, "an i8"; u16, "a u16"; i16, "an i16"; u32, "a u32"; i32, "an i32"; u64, "a u64"; i64, "an i64";
}

macro_rules! from_variant {
    ($($type:ty, $expected:literal, $pattern:pat => $value:expr;)*) => {
        $(impl<'a> FromValue<'a> for $type {
            const EXPECTED: &'static str = $expected;

            fn from_value(value: Value<'a>) -> Result<Self, ValueFault> {
                match value {
                    $pattern => $value,
                    _ => Err(ValueFault::Type),
                }
            }
        })*
    };
}

from_variant! {
    bool, "a bool", Value::Bool(value) => Ok(value);
    f32, "an f32", Value::F32(value) => Ok(value);
    &'a BStr, "a string", Value::String(text) => Ok(text);
    &'a str, "a UTF-8 string", Value::String(text) => text.to_str().map_err(|_| ValueFault::Range);
    Array<'a>, "an array", Value::Array(array) => Ok(array);
}

impl FromValue<'_> for f64 {
    const EXPECTED: &'static str = "a float";

    fn from_value(value: Value<'_>) -> Result<Self, ValueFault> {
        match value {
            Value::F32(value) => Ok(value.into()),
            Value::F64(value) => Ok(value),
            _ => Err(ValueFault::Type),
        }
    }
}
