//! A model, opened: its source, and its head parsed.

use std::sync::Arc;

use bytes::Bytes;
use gguf2st_gguf::limits::MAX_HEAD;
use gguf2st_gguf::{GgufFile, ParserError, parse_gguf};
use gguf2st_source::Source;

use crate::error::ConvertError;

/// What is asked for first: the whole head of most models without a large vocabulary.
const FIRST_READ: u64 = 256 << 10;

/// A container and where its bytes come from. Opening it reads its head and nothing else.
#[derive(Clone, Debug)]
pub struct Model {
    source: Arc<dyn Source>,
    file: GgufFile<Bytes>,
}

impl Model {
    /// Reads and parses the head: what the parser asks for, and as much again, so that a head of any length
    /// takes few reads.
    ///
    /// # Errors
    ///
    /// [`ConvertError::Source`] where the bytes can't be had, [`ConvertError::Parse`] where they are no
    /// container that can be read.
    pub fn open(source: Arc<dyn Source>) -> Result<Self, ConvertError> {
        let len = source.len();
        let mut want = if source.hands_out_views() { MAX_HEAD } else { FIRST_READ };
        let mut head = Bytes::new();
        let file = loop {
            head = extend(&*source, head, want.min(len))?;
            match parse_gguf(head.clone(), len) {
                Err(ParserError::NeedMore { have, at_least }) => want = at_least.max(have * 2),
                parsed => break parsed,
            }
        };
        // If the file was cut short meanwhile, that is the cause, and not what the parser made of it.
        source.intact()?;
        let file = file.map_err(|error| ConvertError::Parse { name: source.name().into(), error })?;
        Ok(Self { source, file })
    }

    /// Where its bytes come from.
    #[must_use]
    pub fn source(&self) -> &Arc<dyn Source> {
        &self.source
    }

    /// Its head.
    #[must_use]
    pub fn file(&self) -> &GgufFile<Bytes> {
        &self.file
    }
}

/// The source's first `want` bytes, of which `have` are at hand.
fn extend(source: &dyn Source, have: Bytes, want: u64) -> Result<Bytes, ConvertError> {
    if have.is_empty() || source.hands_out_views() {
        return Ok(source.read(0..want)?);
    }
    let more = source.read(have.len() as u64..want)?;
    let mut joined = Vec::with_capacity(have.len() + more.len());
    joined.extend_from_slice(&have);
    joined.extend_from_slice(&more);
    Ok(joined.into())
}
