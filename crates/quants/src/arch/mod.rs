//! One module an instruction set; all `unsafe` but the block cast is in here.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
