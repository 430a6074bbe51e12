//! What the benchmarks share: the models to open, and the floor to be held against.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

/// The models to open: the real one if `cargo xtask sample` has fetched it, and the vocabularies that lie in
/// the repository. `GGUF2ST_BENCH_MODELS` adds files, separated as in `PATH`.
///
/// # Panics
///
/// If a file named is not there: a benchmark of nothing measures nothing.
pub fn models() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let real = root.join("models/gemma-3-270m-q4_k_m.gguf");
    if !real.exists() {
        eprintln!("not measured here: the real model; `cargo xtask sample` fetches it");
    }
    let mut models: Vec<PathBuf> = std::iter::once(real).filter(|path| path.exists()).collect();
    for entry in std::fs::read_dir(root.join("testdata/models")).expect("testdata/models") {
        let path = entry.expect("a readable folder").path();
        if path.extension().is_some_and(|extension| extension == "gguf") {
            models.push(path);
        }
    }
    models.extend(std::env::var_os("GGUF2ST_BENCH_MODELS").iter().flat_map(std::env::split_paths));
    models.sort();
    for path in &models {
        assert!(path.is_file(), "{} is not there", path.display());
    }
    models
}

/// The least that opening a little-endian container of version 2 or 3 can cost: following every length
/// prefix of its head, checking nothing but the ends, keeping nothing. Gives the position behind the index.
pub fn walk(bytes: &[u8]) -> usize {
    let u32_at = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
    let u64_at = |at: usize| usize::try_from(u64::from_le_bytes(*bytes[at..].first_chunk().unwrap())).unwrap();
    let size = |value_type: u32| match value_type {
        0 | 1 | 7 => 1,
        2 | 3 => 2,
        4..=6 => 4,
        _ => 8,
    };
    let (tensors, entries) = (u64_at(8), u64_at(16));
    let mut at = 24;
    for _ in 0..entries {
        at += 8 + u64_at(at);
        let value_type = u32_at(at);
        at += 4;
        match value_type {
            8 => at += 8 + u64_at(at),
            9 => {
                let (element, count) = (u32_at(at), u64_at(at + 4));
                at += 12;
                if element == 8 {
                    for _ in 0..count {
                        at += 8 + u64_at(at);
                    }
                } else {
                    at += count * size(element);
                }
            }
            fixed => at += size(fixed),
        }
    }
    for _ in 0..tensors {
        at += 8 + u64_at(at);
        at += 4 + 8 * u32_at(at) as usize + 4 + 8;
    }
    at
}
