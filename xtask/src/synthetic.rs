//! Models of any size with nothing in them but their shape: for measuring what grows with a model and what does
//! not.

use std::fs::File;
use std::io::{BufWriter, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use gguf2st_gguf::GgmlType;
use gguf2st_gguf::write::Builder;

use crate::Result;

/// Values a row and rows a tensor: 9 MiB of Q4_K.
const DIMS: [u64; 2] = [4096, 4096];

/// Writes a model of about `bytes` bytes, of Q4_K tensors whose blocks repeat.
pub(crate) fn write(path: &Path, bytes: u64) -> Result<()> {
    let block = block();
    let tensor_bytes = DIMS[0] * DIMS[1] / 256 * block.len() as u64;
    let mut builder = Builder::new()
        .metadata("general.architecture", "llama")
        .metadata("general.name", "synthetic")
        .metadata("general.quantization_version", 2_u32);
    for layer in 0..(bytes / tensor_bytes).max(1) {
        builder = builder.tensor(format!("blk.{layer}.ffn_up.weight"), &DIMS, GgmlType::Q4_K);
    }
    let head = builder.head()?;
    let (offsets, _) = builder.offsets()?;
    let tensor: Vec<u8> = block.iter().copied().cycle().take(usize::try_from(tensor_bytes)?).collect();
    let mut file = BufWriter::new(File::create(path)?);
    file.write_all(&head)?;
    for offset in offsets {
        file.seek(SeekFrom::Start(head.len() as u64 + offset))?;
        file.write_all(&tensor)?;
    }
    Ok(file.into_inner()?.sync_all()?)
}

/// A block of Q4_K with small scales and every quant: finite values of both signs.
fn block() -> [u8; 144] {
    let mut block = [0; 144];
    block[..4].copy_from_slice(&[0x00, 0x20, 0x00, 0x1c]); // d and dmin, as f16
    for (index, byte) in block[4..].iter_mut().enumerate() {
        *byte = u8::try_from(index * 37 % 251).unwrap_or(0);
    }
    block
}
