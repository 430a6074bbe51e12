#![doc = include_str!("../README.md")]
// `unsafe` has two doors: the block cast in `block`, which a macro builds for byte arrays only, and the
// instruction sets in `arch`. Everywhere else it is an error.
#![deny(unsafe_code)]

#[allow(unsafe_code, reason = "intrinsics that touch memory, and calls into code for a detected CPU")]
mod arch;
#[allow(unsafe_code, reason = "`bytemuck::Pod` for structs of byte arrays")]
mod block;
mod byte_order;
mod decode;
mod error;
mod float;
mod grids;
mod kernels;
mod target;

pub use decode::{Decoded, can_decode, decode, decode_with};
pub use error::DecodeError;
pub use float::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16, f64_to_bf16, f64_to_f16, f64_to_f32};
pub use gguf2st_gguf::{ByteOrder, GgmlType};
pub use half::{bf16, f16};
pub use kernels::Kernels;
pub use target::Target;
