//! Safetensors files held against the model that it should come from: every tensor, every byte.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Mutex;

use gguf2st_gguf::{Family, TensorInfo};
use sha2::{Digest, Sha256};

use crate::cores::on_all_cores;
use crate::dtype::Dtype;
use crate::error::ConvertError;
use crate::model::{Model, Reader};
use crate::plan::{Choice, PlannedTensor, RESERVED_TENSOR, hex};
use crate::tile::{Maker, tiles};
use crate::weights::Weights;

/// How the file and the model compare.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Comparison {
    /// The tensors that both have, in the order of a conversion's bytes.
    pub tensors: Vec<TensorComparison>,
    /// Names of tensors that the model has and the file lacks.
    pub missing: Vec<String>,
    /// Names of tensors that the file has and the model lacks.
    pub extra: Vec<String>,
}

impl Comparison {
    /// Whether the file is what the model converts to.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.missing.is_empty() && self.extra.is_empty() && self.tensors.iter().all(TensorComparison::is_equal)
    }
}

/// How one tensor compares.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TensorComparison {
    /// Its name.
    pub name: String,
    /// Its dtype in the file.
    pub dtype: String,
    /// Its shape in the file, row-major.
    pub shape: Vec<u64>,
    /// SHA-256 of its bytes in the file, in hexadecimal.
    pub sha256: String,
    /// How it differs, if it does.
    pub difference: Option<Difference>,
}

impl TensorComparison {
    /// Whether it is what the model's tensor converts to.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.difference.is_none()
    }
}

/// The first way in which a tensor differs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// Its dtype or shape; what the model's tensor converts to.
    Kind {
        /// The dtype expected.
        dtype: Dtype,
        /// The shape expected.
        shape: Vec<u64>,
    },
    /// Its bytes.
    Bytes {
        /// The first value that differs, counted in row-major order.
        index: u64,
        /// The file's bytes of it.
        found: Vec<u8>,
        /// The model's bytes of it.
        expected: Vec<u8>,
        /// SHA-256 of the bytes expected, in hexadecimal.
        sha256: String,
    },
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Kind { dtype, shape } => write!(f, "{dtype} {shape:?} is expected"),
            Self::Bytes { index, found, expected, .. } => {
                write!(f, "value {index} is 0x{}, 0x{} is expected (bytes in file order)", hex(found), hex(expected))
            }
        }
    }
}

/// Compares safetensors files with the model that it should come from. Each tensor is expected in the dtype
/// that the files have it in, where a conversion could have written that. `progress` is told of the bytes
/// compared since it was last told.
///
/// # Errors
///
/// Those of reading either, and of planning the model's conversion. A difference is no error.
pub fn verify(
    weights: &Weights,
    model: &Model,
    threads: Option<NonZeroUsize>,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Comparison, ConvertError> {
    let choose = |tensor: &TensorInfo<'_>, name: &str| {
        let dtype = weights.tensors.get(name).map(|stored| stored.dtype.as_str());
        let float = [Dtype::F32, Dtype::F16, Dtype::BF16].into_iter().find(|float| dtype == Some(float.name()));
        match (float, tensor.ggml_type.family()) {
            (Some(float), Some(Family::Float | Family::Quantized)) => Choice::Floats(float),
            _ => Choice::AsStored,
        }
    };
    let plan = model.plan_by(weights.tensors.contains_key(RESERVED_TENSOR), None, choose)?;

    let (present, missing): (Vec<_>, Vec<_>) =
        plan.tensors().partition(|tensor| weights.tensors.contains_key(&tensor.name));
    let planned: BTreeSet<&str> = plan.tensors().map(|tensor| tensor.name.as_str()).collect();
    let extra = weights.tensors.keys().filter(|name| !planned.contains(name.as_str())).cloned().collect();

    let compared = Mutex::new(vec![None; present.len()]);
    let done = on_all_cores(threads, present.iter().enumerate(), |worker: &mut Worker, (position, tensor)| {
        let comparison = worker.compare(weights, model, tensor, progress)?;
        compared.lock().unwrap_or_else(std::sync::PoisonError::into_inner)[position] = Some(comparison);
        Ok(())
    });
    weights.intact()?;
    model.intact()?;
    done?;
    let compared = compared.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(Comparison {
        tensors: compared.into_iter().flatten().collect(),
        missing: missing.into_iter().map(|tensor| tensor.name.clone()).collect(),
        extra,
    })
}

#[derive(Default)]
struct Worker {
    reader: Reader,
    maker: Maker,
    found: Vec<u8>,
}

impl Worker {
    fn compare(
        &mut self,
        weights: &Weights,
        model: &Model,
        tensor: &PlannedTensor,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<TensorComparison, ConvertError> {
        let stored = &weights.tensors[&tensor.name];
        let output = weights.file_of(stored);
        let same_kind = stored.is_kind(tensor);
        let (mut found_hash, mut expected_hash) = (Sha256::new(), Sha256::new());
        let mut first = None;
        if same_kind {
            for tile in tiles(tensor) {
                let source = self.reader.read(model, &tile.source)?;
                let (expected, _) = self.maker.make(tensor, &tile, source)?;
                self.found.resize(expected.len(), 0);
                output.read_into(stored.range.start + tile.offset, &mut self.found)?;
                found_hash.update(&self.found);
                if expected != self.found && first.is_none() {
                    first = first_difference(tensor.dtype, tile.offset, &self.found, expected);
                }
                if first.is_some() {
                    expected_hash.update(expected);
                }
                progress(tile.bytes);
            }
        } else {
            let mut at = stored.range.start;
            while at < stored.range.end {
                let len = (stored.range.end - at).min(1 << 18);
                self.found.resize(usize::try_from(len).map_err(|_| ConvertError::Overflow)?, 0);
                output.read_into(at, &mut self.found)?;
                found_hash.update(&self.found);
                progress(len);
                at += len;
            }
        }
        let difference = match first {
            _ if !same_kind => Some(Difference::Kind { dtype: tensor.dtype, shape: tensor.shape.clone() }),
            None => None,
            Some((index, found, expected)) => {
                Some(Difference::Bytes { index, found, expected, sha256: hex(&expected_hash.finalize()) })
            }
        };
        Ok(TensorComparison {
            name: tensor.name.clone(),
            dtype: stored.dtype.clone(),
            shape: stored.shape.clone(),
            sha256: hex(&found_hash.finalize()),
            difference,
        })
    }
}

/// The first value that differs in a tile at `offset` of its tensor: its index, and its bytes on either side.
fn first_difference(dtype: Dtype, offset: u64, found: &[u8], expected: &[u8]) -> Option<(u64, Vec<u8>, Vec<u8>)> {
    let size = usize::try_from(dtype.size()).ok()?;
    let values = found.chunks(size).zip(expected.chunks(size));
    let (index, (found, expected)) = values.enumerate().find(|(_, (found, expected))| found != expected)?;
    Some((offset / dtype.size() + index as u64, found.to_vec(), expected.to_vec()))
}
