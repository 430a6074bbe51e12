//! Magic, version, byte order and counts: the first 24 bytes (16 in version 1).

use crate::error::ParserError;
use crate::foreign::Foreign;
use crate::reader::{ByteOrder, Layout, Reader};

/// The first four bytes of every container, in either byte order.
pub const MAGIC: [u8; 4] = *b"GGUF";

/// Bytes that [`Foreign::sniff`] wants to see where there are so many.
const SNIFFED: u64 = 512;

/// The header's facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// 1, 2 or 3.
    pub version: u32,
    /// Told by which way round the version word reads.
    pub byte_order: ByteOrder,
    /// Tensors that the index declares.
    pub tensor_count: u64,
    /// Metadata entries that follow the header.
    pub metadata_count: u64,
}

pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Header, ParserError> {
    if reader.remaining() == 0 {
        return Err(ParserError::Empty);
    }
    let start = reader.peek(SNIFFED);
    if !start.starts_with(&MAGIC) {
        // A file that agrees with the magic as far as it goes is cut short.
        if MAGIC.starts_with(start) {
            reader.read_array::<4>()?;
        }
        // What else it is does not depend on how much of it was given at first.
        reader.read_bytes(SNIFFED.min(reader.remaining()))?;
        return Err(ParserError::InvalidMagic {
            found: start[..start.len().min(4)].to_vec(),
            foreign: Foreign::sniff(start),
        });
    }
    reader.read_array::<4>()?;
    let word = reader.read_array()?;
    let version = u32::from_le_bytes(word);
    let (version, byte_order) = match version {
        1..=3 => (version, ByteOrder::Little),
        _ if u32::from_be_bytes(word) == 3 => (3, ByteOrder::Big),
        _ => return Err(ParserError::UnsupportedVersion { version }),
    };
    reader.layout = Layout { order: byte_order, narrow: version == 1, closing_nul: version < 3 };
    let tensor_count = reader.read_length()?;
    let metadata_count = reader.read_length()?;
    Ok(Header { version, byte_order, tensor_count, metadata_count })
}
