//! GGUF to safetensors and back, streaming, in bounded memory.
#![forbid(unsafe_code)]

mod error;
mod model;

pub use error::ConvertError;
pub use model::Model;
