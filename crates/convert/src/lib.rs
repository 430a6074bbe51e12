#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod convert;
mod cores;
mod dtype;
mod error;
mod folder;
mod index;
mod model;
mod os;
mod output;
mod pipeline;
mod plan;
mod restore;
mod safetensors;
mod tile;
mod values;
mod verify;
mod weights;

pub use convert::{FloatDtype, PlanOptions, Values};
pub use dtype::Dtype;
pub use error::ConvertError;
pub use index::assemble;
pub use model::{Model, Part, SetFault, Sibling};
pub use os::free_space;
pub use output::Existing;
pub use pipeline::{CurrentShard, Report, RunOptions, Stop};
pub use plan::{INDEX_FILE, PartFacts, Piece, Plan, PlannedTensor, RESERVED_TENSOR, Recipe, Shard, Step};
pub use restore::restore;
pub use values::{Number, Stats};
pub use verify::{Comparison, Difference, TensorComparison, verify};
pub use weights::Weights;
