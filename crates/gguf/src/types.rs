//! The two vocabularies of the format: how a metadata value is encoded ([`ValueType`]) and how a
//! tensor's values are stored ([`GgmlType`]).
//!
//! Value types are a closed set: a value of an unknown type has an unknown length, so nothing behind
//! it can be read. ggml types are an open set: a tensor of an unknown type is listed like any other
//! and only asking for its size fails. Hence an enum here and a newtype there.

use core::fmt;

/// How a metadata value is encoded (`gguf_type` in ggml's `gguf.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ValueType {
    /// 8-bit unsigned integer.
    U8 = 0,
    /// 8-bit signed integer.
    I8 = 1,
    /// 16-bit unsigned integer.
    U16 = 2,
    /// 16-bit signed integer.
    I16 = 3,
    /// 32-bit unsigned integer.
    U32 = 4,
    /// 32-bit signed integer.
    I32 = 5,
    /// 32-bit IEEE 754 float.
    F32 = 6,
    /// One byte: 0 is false, 1 is true, anything else reads as true and is a finding.
    Bool = 7,
    /// A length in bytes, then that many bytes; UTF-8 by the specification, any bytes in practice.
    String = 8,
    /// An element type, a count, then the elements.
    Array = 9,
    /// 64-bit unsigned integer.
    U64 = 10,
    /// 64-bit signed integer.
    I64 = 11,
    /// 64-bit IEEE 754 float.
    F64 = 12,
}

impl ValueType {
    /// All thirteen, in the order of their ids.
    pub const ALL: [Self; 13] = [
        Self::U8,
        Self::I8,
        Self::U16,
        Self::I16,
        Self::U32,
        Self::I32,
        Self::F32,
        Self::Bool,
        Self::String,
        Self::Array,
        Self::U64,
        Self::I64,
        Self::F64,
    ];

    /// The id as stored in a file.
    #[must_use]
    pub const fn id(self) -> u32 {
        self as u32
    }

    /// Bytes of one value; `None` for strings and arrays, whose values carry their own length.
    #[must_use]
    pub const fn size(self) -> Option<usize> {
        match self {
            Self::U8 | Self::I8 | Self::Bool => Some(1),
            Self::U16 | Self::I16 => Some(2),
            Self::U32 | Self::I32 | Self::F32 => Some(4),
            Self::U64 | Self::I64 | Self::F64 => Some(8),
            Self::String | Self::Array => None,
        }
    }

    /// The name used in messages and in JSON: `u8`, `string`, `array` …
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::U16 => "u16",
            Self::I16 => "i16",
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::F32 => "f32",
            Self::Bool => "bool",
            Self::String => "string",
            Self::Array => "array",
            Self::U64 => "u64",
            Self::I64 => "i64",
            Self::F64 => "f64",
        }
    }
}

impl TryFrom<u32> for ValueType {
    type Error = UnknownValueTypeId;

    fn try_from(id: u32) -> Result<Self, UnknownValueTypeId> {
        usize::try_from(id).ok().and_then(|index| Self::ALL.get(index)).copied().ok_or(UnknownValueTypeId(id))
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// An id that is none of the thirteen value types; the parser adds where it stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a GGUF value type (0 to 12)")]
pub struct UnknownValueTypeId(pub u32);

/// How a tensor's values are stored (`ggml_type` in ggml's `ggml.h`).
///
/// Any id is representable; [`name`](Self::name), [`block_size`](Self::block_size) and
/// [`type_size`](Self::type_size) are `None` where ggml has no such fact.
///
/// ```
/// use gguf2st_gguf::GgmlType;
///
/// assert_eq!(GgmlType::Q4_K.block_size(), Some(256)); // values
/// assert_eq!(GgmlType::Q4_K.type_size(), Some(144)); // bytes
/// assert_eq!(GgmlType::IQ2_XXS.to_string(), "IQ2_XXS");
/// assert_eq!(GgmlType(77).to_string(), "unknown(77)");
/// assert_eq!(GgmlType(4).to_string(), "Q4_2"); // removed from ggml, still named
/// assert_eq!(GgmlType(4).type_size(), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GgmlType(pub u32);

/// What a ggml type's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// One IEEE float (or bfloat16) a value.
    Float,
    /// One signed integer a value.
    Integer,
    /// Blocks of quantised values.
    Quantized,
}

/// One row of the table of facts. Sizes of 0 mark a type that ggml has removed.
struct Facts {
    id: u32,
    name: &'static str,
    block_size: u32,
    type_size: u32,
    family: Family,
}

macro_rules! ggml_types {
    ($($(#[$doc:meta])* $id:literal $name:ident $block:literal $bytes:literal $family:ident)*) => {
        #[allow(missing_docs, reason = "the names are ggml's own; the table says the rest")]
        #[allow(non_upper_case_globals, reason = "Q4_K is spelt as ggml spells it")]
        impl GgmlType {
            $($(#[$doc])* pub const $name: Self = Self($id);)*
        }

        const FACTS: &[Facts] = &[
            $(Facts {
                id: $id,
                name: stringify!($name),
                block_size: $block,
                type_size: $bytes,
                family: Family::$family,
            },)*
        ];
    };
}

// id, name, values a block, bytes a block, family: `type_traits` in ggml's `ggml.c`.
// A new type of ggml's is one more row here.
ggml_types! {
     0 F32        1   4 Float
     1 F16        1   2 Float
     2 Q4_0      32  18 Quantized
     3 Q4_1      32  20 Quantized
     4 Q4_2       0   0 Quantized
     5 Q4_3       0   0 Quantized
     6 Q5_0      32  22 Quantized
     7 Q5_1      32  24 Quantized
     8 Q8_0      32  34 Quantized
     9 Q8_1      32  36 Quantized
    10 Q2_K     256  84 Quantized
    11 Q3_K     256 110 Quantized
    12 Q4_K     256 144 Quantized
    13 Q5_K     256 176 Quantized
    14 Q6_K     256 210 Quantized
    15 Q8_K     256 292 Quantized
    16 IQ2_XXS  256  66 Quantized
    17 IQ2_XS   256  74 Quantized
    18 IQ3_XXS  256  98 Quantized
    19 IQ1_S    256  50 Quantized
    20 IQ4_NL    32  18 Quantized
    21 IQ3_S    256 110 Quantized
    22 IQ2_S    256  82 Quantized
    23 IQ4_XS   256 136 Quantized
    24 I8         1   1 Integer
    25 I16        1   2 Integer
    26 I32        1   4 Integer
    27 I64        1   8 Integer
    28 F64        1   8 Float
    29 IQ1_M    256  56 Quantized
    30 BF16       1   2 Float
    31 Q4_0_4_4   0   0 Quantized
    32 Q4_0_4_8   0   0 Quantized
    33 Q4_0_8_8   0   0 Quantized
    34 TQ1_0    256  54 Quantized
    35 TQ2_0    256  66 Quantized
    36 IQ4_NL_4_4 0   0 Quantized
    37 IQ4_NL_4_8 0   0 Quantized
    38 IQ4_NL_8_8 0   0 Quantized
    39 MXFP4     32  17 Quantized
    40 NVFP4     64  36 Quantized
    41 Q1_0     128  18 Quantized
    42 Q2_0      64  18 Quantized
}

impl GgmlType {
    fn facts(self) -> Option<&'static Facts> {
        FACTS.get(usize::try_from(self.0).ok()?)
    }

    /// Every id that has a name, removed ones included, in the order of their ids.
    pub fn all() -> impl Iterator<Item = Self> {
        FACTS.iter().map(|facts| Self(facts.id))
    }

    /// ggml's name for it; `None` for an id that was never assigned.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        self.facts().map(|facts| facts.name)
    }

    /// Values a block; 1 for the plain types, `None` for removed and unknown ids.
    #[must_use]
    pub fn block_size(self) -> Option<u64> {
        self.sized().map(|facts| u64::from(facts.block_size))
    }

    /// Bytes a block; `None` for removed and unknown ids.
    #[must_use]
    pub fn type_size(self) -> Option<u64> {
        self.sized().map(|facts| u64::from(facts.type_size))
    }

    /// Floats, integers or quantised blocks; `None` for removed and unknown ids.
    #[must_use]
    pub fn family(self) -> Option<Family> {
        self.sized().map(|facts| facts.family)
    }

    /// Whether values are stored in quantised blocks.
    #[must_use]
    pub fn is_quantized(self) -> bool {
        self.family() == Some(Family::Quantized)
    }

    /// Whether ggml once had this type and has taken it out again.
    #[must_use]
    pub fn is_removed(self) -> bool {
        self.facts().is_some_and(|facts| facts.block_size == 0)
    }

    fn sized(self) -> Option<&'static Facts> {
        self.facts().filter(|facts| facts.block_size != 0)
    }
}

impl fmt::Display for GgmlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => f.pad(&format!("unknown({})", self.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_indexed_by_id() {
        for (index, facts) in FACTS.iter().enumerate() {
            assert_eq!(usize::try_from(facts.id), Ok(index), "{}", facts.name);
        }
    }

    #[test]
    fn value_type_ids_round_trip() {
        for value_type in ValueType::ALL {
            assert_eq!(ValueType::try_from(value_type.id()), Ok(value_type));
        }
        assert_eq!(ValueType::try_from(13), Err(UnknownValueTypeId(13)));
        assert_eq!(ValueType::try_from(u32::MAX), Err(UnknownValueTypeId(u32::MAX)));
    }
}
