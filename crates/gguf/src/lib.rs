//! GGUF containers as typed, zero-copy values.
#![forbid(unsafe_code)]

mod types;

pub use types::{Family, GgmlType, UnknownValueTypeId, ValueType};
