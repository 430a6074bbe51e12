//! Containers to convert, and ways to convert them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf2st_convert::{ConvertError, Existing, Model, PlanOptions, Report, RunOptions, Values};
use gguf2st_gguf::write::Builder;
use gguf2st_gguf::{ByteOrder, GgmlType};
use gguf2st_source::{FileSource, MmapSource, Source};
use tempfile::TempDir;

pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// The files of the corpus that lies in the repository.
pub(crate) fn corpus() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/corpus/files");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 300, "{} files in {}", files.len(), folder.display());
    files
}

/// A container with a tensor of each kind, bytes chosen so that values are finite and differ.
pub(crate) fn mixed(order: ByteOrder) -> Vec<u8> {
    let builder = Builder::new()
        .format(3, order)
        .metadata("general.architecture", "llama")
        .metadata("general.name", "mixed \u{1f999}")
        .metadata("general.quantization_version", 2_u32)
        .metadata("llama.rope.freq_base", 10_000.0_f32)
        .tensor("token_embd.weight", &[64, 3], GgmlType::Q8_0)
        .tensor("blk.0.attn_norm.weight", &[5], GgmlType::F32)
        .tensor("blk.0.ffn_up.weight", &[4, 3, 2], GgmlType::F16)
        .tensor("blk.0.ffn_down.weight", &[7], GgmlType::BF16)
        .tensor("ids", &[3], GgmlType::I64)
        .tensor("steps", &[2, 2], GgmlType::I8)
        .tensor("halves", &[3], GgmlType::F64)
        .tensor("blk.0.attn_q.weight", &[256, 2], GgmlType::Q6_K);
    builder
        .container(|position, bytes| {
            for (index, byte) in bytes.iter_mut().enumerate() {
                // Low enough in every byte that no float's exponent is full.
                *byte = u8::try_from((index * 7 + position * 13) % 61).unwrap();
            }
        })
        .unwrap()
}

pub(crate) fn write(folder: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

pub(crate) fn file_source(path: &Path) -> Arc<dyn Source> {
    Arc::new(FileSource::open(path).unwrap())
}

pub(crate) fn mmap_source(path: &Path) -> Arc<dyn Source> {
    Arc::new(MmapSource::open(path).unwrap())
}

/// What to convert to and how.
#[derive(Clone, Default)]
pub(crate) struct Options {
    pub(crate) plan: PlanOptions,
    pub(crate) run: RunOptions,
}

pub(crate) fn to(values: Values) -> Options {
    Options { plan: PlanOptions { values, ..PlanOptions::default() }, ..Options::default() }
}

pub(crate) fn raw() -> Options {
    to(Values::Raw)
}

pub(crate) fn replacing(mut options: Options) -> Options {
    options.run.existing = Existing::Replace;
    options
}

pub(crate) fn convert(input: &Path, output: &Path, options: &Options) -> Result<Report, ConvertError> {
    run(Arc::new(FileSource::open(input)?), output, options)
}

pub(crate) fn run(source: Arc<dyn Source>, output: &Path, options: &Options) -> Result<Report, ConvertError> {
    let model = Model::open(source)?;
    model.convert(&model.plan(&options.plan)?, output, &options.run, &|_| ())
}

/// The names in a folder, sorted.
pub(crate) fn names(folder: &TempDir) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
