//! The index of a folder of shards, as Hugging Face's tools write it; and shards from several machines,
//! assembled.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use gguf2st_gguf::Escaped;
use gguf2st_source::{FileSource, Source as _};
use serde::Serialize;

use crate::error::ConvertError;
use crate::folder::Run;
use crate::output::{Existing, Output, names};
use crate::plan::{INDEX_FILE, Plan, is_output_name};
use crate::weights::Weights;

#[derive(Serialize)]
struct Index<'a> {
    metadata: Totals,
    weight_map: BTreeMap<&'a str, &'a str>,
}

#[derive(Serialize)]
struct Totals {
    total_size: u64,
}

impl Index<'_> {
    fn bytes(&self) -> Vec<u8> {
        // Strings and a number into memory: serialising them can't fail.
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}

/// The index of a plan.
pub(crate) fn bytes(plan: &Plan) -> Vec<u8> {
    let weights = plan.shards.iter().flat_map(|shard| shard.tensors.iter().map(move |tensor| (tensor, shard)));
    let total_size = plan.tensors().map(crate::PlannedTensor::bytes).sum();
    let weight_map = weights.map(|(tensor, shard)| (tensor.name.as_str(), shard.file.as_str())).collect();
    Index { metadata: Totals { total_size }, weight_map }.bytes()
}

/// Writes the index of a plan where it is not there yet, last of all its files; a single shard needs none.
pub(crate) fn write(plan: &Plan, folder: &Path) -> Result<(), ConvertError> {
    if plan.shards.len() == 1 || is_there(plan, folder) { Ok(()) } else { write_bytes(folder, &bytes(plan)) }
}

/// Whether a folder has the index of a plan.
pub(crate) fn is_there(plan: &Plan, folder: &Path) -> bool {
    plan.shards.len() > 1 && found(folder).is_some_and(|found| found == bytes(plan))
}

/// The index that is there, if one is.
fn found(folder: &Path) -> Option<Bytes> {
    let file = FileSource::open(folder.join(INDEX_FILE)).ok()?;
    file.read(0..file.len()).ok()
}

fn write_bytes(folder: &Path, bytes: &[u8]) -> Result<(), ConvertError> {
    let output = Output::create(&folder.join(INDEX_FILE), bytes.len() as u64, Existing::Replace, &[])?;
    output.write_at(0, bytes)?;
    output.finish()
}

/// Checks that a folder holds all shards of one plan, each whole, and writes the index where it is not there. Gives
/// how many shards and tensors there are.
///
/// # Errors
///
/// [`ConvertError::NotAssembled`] with what is missing or does not fit; the errors of reading and writing.
pub fn assemble(folder: &Path) -> Result<(usize, usize), ConvertError> {
    let not = |reason: String| ConvertError::NotAssembled { path: folder.into(), reason };
    let run = Run::lock(folder)?;
    if run.is_begun() {
        return Err(not("a conversion into it was interrupted; finish it with the same command first".to_owned()));
    }
    let assembled = assemble_locked(folder, &not);
    run.remove()?;
    assembled
}

fn assemble_locked(folder: &Path, not: &dyn Fn(String) -> ConvertError) -> Result<(usize, usize), ConvertError> {
    let files: Vec<String> =
        names(folder)?.into_iter().filter(|name| is_output_name(name) && name != INDEX_FILE).collect();
    let Some(first) = files.first() else { return Err(not("it holds no shards".to_owned())) };
    let count: usize = match &files[..] {
        [single] if single == "model.safetensors" => 1,
        _ => first.rsplit_once("-of-").and_then(|(_, rest)| rest.get(..5)?.parse().ok()).unwrap_or_default(),
    };
    let expected = |number: usize| match count {
        1 if first == "model.safetensors" => first.clone(),
        _ => format!("model-{number:05}-of-{count:05}.safetensors"),
    };
    let missing: Vec<String> = (1..=count).map(expected).filter(|name| !files.contains(name)).collect();
    if let [name, rest @ ..] = &missing[..] {
        let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        return Err(not(format!("{name} is missing{more}")));
    }
    if let Some(extra) = files.iter().find(|file| !(1..=count).any(|number| expected(number) == **file)) {
        return Err(not(format!("{extra} is not one of {count} shards")));
    }
    let (mut plan, mut total_size, mut weight_map) = (None, 0, BTreeMap::new());
    for file in &files {
        let shard = Weights::open(vec![Arc::new(FileSource::open(folder.join(file))?)])?;
        // A single file needs no index, and so none of the marks that shards have in common.
        let of = shard.metadata.get("gguf2st.plan").cloned();
        if of.is_none() && count > 1 {
            return Err(not(format!("{file} was not made by `convert --shard-size`")));
        }
        if *plan.get_or_insert(of.clone()) != of {
            return Err(not(format!("{file} is of another plan than {first}")));
        }
        for (name, tensor) in shard.tensors {
            total_size += tensor.range.end - tensor.range.start;
            if let Some(other) = weight_map.insert(name.clone(), file.as_str()) {
                return Err(not(format!("tensor {:?} is in {other} and in {file}", Escaped(name.as_bytes()))));
            }
        }
    }
    let tensors = weight_map.len();
    if count > 1 {
        let weight_map = weight_map.iter().map(|(name, file)| (name.as_str(), *file)).collect();
        let bytes = Index { metadata: Totals { total_size }, weight_map }.bytes();
        match found(folder) {
            None => write_bytes(folder, &bytes)?,
            Some(there) if there == bytes => {}
            Some(_) => return Err(not(format!("{INDEX_FILE} is there and of other shards; remove it first"))),
        }
    }
    Ok((count, tensors))
}
