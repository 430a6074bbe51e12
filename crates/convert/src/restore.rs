//! The way back: the containers that a raw conversion was made from, byte for byte.
//!
//! Their heads lie in the reserved tensor. Planning their conversion again tells where every byte went;
//! restoring follows that plan backwards.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use gguf2st_gguf::limits::MAX_HEAD;
use gguf2st_gguf::{Escaped, GgufFile, parse_gguf};
use gguf2st_source::Source;
use sha2::{Digest, Sha256};

use crate::cores::on_all_cores;
use crate::error::ConvertError;
use crate::output::{Output, cannot, refuse_full};
use crate::pipeline::RunOptions;
use crate::plan::{Choice, PartFacts, PartOfPlan, Plan, RESERVED_TENSOR, ReservedPart, Step, gguf_layout, sum};
use crate::tile::{reverse_each, tiles};
use crate::weights::Weights;

/// Restores what a raw conversion was made from: one container to the file `path`, a split set to files in the
/// folder `path`, by their own names. Gives how many there are and their bytes. `progress` is told of the bytes
/// written since it was last told.
///
/// # Errors
///
/// [`ConvertError::NotRestorable`] where the files are not those of a raw conversion or were changed since; the
/// errors of reading and writing as for a conversion.
pub fn restore(
    weights: &Weights,
    path: &Path,
    options: &RunOptions,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<(usize, u64), ConvertError> {
    let parts = parts(weights)?;
    let plan = plan(weights, &parts)?;
    let bytes = sum(parts.iter().map(|(reserved, _)| reserved.bytes))?;
    let inputs: Vec<&dyn Source> = weights.sources().collect();
    let create = |path: &Path, bytes| Output::create(path, bytes, options.existing, &inputs);
    let outputs = match &parts[..] {
        [(reserved, _)] => vec![create(path, reserved.bytes)?],
        set => {
            fs::create_dir_all(path).map_err(|error| cannot(path, "creating the folder", error))?;
            refuse_full(path, bytes)?;
            set.iter()
                .map(|(reserved, _)| create(&path.join(&reserved.name), reserved.bytes))
                .collect::<Result<_, _>>()?
        }
    };
    let jobs = plan.tensors().flat_map(|tensor| tiles(tensor).map(move |tile| (tensor, tile)));
    let restored = on_all_cores(options.threads, jobs, |buffer: &mut Vec<u8>, (tensor, tile)| {
        options.stop.check()?;
        buffer.resize(usize::try_from(tile.bytes).map_err(|_| ConvertError::Overflow)?, 0);
        let stored = &weights.tensors[&tensor.name];
        weights.file_of(stored).read_into(stored.range.start + tile.offset, buffer)?;
        if let Step::Swap { width } = tensor.recipe.step {
            reverse_each(buffer, usize::try_from(width).unwrap_or(1));
        }
        outputs[tile.source.part].write_at(tile.source.range.start, buffer)?;
        progress(tile.bytes);
        Ok(())
    });
    weights.intact()?;
    restored?;
    for output in outputs {
        output.finish()?;
    }
    Ok((parts.len(), bytes))
}

fn not(weights: &Weights, reason: impl Into<String>) -> ConvertError {
    ConvertError::NotRestorable { name: weights.name().into(), reason: reason.into() }
}

type Parts = Vec<(ReservedPart, GgufFile<Bytes>)>;

/// The containers' heads, from the reserved tensor.
fn parts(weights: &Weights) -> Result<Parts, ConvertError> {
    let reserved = weights.tensors.get(RESERVED_TENSOR).ok_or_else(|| {
        not(weights, format!("it has no tensor {RESERVED_TENSOR}; only `convert --dtype raw` writes one"))
    })?;
    let layout = weights.metadata.get("gguf2st.reserved");
    let layout = layout.ok_or_else(|| not(weights, "its __metadata__ lacks gguf2st.reserved"))?;
    let layout: Vec<ReservedPart> = serde_json::from_str(layout)
        .map_err(|error| not(weights, format!("gguf2st.reserved is not right: {error}")))?;
    if layout.is_empty() {
        return Err(not(weights, "gguf2st.reserved names no container"));
    }
    let several = layout.len() > 1;
    let (mut parts, mut at) = (Vec::new(), reserved.range.start);
    for part in layout {
        // A name from a file must not lead out of the folder.
        if several && (Path::new(&part.name).file_name() != Some(part.name.as_ref()) || part.name.contains('\\')) {
            return Err(not(weights, format!("{:?} is no file name", Escaped(part.name.as_bytes()))));
        }
        if parts.iter().any(|(other, _): &(ReservedPart, _)| other.name == part.name) {
            return Err(not(weights, format!("two containers are called {:?}", Escaped(part.name.as_bytes()))));
        }
        let end = at.saturating_add(part.head);
        if part.head > MAX_HEAD || end > reserved.range.end {
            return Err(not(weights, format!("{RESERVED_TENSOR} does not hold the heads that it should")));
        }
        let head = weights.file_of(reserved).read(at..end)?;
        if PartFacts::new(String::new(), 0, Sha256::new_with_prefix(&head)).head_sha256 != part.head_sha256 {
            return Err(not(weights, format!("a head in {RESERVED_TENSOR} is not that of gguf2st.reserved")));
        }
        let file = parse_gguf(head, part.bytes)
            .map_err(|error| not(weights, format!("the head in {RESERVED_TENSOR}: {error}")))?;
        at = end.saturating_add(part.gaps);
        parts.push((part, file));
    }
    Ok(parts)
}

/// The plan that the files were made by, which every tensor must fit.
fn plan(weights: &Weights, parts: &Parts) -> Result<Plan, ConvertError> {
    let facts: Vec<_> = parts
        .iter()
        .map(|(part, _)| PartFacts {
            name: part.name.clone(),
            bytes: part.bytes,
            head_sha256: part.head_sha256.clone(),
        })
        .collect();
    let planned: Vec<_> = parts.iter().zip(&facts).map(|((_, file), facts)| PartOfPlan { file, facts }).collect();
    let plan =
        gguf_layout(&planned, true, None, |_, _| Choice::AsStored).map_err(|error| not(weights, error.to_string()))?;
    for tensor in plan.tensors() {
        if !weights.tensors.get(&tensor.name).is_some_and(|stored| stored.is_kind(tensor)) {
            let name = Escaped(tensor.name.as_bytes());
            let (dtype, shape) = (tensor.dtype, &tensor.shape);
            return Err(not(weights, format!("tensor {name:?} of {dtype} {shape:?} is missing or was changed")));
        }
    }
    Ok(plan)
}
