//! From a model to safetensors: plan, make, finish.

use std::path::Path;

use gguf2st_gguf::{Family, TensorInfo};
use sha2::{Digest, Sha256};

use crate::dtype::Dtype;
use crate::error::ConvertError;
use crate::folder;
use crate::model::{Model, Part};
use crate::output::Output;
use crate::pipeline::{self, Report, RunOptions};
use crate::plan::{Choice, PartFacts, PartOfPlan, Plan, gguf_layout};

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
    /// Bytes of tensors a file at the most, in a folder of files; `None` for one file.
    pub shard_size: Option<u64>,
}

impl Model {
    /// Plans the conversion, from heads alone.
    ///
    /// # Errors
    ///
    /// [`ConvertError::Set`] for a broken split set, [`ConvertError::Unsound`] where a check of a container
    /// fails, and whatever else the heads show to be impossible: reserved names, types without a decoder, sizes
    /// that overflow.
    pub fn plan(&self, options: &PlanOptions) -> Result<Plan, ConvertError> {
        let kept = |name: &str| options.keep_f32.iter().any(|part| !part.is_empty() && name.contains(part.as_str()));
        let choose = |tensor: &TensorInfo<'_>, name: &str| match (options.values, tensor.ggml_type.family()) {
            (Values::Raw, _) | (_, Some(Family::Integer) | None) => Choice::AsStored,
            _ if kept(name) => Choice::Floats(Dtype::F32),
            (Values::Floats(dtype), _) => Choice::Floats(dtype.into()),
            (Values::Auto, Some(Family::Float)) => Choice::AsStored,
            (Values::Auto, Some(Family::Quantized)) => Choice::Floats(Dtype::BF16),
        };
        self.plan_by(options.values == Values::Raw, options.shard_size, choose)
    }

    /// Plans the layout `gguf` of all parts.
    pub(crate) fn plan_by(
        &self,
        restorable: bool,
        shard_size: Option<u64>,
        choose: impl Fn(&TensorInfo<'_>, &str) -> Choice,
    ) -> Result<Plan, ConvertError> {
        if let Some(fault) = self.fault() {
            return Err(ConvertError::Set { name: self.source().name().into(), fault: fault.clone() });
        }
        let facts = self.parts().iter().map(Part::facts).collect::<Result<Vec<_>, _>>()?;
        let parts = self.parts().iter().zip(&facts).map(|(part, facts)| PartOfPlan { file: part.file(), facts });
        gguf_layout(&parts.collect::<Vec<_>>(), restorable, shard_size, choose)
    }

    /// Carries out a plan of this model. A plan of one file makes that file at `path`; one of shards makes a
    /// folder, or goes on with one that was begun and interrupted. `progress` is told of
    /// the bytes written since it was last told, from any thread.
    ///
    /// A file appears when it is whole and durable; before that, and after an error, there is nothing.
    ///
    /// # Errors
    ///
    /// An output that can't be written; a source that can't be read or is not what was opened any more; with
    /// [`RunOptions::strict`], values that overflow; [`ConvertError::Interrupted`].
    pub fn convert(
        &self,
        plan: &Plan,
        path: &Path,
        options: &RunOptions,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Report, ConvertError> {
        match &plan.shards[..] {
            [shard] if plan.shard_size.is_none() => {
                let sources: Vec<_> = self.parts().iter().map(|part| &**part.source()).collect();
                let output = Output::create(path, shard.bytes(), options.existing, &sources)?;
                let made = pipeline::make(self, shard, &output, options, false, progress)?;
                output.finish()?;
                Ok(Report {
                    bytes: shard.bytes(),
                    tensors: shard.tensors.len(),
                    files: 1,
                    kept: 0,
                    overflowed: made.overflowed,
                })
            }
            _ => folder::convert(self, plan, path, options, progress),
        }
    }
}

impl Part {
    /// What a plan says of it.
    fn facts(&self) -> Result<PartFacts, ConvertError> {
        let len = self.file().head_len();
        let mut hash = Sha256::new();
        let given = self.file().given();
        let given = usize::try_from(len).ok().and_then(|len| given.get(..len)).unwrap_or(given);
        hash.update(given);
        // The rest is padding, which parsing did not ask for and a hostile alignment can make long.
        let mut at = given.len() as u64;
        while at < len {
            let end = len.min(at + (1 << 20));
            hash.update(self.source().read(at..end)?);
            at = end;
        }
        Ok(PartFacts::new(self.file_name(), self.file().container_len(), hash))
    }
}
