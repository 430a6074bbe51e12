//! Why a conversion, a restoration or a comparison can't be done.

use std::io;
use std::path::PathBuf;

use gguf2st_gguf::{Escaped, ParserError};
use gguf2st_quants::DecodeError;
use gguf2st_source::{EscapedPath, SourceError};

use crate::dtype::Dtype;
use crate::model::SetFault;

/// What went wrong, with the facts in fields. Names and paths are shown escaped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// The source's bytes can't be had, or are not what was opened.
    #[error(transparent)]
    Source(#[from] SourceError),

    /// The model is no container that can be read.
    #[error("{}: {error}", EscapedPath(name))]
    Parse {
        /// What the user called it.
        name: PathBuf,
        /// Why.
        error: ParserError,
    },

    /// The split set that the container is part of can't be taken as one model.
    #[error("{}: {fault}", EscapedPath(name))]
    Set {
        /// What the user called it.
        name: PathBuf,
        /// Why.
        fault: SetFault,
    },

    /// The container can be read, and a check of it fails.
    #[error("{}: {check}: {detail}", EscapedPath(name))]
    Unsound {
        /// What the user called it.
        name: PathBuf,
        /// The check that fails, as `gguf2st check` calls it.
        check: &'static str,
        /// What is wrong and where.
        detail: String,
    },

    /// A tensor's values can't be decoded.
    #[error("tensor {:?}: {error}", Escaped(tensor.as_bytes()))]
    Decode {
        /// The tensor.
        tensor: String,
        /// Why.
        error: DecodeError,
    },

    /// Finite values became infinite, and that was to be an error.
    #[error("tensor {:?} has finite values that are too large for {dtype}; a wider dtype holds them, and without --strict they become infinite", Escaped(tensor.as_bytes()))]
    Overflowed {
        /// The tensor.
        tensor: String,
        /// The dtype that can't hold them.
        dtype: Dtype,
    },

    /// A tensor bears a name that the output format keeps for itself.
    #[error("reserved name: tensor {:?} can't be written to safetensors, which keeps that name for itself", Escaped(tensor.as_bytes()))]
    ReservedName {
        /// The name.
        tensor: String,
    },

    /// The safetensors header would be larger than its readers accept.
    #[error("the safetensors header would take {bytes} bytes; readers accept at most {limit}")]
    HeaderTooLarge {
        /// Bytes of JSON.
        bytes: u64,
        /// What readers accept.
        limit: u64,
    },

    /// Sizes add up to more than 64 bits.
    #[error("the output's size overflows 64 bits")]
    Overflow,

    /// The file to be read is no safetensors file.
    #[error("{}: not a safetensors file: {reason}", EscapedPath(name))]
    NotSafetensors {
        /// What the user called it.
        name: PathBuf,
        /// What is wrong with it and where.
        reason: String,
    },

    /// The safetensors file holds nothing that a container could be restored from.
    #[error("{}: can't be restored: {reason}", EscapedPath(name))]
    NotRestorable {
        /// What the user called it.
        name: PathBuf,
        /// What is missing or does not fit.
        reason: String,
    },

    /// Another run works on the same folder.
    #[error("{}: another conversion works on this folder", EscapedPath(path))]
    Busy {
        /// The folder.
        path: PathBuf,
    },

    /// The folder holds files that this plan does not make.
    #[error("{} holds files of another conversion: {}; --force replaces them", EscapedPath(path), listed(files))]
    OtherFiles {
        /// The folder.
        path: PathBuf,
        /// Their names.
        files: Vec<String>,
    },

    /// A shard asked for is not in the plan.
    #[error("there is no shard {shard}: the plan has {count}")]
    NoSuchShard {
        /// Its number, from one.
        shard: usize,
        /// How many there are.
        count: usize,
    },

    /// Shards in a folder do not make up a model.
    #[error("{}: can't be assembled: {reason}", EscapedPath(path))]
    NotAssembled {
        /// The folder.
        path: PathBuf,
        /// What is missing or does not fit.
        reason: String,
    },

    /// The run was asked to stop.
    #[error("interrupted; what was not whole is removed")]
    Interrupted,

    /// A fault of this program or of a source that was given to it: nothing of what was made is kept.
    #[error("internal error: {0}; nothing that was not whole is kept")]
    Panicked(String),

    /// The threads that fetch can't be started.
    #[error("the reading of the model can't be started: {0}")]
    Runtime(io::Error),

    /// The output exists.
    #[error("{} exists; --force replaces it", EscapedPath(path))]
    OutputExists {
        /// The output.
        path: PathBuf,
    },

    /// The output is the input, perhaps by another name.
    #[error("{} is the file to be read; choose another output", EscapedPath(path))]
    OutputIsInput {
        /// The output.
        path: PathBuf,
    },

    /// The output's path can't take a file.
    #[error("{}: {reason}", EscapedPath(path))]
    BadOutput {
        /// The output.
        path: PathBuf,
        /// Why not.
        reason: &'static str,
    },

    /// The output would not fit on its disk.
    #[error("{}: not enough room: {needed} bytes are needed, {free} are free", EscapedPath(path))]
    NoRoom {
        /// The folder.
        path: PathBuf,
        /// Bytes of the output.
        needed: u64,
        /// Bytes that the file system has left for this user.
        free: u64,
    },

    /// The output can't be written. Nothing of it was kept.
    #[error("{}: {action} failed: {error}; nothing was kept", EscapedPath(path))]
    Write {
        /// The output.
        path: PathBuf,
        /// What was being done: `creating`, `writing`, `renaming` …
        action: &'static str,
        /// What the system says.
        error: io::Error,
    },
}

fn listed(files: &[String]) -> String {
    let shown: Vec<String> = files.iter().map(|file| Escaped(file.as_bytes()).to_string()).collect();
    shown.join(", ")
}

impl ConvertError {
    /// A parser's error, of a model by its name.
    pub(crate) fn parse(name: &str, error: ParserError) -> Self {
        Self::Parse { name: name.into(), error }
    }
}
