//! From a model to a safetensors file: plan, make, finish.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use gguf2st_gguf::{Family, GgufFile, TensorInfo};
use gguf2st_source::Source;
use sha2::{Digest, Sha256};

use crate::dtype::Dtype;
use crate::error::ConvertError;
use crate::model::Model;
use crate::output::{Existing, Output};
use crate::plan::{Choice, Plan, SourceFacts, gguf_layout, hex};
use crate::tile::{Maker, tiles};

/// What becomes of a container's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Values {
    /// Floats and integers keep their dtype, quantised values become BF16.
    #[default]
    Auto,
    /// Every float and quantised value becomes this float dtype; integers stay integers.
    Floats(FloatDtype),
    /// Every byte is kept: quantised tensors stay blocks, and the container can be restored.
    Raw,
}

/// A float dtype that values can be decoded to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum FloatDtype {
    F32,
    F16,
    BF16,
}

impl From<FloatDtype> for Dtype {
    fn from(dtype: FloatDtype) -> Self {
        match dtype {
            FloatDtype::F32 => Self::F32,
            FloatDtype::F16 => Self::F16,
            FloatDtype::BF16 => Self::BF16,
        }
    }
}

/// What to convert to: all that a plan depends on beside the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanOptions {
    /// What becomes of the values.
    pub values: Values,
    /// Float and quantised tensors whose output name contains one of these become F32, whatever `values`
    /// says; without effect on [`Values::Raw`].
    pub keep_f32: Vec<String>,
}

/// How to carry a plan out. None of it changes a byte of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunOptions {
    /// Refuse finite values that become infinite in F16 or BF16.
    pub strict: bool,
    /// What may happen to a file that is there already.
    pub existing: Existing,
    /// Threads that make tiles; all cores where it is not said.
    pub threads: Option<NonZeroUsize>,
}

/// What a conversion did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Bytes of the file written.
    pub bytes: u64,
    /// Tensors in it.
    pub tensors: usize,
    /// Tensors in which finite values became infinite, and how many, in the order of the file.
    pub overflowed: Vec<(String, u64)>,
}

impl Model {
    /// Plans the conversion, from the head alone.
    ///
    /// # Errors
    ///
    /// [`ConvertError::Unsound`] where a check of the container fails, and whatever else the head shows to be
    /// impossible: reserved names, types without a decoder, sizes that overflow.
    pub fn plan(&self, options: &PlanOptions) -> Result<Plan, ConvertError> {
        plan(self.file(), &self.facts()?, options)
    }

    /// What plans say of the source.
    pub(crate) fn facts(&self) -> Result<SourceFacts, ConvertError> {
        // The head's last bytes are padding, which parsing did not ask for.
        let head = self.source().read(0..self.file().head_len())?;
        let name = self.source().name();
        let name = name.file_name().unwrap_or(name.as_os_str()).to_string_lossy().into_owned();
        Ok(SourceFacts { name, head_sha256: hex(&Sha256::digest(&head)) })
    }

    /// Carries out a plan of this model: a safetensors file at `path`. `progress` is told of the bytes written since it
    /// was last told, from any thread.
    ///
    /// The file appears when it is whole and durable; before that, and after an error, there is nothing.
    ///
    /// # Errors
    ///
    /// An output that can't be written; a source that can't be read or is not what was opened any more; with
    /// [`RunOptions::strict`], values that overflow.
    pub fn convert(
        &self,
        plan: &Plan,
        path: &Path,
        options: RunOptions,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Report, ConvertError> {
        let source = &**self.source();
        let output = Output::create(path, plan.bytes, options.existing, source)?;
        let head_len = plan.head.len() as u64;
        output.write_at(0, &plan.head)?;
        progress(head_len);

        let overflowed: Vec<AtomicU64> = plan.tensors.iter().map(|_| AtomicU64::new(0)).collect();
        let made = on_all_cores(options.threads, tiles(plan), |maker: &mut Maker, tile| {
            let tensor = &plan.tensors[tile.tensor];
            let mut view = Bytes::new();
            let (bytes, infinite) = maker.make(source, tensor, &tile, &mut view)?;
            if infinite > 0 {
                if options.strict {
                    let (tensor, dtype) = (tensor.name.clone(), tensor.dtype);
                    return Err(ConvertError::Overflowed { tensor, dtype });
                }
                overflowed[tile.tensor].fetch_add(infinite, Ordering::Relaxed);
            }
            output.write_at(head_len + tensor.offsets.start + tile.offset, bytes)?;
            source.drop_range(tile.source);
            progress(tile.bytes);
            Ok(())
        });
        blame(&[source], made)?;
        output.finish()?;

        let overflowed =
            plan.tensors.iter().zip(overflowed).map(|(tensor, count)| (tensor.name.clone(), count.into_inner()));
        Ok(Report {
            bytes: plan.bytes,
            tensors: plan.tensors.len(),
            overflowed: overflowed.filter(|(_, count)| *count > 0).collect(),
        })
    }
}

/// Plans the layout `gguf` of a container.
fn plan<H: AsRef<[u8]>>(file: &GgufFile<H>, facts: &SourceFacts, options: &PlanOptions) -> Result<Plan, ConvertError> {
    let kept = |name: &str| options.keep_f32.iter().any(|part| !part.is_empty() && name.contains(part.as_str()));
    let choose = |tensor: &TensorInfo<'_>, name: &str| match (options.values, tensor.ggml_type.family()) {
        (Values::Raw, _) | (_, Some(Family::Integer) | None) => Choice::AsStored,
        _ if kept(name) => Choice::Floats(Dtype::F32),
        (Values::Floats(dtype), _) => Choice::Floats(dtype.into()),
        (Values::Auto, Some(Family::Float)) => Choice::AsStored,
        (Values::Auto, Some(Family::Quantized)) => Choice::Floats(Dtype::BF16),
    };
    gguf_layout(file, facts, options.values == Values::Raw, choose)
}

/// What really went wrong: where a source is not what was opened any more, that, and not what it led to.
pub(crate) fn blame<T>(sources: &[&dyn Source], result: Result<T, ConvertError>) -> Result<T, ConvertError> {
    for source in sources {
        source.intact()?;
    }
    result
}

/// Runs jobs on all cores (or `threads` of them) until there are none or one fails; the first failure is
/// given. Each thread has a worker of its own.
pub(crate) fn on_all_cores<J: Send, W: Default>(
    threads: Option<NonZeroUsize>,
    jobs: impl Iterator<Item = J> + Send,
    run: impl Fn(&mut W, J) -> Result<(), ConvertError> + Sync,
) -> Result<(), ConvertError> {
    let threads = threads.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let queue = Mutex::new((Some(jobs), None));
    let lock = || queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let next = || lock().0.as_mut().and_then(Iterator::next);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut worker = W::default();
                while let Some(job) = next() {
                    if let Err(error) = run(&mut worker, job) {
                        let (jobs, failure) = &mut *lock();
                        *jobs = None;
                        failure.get_or_insert(error);
                    }
                }
            });
        }
    });
    match queue.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).1 {
        None => Ok(()),
        Some(error) => Err(error),
    }
}
