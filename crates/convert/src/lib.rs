#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod convert;
mod dtype;
mod error;
mod model;
mod os;
mod output;
mod plan;
mod restore;
mod safetensors;
mod tile;
mod values;
mod verify;

pub use convert::{FloatDtype, PlanOptions, Report, RunOptions, Values};
pub use dtype::Dtype;
pub use error::ConvertError;
pub use model::Model;
pub use output::Existing;
pub use plan::{Plan, PlannedTensor, RESERVED_TENSOR, Recipe, SourceFacts, Step};
pub use restore::restore;
pub use values::{Number, Stats};
pub use verify::{Comparison, Difference, TensorComparison, verify};
