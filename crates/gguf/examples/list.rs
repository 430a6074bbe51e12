//! Lists the tensors of a GGUF file: `cargo run -p gguf2st-gguf --example list -- MODEL.gguf`.

use std::io::Write as _;

use gguf2st_gguf::{Escaped, parse_gguf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: list MODEL.gguf")?;
    let container = std::fs::read(path)?;
    let file = parse_gguf(&container, container.len() as u64)?;
    let mut out = std::io::stdout().lock();
    for tensor in file.tensors().iter() {
        let bytes = file.tensor_bytes(&container, &tensor)?;
        writeln!(out, "{} {:?} {} {} bytes", Escaped(tensor.name), tensor.shape(), tensor.ggml_type, bytes.len())?;
    }
    Ok(())
}
