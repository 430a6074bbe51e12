//! What a person wants to know of a model first, computed from its head.
//!
//! Facts only: how they are worded and laid out is for whoever shows them. Keys that are missing or of an
//! unexpected type give `None`, never an error: a summary is for looking at odd files too.

use gguf2st_convert::Model;
use gguf2st_gguf::bstr::{BStr, ByteSlice};
use gguf2st_gguf::{GgmlType, Metadata};

/// The facts of a model: its tensors' of all parts, the rest of the first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Summary<'a> {
    /// What kind of file it is.
    pub(crate) kind: Kind,
    /// Which part of a split set it is, if it is one without the others.
    pub(crate) part: Option<Part>,
    /// `general.architecture`.
    pub(crate) architecture: Option<&'a BStr>,
    /// `general.name`.
    pub(crate) name: Option<&'a BStr>,
    /// Values in all tensors together; `None` where that overflows 64 bits.
    pub(crate) parameters: Option<u64>,
    /// `<architecture>.context_length`, in tokens.
    pub(crate) context_length: Option<u64>,
    /// What each ggml type takes, most bytes first, types of unknown size last.
    pub(crate) mix: Vec<Share>,
    /// Bytes of all tensors together, without padding; `None` where one has no size or they overflow.
    pub(crate) tensor_bytes: Option<u64>,
    /// The tokenizer, if there is one.
    pub(crate) tokenizer: Option<Tokenizer<'a>>,
    /// Bytes of `tokenizer.chat_template`.
    pub(crate) chat_template: Option<usize>,
}

/// What kind of file a container is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A model's weights.
    Model,
    /// A low-rank adapter to a model.
    LoraAdapter,
    /// An adapter of another type.
    Adapter,
    /// A control vector.
    ControlVector,
    /// The part that maps images or sound to a model's embeddings.
    Projector,
    /// A tokenizer without weights.
    Vocabulary,
    /// Figures for quantising, gathered by llama-imatrix.
    ImportanceMatrix,
    /// Neither tensors nor a tokenizer.
    Bare,
}

/// A part of a split set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Which, from 0.
    pub(crate) number: u64,
    /// How many there are.
    pub(crate) count: u64,
}

/// What the tensors of one ggml type take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// The type.
    pub(crate) ggml_type: GgmlType,
    /// How many tensors have it.
    pub(crate) tensors: usize,
    /// Their bytes; `None` where one has no size or they overflow.
    pub(crate) bytes: Option<u64>,
}

/// A tokenizer's facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tokenizer<'a> {
    /// `tokenizer.ggml.model`: `llama`, `gpt2`, `bert` …
    pub(crate) model: Option<&'a BStr>,
    /// `tokenizer.ggml.pre`: how text is cut before it is encoded.
    pub(crate) pre: Option<&'a BStr>,
    /// Entries of `tokenizer.ggml.tokens`.
    pub(crate) tokens: Option<u64>,
    /// The token that begins a text.
    pub(crate) bos: Option<Token<'a>>,
    /// The token that ends one.
    pub(crate) eos: Option<Token<'a>>,
}

/// A token that the metadata names by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    /// Its id as the file has it: not always one of the vocabulary's.
    pub(crate) id: i128,
    /// Its text, where the vocabulary has that id.
    pub(crate) text: Option<&'a BStr>,
}

impl<'a> Summary<'a> {
    /// The facts of `model`.
    pub(crate) fn of(model: &'a Model) -> Self {
        let metadata = model.file().metadata();
        let architecture = string(metadata, "general.architecture");
        let tokenizer = Tokenizer::of(metadata);
        let mix = mix(model);
        let sum = |values: Option<u64>, more: Option<u64>| values?.checked_add(more?);
        Self {
            kind: kind(model, architecture, tokenizer.is_some()),
            part: Part::of(metadata).filter(|_| model.parts().len() == 1),
            architecture,
            name: string(metadata, "general.name"),
            parameters: model.tensors().map(|(_, tensor)| tensor.dims.values()).fold(Some(0), sum),
            context_length: architecture
                .and_then(|architecture| integer(metadata, [architecture.as_bytes(), b".context_length"].concat())),
            tensor_bytes: mix.iter().map(|share| share.bytes).fold(Some(0), sum),
            mix,
            tokenizer,
            chat_template: string(metadata, "tokenizer.chat_template").map(|text| text.len()),
        }
    }

    /// Bits that one value takes on average, where both figures are known.
    pub(crate) fn bits_per_weight(&self) -> Option<f64> {
        let (bytes, values) = (self.tensor_bytes?, self.parameters.filter(|values| *values > 0)?);
        // Far from 2^53, where f64 would begin to round visibly.
        Some(bytes as f64 * 8.0 / values as f64)
    }
}

fn kind(model: &Model, architecture: Option<&BStr>, tokenizer: bool) -> Kind {
    let metadata = model.file().metadata();
    let said = string(metadata, "general.type").map(|said| said.as_bytes());
    match (said, architecture.map(|architecture| architecture.as_bytes())) {
        (Some(b"adapter"), _) => match string(metadata, "adapter.type") {
            Some(other) if other != "lora" => Kind::Adapter,
            _ => Kind::LoraAdapter,
        },
        (Some(b"imatrix"), _) => Kind::ImportanceMatrix,
        (_, Some(b"controlvector")) => Kind::ControlVector,
        (Some(b"mmproj"), _) | (_, Some(b"clip")) => Kind::Projector,
        (_, Some(architecture)) if architecture.starts_with(b"clip.") => Kind::Projector,
        _ if model.tensors().next().is_some() => Kind::Model,
        _ if tokenizer => Kind::Vocabulary,
        _ => Kind::Bare,
    }
}

fn mix(model: &Model) -> Vec<Share> {
    let mut mix: Vec<Share> = Vec::new();
    for (_, tensor) in model.tensors() {
        let bytes = tensor.byte_size().ok();
        match mix.iter_mut().find(|share| share.ggml_type == tensor.ggml_type) {
            Some(share) => {
                share.tensors += 1;
                share.bytes = share.bytes.and_then(|sum| sum.checked_add(bytes?));
            }
            None => mix.push(Share { ggml_type: tensor.ggml_type, tensors: 1, bytes }),
        }
    }
    mix.sort_by_key(|share| (std::cmp::Reverse(share.bytes), share.ggml_type));
    mix
}

impl Part {
    fn of(metadata: Metadata<'_>) -> Option<Self> {
        let count = integer(metadata, "split.count").filter(|count| *count > 1)?;
        Some(Self { number: integer(metadata, "split.no")?, count })
    }
}

impl<'a> Tokenizer<'a> {
    fn of(metadata: Metadata<'a>) -> Option<Self> {
        let tokens = metadata.get("tokenizer.ggml.tokens").and_then(|value| value.as_array());
        let model = string(metadata, "tokenizer.ggml.model");
        if tokens.is_none() && model.is_none() {
            return None;
        }
        let token = |key: &str| {
            let id = metadata.get(key)?.as_integer()?;
            let at = u64::try_from(id).ok();
            let text = tokens.zip(at).and_then(|(tokens, at)| tokens.get(at)?.as_string());
            Some(Token { id, text })
        };
        Some(Self {
            model,
            pre: string(metadata, "tokenizer.ggml.pre"),
            tokens: tokens.map(|tokens| tokens.len()),
            bos: token("tokenizer.ggml.bos_token_id"),
            eos: token("tokenizer.ggml.eos_token_id"),
        })
    }
}

fn string<'a>(metadata: Metadata<'a>, key: &str) -> Option<&'a BStr> {
    metadata.get(key)?.as_string()
}

fn integer(metadata: Metadata<'_>, key: impl AsRef<[u8]>) -> Option<u64> {
    metadata.get(key)?.as_integer()?.try_into().ok()
}
