//! What can go wrong in reading a container: one variant a cause, the facts in fields.
//!
//! Offsets and lengths are bytes from the container's start. Names come from the file and are shown
//! escaped.

use core::fmt;

use bstr::BString;

use crate::escape::Escaped;
use crate::foreign::Foreign;
use crate::types::{GgmlType, ValueType};

/// Where in the container the parser was: for messages, beside the offset.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// The 24 bytes (16 in version 1) of magic, version and counts.
    Header,
    /// A metadata entry; its key once that has been read.
    Metadata {
        /// Position among the entries, from 0.
        index: u64,
        /// The key.
        key: Option<BString>,
    },
    /// An entry of the tensor index; its name once that has been read.
    Tensor {
        /// Position among the tensors, from 0.
        index: u64,
        /// The name.
        name: Option<BString>,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => f.write_str("the header"),
            Self::Metadata { key: Some(key), .. } => write!(f, "metadata key {:?}", Escaped(key)),
            Self::Metadata { index, key: None } => write!(f, "metadata entry {index}"),
            Self::Tensor { name: Some(name), .. } => write!(f, "tensor {:?}", Escaped(name)),
            Self::Tensor { index, name: None } => write!(f, "tensor index entry {index}"),
        }
    }
}

/// Why a container, or a part of one, can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParserError {
    /// The head given ends before the container's head does. Not a fault: fetch at least so many bytes
    /// from the container's start and parse again.
    #[error("the head needs at least {at_least} bytes, {have} were given")]
    NeedMore {
        /// Bytes given.
        have: u64,
        /// Bytes that the next attempt needs at the least.
        at_least: u64,
        /// Bytes that what is being read is likely to take, by what was seen of it: never fewer.
        likely: u64,
    },

    /// The container ends inside something that it declares.
    #[error(
        "truncated: {place} wants {bytes} bytes at offset {offset}, but the file ends at {len}; \
         the download may be incomplete"
    )]
    UnexpectedEof {
        /// Bytes wanted.
        bytes: u64,
        /// Where they were to begin.
        offset: u64,
        /// The container's length.
        len: u64,
        /// What wanted them.
        place: Place,
    },

    /// A count that the rest of the container can't hold.
    #[error(
        "truncated or corrupt: {place} declares {count} {items} at offset {offset}, \
         which take {min_bytes} bytes each at the least, but only {remaining} bytes follow"
    )]
    CountTooLarge {
        /// What is counted: `metadata entries`, `tensors`, `u64 values` …
        items: &'static str,
        /// The count declared.
        count: u64,
        /// Where the count stands.
        offset: u64,
        /// The least that one of them takes.
        min_bytes: u64,
        /// Bytes between the count and the container's end.
        remaining: u64,
        /// Who declares it.
        place: Place,
    },

    /// More than this parser reads, see [`limits`](crate::limits).
    #[error("limit: {place} has {found} {items} at offset {offset}; this parser reads at most {limit}")]
    LimitExceeded {
        /// What is limited: `metadata entries`, `key bytes`, `dimensions`, `levels of arrays` …
        items: &'static str,
        /// What the file has.
        found: u64,
        /// The cap.
        limit: u64,
        /// Where the file says so.
        offset: u64,
        /// Who says so.
        place: Place,
    },

    /// The head goes on past [`limits::MAX_HEAD`](crate::limits::MAX_HEAD).
    #[error("limit: the head reaches past {limit} bytes ({place} ends at {end} at the earliest)")]
    HeadTooLarge {
        /// Where what was being read would end.
        end: u64,
        /// The cap in bytes.
        limit: u64,
        /// What was being read.
        place: Place,
    },

    /// The container is empty.
    #[error("not a GGUF file: it is empty (0 bytes)")]
    Empty,

    /// The first four bytes are not `GGUF`.
    #[error("not a GGUF file: it begins with {} where \"GGUF\" is expected{}", Magic(found), Looks(*foreign))]
    InvalidMagic {
        /// The first bytes, four unless the file is shorter.
        found: Vec<u8>,
        /// What the file looks like instead, where it is recognised.
        foreign: Option<Foreign>,
    },

    /// A version other than 1, 2 and 3 (big-endian: other than 3).
    #[error(
        "unsupported version: the file says {version} (0x{version:08x}) at offset 4; versions 1 to 3 are read, 3 also as big-endian"
    )]
    UnsupportedVersion {
        /// The version word, read as little-endian.
        version: u32,
    },

    /// A value or element type id outside 0 to 12. Its length is unknown, so reading ends here.
    #[error("unknown value type: {place} has type id {id} at offset {offset}; GGUF defines 0 to 12")]
    UnknownValueType {
        /// The id.
        id: u32,
        /// Where it stands.
        offset: u64,
        /// The entry.
        place: Place,
    },

    /// A key of no bytes.
    #[error("bad key: metadata entry {index} at offset {offset} has an empty key")]
    EmptyKey {
        /// Position among the entries, from 0.
        index: u64,
        /// Where the entry begins.
        offset: u64,
    },

    /// One key twice.
    #[error("duplicate key: {:?} stands at offset {first} and again at offset {second}", Escaped(key))]
    DuplicateKey {
        /// The key.
        key: BString,
        /// Where its first entry begins.
        first: u64,
        /// Where its second entry begins.
        second: u64,
    },

    /// A tensor name of no bytes.
    #[error("bad tensor name: tensor index entry {index} at offset {offset} has an empty name")]
    EmptyTensorName {
        /// Position among the tensors, from 0.
        index: u64,
        /// Where the entry begins.
        offset: u64,
    },

    /// One tensor name twice.
    #[error("duplicate tensor: {:?} stands at offset {first} of the index and again at offset {second}", Escaped(name))]
    DuplicateTensor {
        /// The name.
        name: BString,
        /// Where its first entry begins.
        first: u64,
        /// Where its second entry begins.
        second: u64,
    },

    /// `general.alignment` is not a `u32`.
    #[error("bad alignment: general.alignment is of type {found}; the format wants a u32")]
    AlignmentType {
        /// The type it has.
        found: ValueType,
    },

    /// `general.alignment` is not a power of two.
    #[error("bad alignment: general.alignment is {value}; a power of two is expected")]
    AlignmentValue {
        /// The value it has.
        value: u32,
    },

    /// A metadata value of another type than asked for.
    #[error("{:?} is of type {found}; {expected} was asked for", Escaped(key))]
    WrongValueType {
        /// The key.
        key: BString,
        /// What was asked for.
        expected: &'static str,
        /// The type it has: `u32`, `array[string]` …
        found: String,
    },

    /// A metadata value that the type asked for can't hold, or a string that is not UTF-8.
    #[error("{:?} is {value}, which does not fit {expected}", Escaped(key))]
    ValueOutOfRange {
        /// The key.
        key: BString,
        /// What was asked for.
        expected: &'static str,
        /// The value, shown.
        value: String,
    },

    /// A tensor's size was asked for and its ggml type is unknown or removed.
    #[error("unknown tensor type: tensor {:?} has ggml type {ggml_type} (id {}){}", Escaped(name), ggml_type.0, Removed(*ggml_type))]
    UnknownGgmlType {
        /// The tensor.
        name: BString,
        /// Its type.
        ggml_type: GgmlType,
    },

    /// A tensor's row is not a whole number of blocks.
    #[error(
        "bad shape: tensor {:?} has rows of {row} values, not a multiple of {ggml_type}'s block of {block}",
        Escaped(name)
    )]
    RowNotWholeBlocks {
        /// The tensor.
        name: BString,
        /// Its type.
        ggml_type: GgmlType,
        /// `dims[0]`, values a row.
        row: u64,
        /// Values a block.
        block: u64,
    },

    /// A tensor's dims multiply to more than 64 bits hold.
    #[error("overflow: the size of tensor {:?} with dims {dims:?} of {ggml_type} overflows 64 bits", Escaped(name))]
    SizeOverflow {
        /// The tensor.
        name: BString,
        /// Its dims, fastest first.
        dims: Vec<u64>,
        /// Its type.
        ggml_type: GgmlType,
    },

    /// A tensor's bytes are not inside the container.
    #[error("out of bounds: tensor {:?} takes {bytes} bytes at {start}, but the file ends at {len}", Escaped(name))]
    OutOfBounds {
        /// The tensor.
        name: BString,
        /// Where its bytes begin, from the container's start; wider than 64 bits, since the sum may be.
        start: u128,
        /// How many they are.
        bytes: u64,
        /// The container's length.
        len: u64,
    },

    /// A typed slice was asked for and the tensor's bytes can't be seen as one.
    #[error("tensor {:?} of {ggml_type} can't be viewed as a slice of {wanted}: {reason}", Escaped(name))]
    NotASlice {
        /// The tensor.
        name: BString,
        /// Its type.
        ggml_type: GgmlType,
        /// The Rust type asked for.
        wanted: &'static str,
        /// Why not.
        reason: SliceFault,
    },
}

/// Why a tensor's bytes can't be viewed as a slice of a Rust type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SliceFault {
    /// Its ggml type is stored differently.
    #[error("it is stored differently")]
    Type,
    /// Its bytes do not begin at a multiple of the Rust type's alignment in memory.
    #[error("its bytes are not aligned in memory")]
    Alignment,
    /// The container's byte order is not this machine's.
    #[error("the container's byte order is not this machine's")]
    ByteOrder,
}

struct Magic<'a>(&'a [u8]);

impl fmt::Display for Magic<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")?;
        for byte in self.0 {
            write!(f, " {byte:02x}")?;
        }
        write!(f, " ({:?})", Escaped(self.0))
    }
}

struct Looks(Option<Foreign>);

impl fmt::Display for Looks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |foreign| write!(f, "; it looks like {foreign}"))
    }
}

struct Removed(GgmlType);

impl fmt::Display for Removed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_removed() {
            ", which ggml has removed; make the file anew with a current llama.cpp"
        } else {
            ", which this version does not know"
        })
    }
}
