//! One folder an instruction set; all `unsafe` but the block cast is in here.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(all(target_arch = "aarch64", target_endian = "little", target_feature = "neon"))]
pub(crate) mod neon;
#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little", target_feature = "neon")))]
mod quants;
