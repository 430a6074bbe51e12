//! The way back: the container that a raw conversion was made from, byte for byte.
//!
//! The head lies in the reserved tensor. Planning its conversion again tells where every byte went; restoring
//! follows the plan backwards.

use std::num::NonZeroUsize;
use std::path::Path;

use gguf2st_gguf::{Escaped, GgufFile, parse_gguf};
use gguf2st_source::Source;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::convert::{blame, on_all_cores};
use crate::error::ConvertError;
use crate::output::{Existing, Output};
use crate::plan::{Choice, Plan, RESERVED_TENSOR, SourceFacts, Step, gguf_layout, hex};
use crate::safetensors::{Opened, Stored};
use crate::tile::{reverse_each, tiles};

#[derive(Deserialize)]
struct Reserved {
    head: u64,
}

/// Restores a container to `path` from a safetensors file that a raw conversion wrote. Gives its length in
/// bytes. `progress` is told of the bytes written since it was last told.
///
/// # Errors
///
/// [`ConvertError::NotSafetensors`] and [`ConvertError::NotRestorable`] where the file is not one of those or
/// was changed since; the errors of reading and writing as for a conversion.
pub fn restore(
    source: &dyn Source,
    path: &Path,
    existing: Existing,
    threads: Option<NonZeroUsize>,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<u64, ConvertError> {
    let opened = Opened::open(source)?;
    let file = head(source, &opened)?;
    let plan = plan(source, &opened, &file)?;
    let stored = plan
        .tensors
        .iter()
        .map(|tensor| {
            let stored = opened.tensors.get(&tensor.name).filter(|stored| {
                stored.dtype == tensor.dtype.name()
                    && stored.shape == tensor.shape
                    && stored.range.end - stored.range.start == tensor.bytes()
            });
            stored.ok_or_else(|| {
                let name = Escaped(tensor.name.as_bytes());
                let (dtype, shape) = (tensor.dtype, &tensor.shape);
                not(source, format!("tensor {name:?} of {dtype} {shape:?} is missing or was changed"))
            })
        })
        .collect::<Result<Vec<&Stored>, _>>()?;

    let output = Output::create(path, file.container_len(), existing, source)?;
    let restored = on_all_cores(threads, tiles(&plan), |buffer: &mut Vec<u8>, tile| {
        buffer.resize(usize::try_from(tile.bytes).map_err(|_| ConvertError::Overflow)?, 0);
        source.read_into(stored[tile.tensor].range.start + tile.offset, buffer)?;
        if let Step::Swap { width } = plan.tensors[tile.tensor].recipe.step {
            reverse_each(buffer, usize::try_from(width).unwrap_or(1));
        }
        output.write_at(tile.source.start, buffer)?;
        progress(tile.bytes);
        Ok(())
    });
    blame(&[source], restored)?;
    output.finish()?;
    Ok(file.container_len())
}

fn not(source: &dyn Source, reason: impl Into<String>) -> ConvertError {
    ConvertError::NotRestorable { name: source.name().into(), reason: reason.into() }
}

/// The container's head, from the reserved tensor.
fn head(source: &dyn Source, opened: &Opened) -> Result<GgufFile<bytes::Bytes>, ConvertError> {
    let reserved = opened.tensors.get(RESERVED_TENSOR).ok_or_else(|| {
        not(source, format!("it has no tensor {RESERVED_TENSOR}; only `convert --dtype raw` writes one"))
    })?;
    let field =
        |key: &str| opened.metadata.get(key).ok_or_else(|| not(source, format!("its __metadata__ lacks {key}")));
    let container_len = field("gguf2st.source_bytes")?
        .parse::<u64>()
        .map_err(|_| not(source, "gguf2st.source_bytes is not a number"))?;
    let layout: Reserved = serde_json::from_str(field("gguf2st.reserved")?)
        .map_err(|error| not(source, format!("gguf2st.reserved is not right: {error}")))?;
    let range = reserved.range.start..reserved.range.start.saturating_add(layout.head);
    if range.end > reserved.range.end {
        return Err(not(source, format!("{RESERVED_TENSOR} is shorter than the head of {} bytes", layout.head)));
    }
    let head = source.read(range)?;
    if hex(&Sha256::digest(&head)) != *field("gguf2st.head_sha256")? {
        return Err(not(source, format!("the head in {RESERVED_TENSOR} is not that of gguf2st.head_sha256")));
    }
    parse_gguf(head, container_len).map_err(|error| not(source, format!("the head in {RESERVED_TENSOR}: {error}")))
}

/// The plan that the file was made by.
fn plan(source: &dyn Source, opened: &Opened, file: &GgufFile<bytes::Bytes>) -> Result<Plan, ConvertError> {
    let fact = |key: &str| opened.metadata.get(key).cloned().unwrap_or_default();
    let facts = SourceFacts { name: fact("gguf2st.source"), head_sha256: fact("gguf2st.head_sha256") };
    gguf_layout(file, &facts, true, |_, _| Choice::AsStored).map_err(|error| not(source, error.to_string()))
}
