//! The cursor: one bounds check under every read, in either byte order.
//!
//! It knows two ends. Past the container's end nothing can follow: an error. Past the head's end more may
//! follow: [`ParserError::NeedMore`]. Every length and count from the file is weighed against the first
//! before the second is considered, so that a hostile number never makes a caller fetch in vain.

use bstr::BString;

use crate::error::{ParserError, Place};
use crate::limits::{MAX_ARRAY_DEPTH, MAX_HEAD};
use crate::types::ValueType;

type Result<T> = core::result::Result<T, ParserError>;

/// The order of the bytes of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum ByteOrder {
    /// Least significant byte first: nearly every file.
    #[default]
    Little,
    /// Most significant byte first: files made for s390x and the like; version 3 only.
    Big,
}

impl ByteOrder {
    /// The order of the machine that this runs on.
    pub const NATIVE: Self = if cfg!(target_endian = "big") { Self::Big } else { Self::Little };

    /// `little` or `big`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Little => "little",
            Self::Big => "big",
        }
    }
}

/// How numbers are laid out: what version and byte order decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Layout {
    pub(crate) order: ByteOrder,
    /// Version 1: counts, lengths and dims take 32 bits.
    pub(crate) narrow: bool,
    /// Versions 1 and 2: early writers counted a closing NUL into each string, and readers strip it.
    pub(crate) closing_nul: bool,
}

impl Layout {
    /// Bytes of a count or length.
    pub(crate) const fn length_size(self) -> u64 {
        if self.narrow { 4 } else { 8 }
    }

    pub(crate) fn u16(self, bytes: [u8; 2]) -> u16 {
        match self.order {
            ByteOrder::Little => u16::from_le_bytes(bytes),
            ByteOrder::Big => u16::from_be_bytes(bytes),
        }
    }

    pub(crate) fn u32(self, bytes: [u8; 4]) -> u32 {
        match self.order {
            ByteOrder::Little => u32::from_le_bytes(bytes),
            ByteOrder::Big => u32::from_be_bytes(bytes),
        }
    }

    pub(crate) fn u64(self, bytes: [u8; 8]) -> u64 {
        match self.order {
            ByteOrder::Little => u64::from_le_bytes(bytes),
            ByteOrder::Big => u64::from_be_bytes(bytes),
        }
    }

    /// A string's text: all of its bytes but a closing NUL where the version is one that has them.
    pub(crate) fn text(self, bytes: &[u8]) -> &[u8] {
        match bytes {
            [text @ .., 0] if self.closing_nul => text,
            _ => bytes,
        }
    }

    /// The least that one array element of a type takes in the file.
    pub(crate) fn min_size(self, element: ValueType) -> u64 {
        match element {
            ValueType::String => self.length_size(),
            ValueType::Array => 4 + self.length_size(),
            fixed => fixed.size().unwrap_or(1) as u64,
        }
    }
}

/// Positions of a part of the head. Heads end at [`MAX_HEAD`], so 32 bits hold every position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    start: u32,
    len: u32,
}

impl Span {
    /// The bytes of the span; empty if the head has shrunk under us.
    pub(crate) fn of(self, head: &[u8]) -> &[u8] {
        let start = self.start as usize;
        head.get(start..start + self.len as usize).unwrap_or_default()
    }
}

/// What the cursor is in, kept borrowed until an error needs it.
#[derive(Clone, Copy)]
pub(crate) enum Within<'h> {
    Header,
    Metadata { index: u64, key: Option<&'h [u8]> },
    Tensor { index: u64, name: Option<&'h [u8]> },
}

pub(crate) struct Reader<'h> {
    head: &'h [u8],
    position: usize,
    container_len: u64,
    pub(crate) layout: Layout,
    pub(crate) within: Within<'h>,
}

impl<'h> Reader<'h> {
    pub(crate) fn new(head: &'h [u8], container_len: u64) -> Self {
        let end = container_len.min(MAX_HEAD).min(head.len() as u64);
        Self {
            #[allow(clippy::cast_possible_truncation, reason = "at most head.len()")]
            head: &head[..end as usize],
            position: 0,
            container_len,
            layout: Layout::default(),
            within: Within::Header,
        }
    }

    /// The head as far as it may be read.
    pub(crate) fn head(&self) -> &'h [u8] {
        self.head
    }

    /// Bytes from the container's start.
    pub(crate) fn offset(&self) -> u64 {
        self.position as u64
    }

    /// Bytes up to the container's end.
    pub(crate) fn remaining(&self) -> u64 {
        self.container_len.saturating_sub(self.offset())
    }

    pub(crate) fn place(&self) -> Place {
        let own = |bytes: Option<&[u8]>| bytes.map(BString::from);
        match self.within {
            Within::Header => Place::Header,
            Within::Metadata { index, key } => Place::Metadata { index, key: own(key) },
            Within::Tensor { index, name } => Place::Tensor { index, name: own(name) },
        }
    }

    /// The next bytes, not passed: `bytes` of them, or as many as the head has.
    pub(crate) fn peek(&self, bytes: u64) -> &'h [u8] {
        let rest = &self.head[self.position..];
        usize::try_from(bytes).ok().and_then(|bytes| rest.get(..bytes)).unwrap_or(rest)
    }

    /// The next `bytes` bytes, passed.
    #[inline]
    pub(crate) fn read_bytes(&mut self, bytes: u64) -> Result<&'h [u8]> {
        let rest = &self.head[self.position..];
        match usize::try_from(bytes).ok().and_then(|bytes| rest.get(..bytes)) {
            Some(taken) => {
                self.position += taken.len();
                Ok(taken)
            }
            None => Err(self.missing(bytes)),
        }
    }

    /// The next `N` bytes, passed: every fixed-size value is read through here.
    #[inline]
    pub(crate) fn read_array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.read_bytes(N as u64)?);
        Ok(array)
    }

    #[inline]
    pub(crate) fn read_u32(&mut self) -> Result<u32> {
        Ok(self.layout.u32(self.read_array()?))
    }

    #[inline]
    pub(crate) fn read_u64(&mut self) -> Result<u64> {
        Ok(self.layout.u64(self.read_array()?))
    }

    /// A count, length or dim: 32 bits in version 1, 64 in the others.
    #[inline]
    pub(crate) fn read_length(&mut self) -> Result<u64> {
        if self.layout.narrow { self.read_u32().map(u64::from) } else { self.read_u64() }
    }

    /// A length, then that many bytes, passed and not looked at.
    fn skip_string(&mut self) -> Result<()> {
        let len = self.read_length()?;
        self.read_bytes(len).map(|_| ())
    }

    /// Passes `count` strings, which end at `least` at the earliest. Vocabularies are most of what there is to read, and each length has to be known
    /// before the next can be found: so the loop decides version and byte order once and carries one position.
    fn skip_strings(&mut self, count: u64, least: u64) -> Result<()> {
        let (layout, start) = (self.layout, self.offset());
        let passed = if layout.narrow {
            self.pass_strings::<4>(count, |length| u64::from(layout.u32(length)))
        } else if layout.order == ByteOrder::Little {
            self.pass_strings::<8>(count, u64::from_le_bytes)
        } else {
            self.pass_strings::<8>(count, u64::from_be_bytes)
        };
        if passed == count {
            return Ok(());
        }
        // Where the loop stopped early, the next string is read as any other, for its error; the rest of them is
        // likely to be as long as those seen.
        let seen = u128::from(self.offset() - start);
        let whole = seen.checked_mul(count.into()).and_then(|bytes| bytes.checked_div(passed.into())).unwrap_or(0);
        self.skip_string().map_err(|error| match error {
            ParserError::NeedMore { have, at_least, likely } => {
                let end = u64::try_from(u128::from(start) + whole).unwrap_or(u64::MAX).min(self.container_len);
                ParserError::NeedMore { have, at_least: at_least.max(least), likely: likely.max(end).max(least) }
            }
            error => error,
        })
    }

    /// Passes strings as long as they are whole, `count` at the most; says how many.
    #[inline]
    fn pass_strings<const N: usize>(&mut self, count: u64, length: impl Fn([u8; N]) -> u64) -> u64 {
        let mut rest = &self.head[self.position..];
        let mut passed = 0;
        while passed < count
            && let Some((prefix, text)) = rest.split_first_chunk::<N>()
            && let Some(behind) = usize::try_from(length(*prefix)).ok().and_then(|length| text.get(length..))
        {
            rest = behind;
            passed += 1;
        }
        self.position = self.head.len() - rest.len();
        passed
    }

    /// A string's text, at most `limit` bytes of it.
    pub(crate) fn read_string(&mut self, limit: u64, items: &'static str) -> Result<&'h [u8]> {
        let offset = self.offset();
        let len = self.read_length()?;
        if len > limit && len <= self.remaining() {
            return Err(self.over_limit(items, len, limit, offset));
        }
        self.read_bytes(len).map(|bytes| self.layout.text(bytes))
    }

    pub(crate) fn read_value_type(&mut self) -> Result<ValueType> {
        let offset = self.offset();
        let id = self.read_u32()?;
        ValueType::try_from(id).map_err(|_| ParserError::UnknownValueType { id, offset, place: self.place() })
    }

    /// Weighs a count that was just read against what the container still holds, and asks for the least
    /// that it takes if the head is shorter than that.
    pub(crate) fn weigh(&mut self, count: u64, min_bytes: u64, items: &'static str) -> Result<()> {
        let offset = self.offset();
        match count.checked_mul(min_bytes) {
            Some(bytes) if bytes <= self.remaining() => {
                if bytes > (self.head.len() - self.position) as u64 {
                    return Err(self.missing(bytes));
                }
                Ok(())
            }
            _ => Err(ParserError::CountTooLarge {
                items,
                count,
                offset: offset - self.layout.length_size(),
                min_bytes,
                remaining: self.remaining(),
                place: self.place(),
            }),
        }
    }

    /// A fixed-size value's bytes, or a string's length and bytes, passed and not looked at.
    pub(crate) fn skip_value(&mut self, value_type: ValueType) -> Result<&'h [u8]> {
        let start = self.position;
        match value_type {
            ValueType::String => self.skip_string()?,
            ValueType::Array => self.skip_array(1).map(|_| ())?,
            fixed => self.read_bytes(self.layout.min_size(fixed)).map(|_| ())?,
        }
        Ok(&self.head[start..self.position])
    }

    /// An array's element type, count and elements, which are passed, not decoded.
    pub(crate) fn skip_array(&mut self, depth: u32) -> Result<(ValueType, u64, &'h [u8])> {
        if depth > MAX_ARRAY_DEPTH {
            let (found, limit) = (u64::from(depth), u64::from(MAX_ARRAY_DEPTH));
            return Err(self.over_limit("levels of arrays", found, limit, self.offset()));
        }
        let element = self.read_value_type()?;
        let count = self.read_length()?;
        let weighed = self.weigh(count, self.layout.min_size(element), array_items(element));
        let start = self.position;
        match element {
            // A head too short for the least that they take still shows how long they are likely to be.
            ValueType::String => match weighed {
                Err(ParserError::NeedMore { at_least: least, .. }) => self.skip_strings(count, least)?,
                weighed => weighed.and_then(|()| self.skip_strings(count, 0))?,
            },
            ValueType::Array => {
                weighed?;
                for _ in 0..count {
                    self.skip_array(depth + 1)?;
                }
            }
            fixed => {
                weighed?;
                self.read_bytes(count * self.layout.min_size(fixed))?;
            }
        }
        Ok((element, count, &self.head[start..self.position]))
    }

    /// Where a part of the head stands that was read from this cursor.
    #[allow(clippy::cast_possible_truncation, reason = "the head is at most MAX_HEAD bytes")]
    pub(crate) fn span(&self, part: &'h [u8]) -> Span {
        let start = part.as_ptr().addr() - self.head.as_ptr().addr();
        Span { start: start as u32, len: part.len() as u32 }
    }

    pub(crate) fn over_limit(&self, items: &'static str, found: u64, limit: u64, offset: u64) -> ParserError {
        ParserError::LimitExceeded { items, found, limit, offset, place: self.place() }
    }

    /// Why the next `bytes` bytes are not there.
    #[cold]
    fn missing(&self, bytes: u64) -> ParserError {
        let offset = self.offset();
        match offset.checked_add(bytes).filter(|end| *end <= self.container_len) {
            None => ParserError::UnexpectedEof { bytes, offset, len: self.container_len, place: self.place() },
            Some(end) if end > MAX_HEAD => ParserError::HeadTooLarge { end, limit: MAX_HEAD, place: self.place() },
            Some(end) => ParserError::NeedMore { have: self.head.len() as u64, at_least: end, likely: end },
        }
    }
}

fn array_items(element: ValueType) -> &'static str {
    match element {
        ValueType::U8 => "u8 values",
        ValueType::I8 => "i8 values",
        ValueType::U16 => "u16 values",
        ValueType::I16 => "i16 values",
        ValueType::U32 => "u32 values",
        ValueType::I32 => "i32 values",
        ValueType::F32 => "f32 values",
        ValueType::Bool => "bool values",
        ValueType::String => "strings",
        ValueType::Array => "arrays",
        ValueType::U64 => "u64 values",
        ValueType::I64 => "i64 values",
        ValueType::F64 => "f64 values",
    }
}
