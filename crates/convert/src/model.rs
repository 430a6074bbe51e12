//! A model, opened: one container or a whole split set, each part's head parsed.

mod set;

use std::sync::Arc;

use bytes::Bytes;
use gguf2st_gguf::limits::MAX_HEAD;
use gguf2st_gguf::{GgufFile, ParserError, TensorInfo, parse_gguf};
use gguf2st_source::{Location, Source};

use crate::error::ConvertError;
use crate::plan::Piece;
pub use set::{SetFault, Sibling};

/// What is asked for first: the whole head of most models without a large vocabulary.
const FIRST_READ: u64 = 256 << 10;

/// What is asked for next at the least: the whole head of nearly all the others.
const NEXT_READ: u64 = 1 << 20;

/// What a user points at. Opening it reads heads and nothing else.
#[derive(Clone, Debug)]
pub struct Model {
    /// The parts in order; the only one, or the one named where the set is broken.
    parts: Vec<Part>,
    fault: Option<SetFault>,
}

/// One container of a model.
#[derive(Clone, Debug)]
pub struct Part {
    source: Arc<dyn Source>,
    file: GgufFile<Bytes>,
}

impl Part {
    /// Reads and parses the head: first a little, then more than what the parser says it is likely to take so far,
    /// since a vocabulary's other arrays follow its tokens. So heads take three reads, and twice their bytes, at
    /// the most.
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
            head = extend(&*source, head, want.min(MAX_HEAD).min(len))?;
            match parse_gguf(head.clone(), len) {
                Err(ParserError::NeedMore { have, likely, .. }) => {
                    let generous = likely.saturating_add(if have <= FIRST_READ { likely } else { likely / 2 });
                    want = generous.max(NEXT_READ);
                }
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

    /// The last component of its name, decoded where that is an address: the same wherever the file lies.
    pub(crate) fn file_name(&self) -> String {
        let name = self.source.name();
        let decoded = || Some(Location::parse(name).ok()?.file_name()?.into_owned());
        let remote = self.source.is_remote().then(decoded).flatten();
        remote.unwrap_or_else(|| name.file_name().unwrap_or(name.as_os_str()).to_string_lossy().into_owned())
    }
}

impl Model {
    /// Opens a container by itself. One that says that it is part of a set can be looked at so, and not be
    /// converted.
    ///
    /// # Errors
    ///
    /// Those of [`Part::open`].
    pub fn open(source: Arc<dyn Source>) -> Result<Self, ConvertError> {
        let part = Part::open(source)?;
        let fault = match part.file.split_keys() {
            Ok(None) => None,
            Ok(Some(keys)) => Some(SetFault::Alone { count: keys.count }),
            Err(fault) => Some(SetFault::Key { name: part.file_name(), fault }),
        };
        Ok(Self { parts: vec![part], fault })
    }

    /// Opens a container and, if it is part of a set, all of its parts: `sibling` opens the file of another
    /// name beside it. A set whose parts are not all there or do not fit together is no error here: the model
    /// is then the part named, and has a [`fault`](Self::fault).
    ///
    /// # Errors
    ///
    /// Those of [`Part::open`], of the part named.
    pub fn open_with_siblings(source: Arc<dyn Source>, sibling: Sibling<'_>) -> Result<Self, ConvertError> {
        let named = Part::open(source)?;
        Ok(match set::join(&named, sibling) {
            Ok(Some(parts)) => Self { parts, fault: None },
            Ok(None) => Self { parts: vec![named], fault: None },
            Err(fault) => Self { parts: vec![named], fault: Some(fault) },
        })
    }

    /// The containers, in order; one at the least.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The first container, which has the metadata of the whole.
    #[must_use]
    pub fn first(&self) -> &Part {
        &self.parts[0]
    }

    /// Where the first container's bytes come from.
    #[must_use]
    pub fn source(&self) -> &Arc<dyn Source> {
        &self.first().source
    }

    /// The first container's head.
    #[must_use]
    pub fn file(&self) -> &GgufFile<Bytes> {
        &self.first().file
    }

    /// Why the set that the container belongs to can't be taken as one model.
    #[must_use]
    pub fn fault(&self) -> Option<&SetFault> {
        self.fault.as_ref()
    }

    /// All tensors, in the order of the parts and of each part's index, with the position of their part.
    pub fn tensors(&self) -> impl Iterator<Item = (usize, TensorInfo<'_>)> {
        self.parts
            .iter()
            .enumerate()
            .flat_map(|(position, part)| part.file.tensors().iter().map(move |info| (position, info)))
    }

    /// Whether every source still is what was opened.
    ///
    /// # Errors
    ///
    /// That of the first source that is not.
    pub fn intact(&self) -> Result<(), ConvertError> {
        self.parts.iter().try_for_each(|part| part.source.intact()).map_err(Into::into)
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

/// Reads pieces one after the other, as views or into a buffer of its own.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    buffer: Vec<u8>,
    view: Bytes,
}

impl Reader {
    /// A piece's bytes.
    pub(crate) fn read(&mut self, model: &Model, piece: &Piece) -> Result<&[u8], ConvertError> {
        let source = &model.parts[piece.part].source;
        if source.hands_out_views() {
            self.view = source.read(piece.range.clone())?;
            return Ok(&self.view);
        }
        self.buffer.resize(usize::try_from(piece.bytes()).map_err(|_| ConvertError::Overflow)?, 0);
        source.read_into(piece.range.start, &mut self.buffer)?;
        Ok(&self.buffer)
    }
}
