//! Split sets: the corpus' and a real-shaped one, read as one model and given back as their parts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf2st_convert::{ConvertError, Model, RunOptions, Weights, restore, verify};
use gguf2st_source::{FileSource, Source};

use crate::support::{folder, names, raw};

fn open(path: &Path) -> Result<Model, ConvertError> {
    let sibling = |name: &str| Ok(Arc::new(FileSource::open(path.with_file_name(name))?) as Arc<dyn Source>);
    Model::open_with_siblings(Arc::new(FileSource::open(path)?), &sibling)
}

/// A part of a set of the corpus: the one that its manifest names.
fn named(set: &str) -> PathBuf {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/corpus");
    let manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(corpus.join("manifest.json")).unwrap()).unwrap();
    let entry = manifest["entries"].as_array().unwrap().iter().find(|entry| entry["id"] == set).unwrap();
    corpus.join(entry["file"].as_str().unwrap())
}

#[test]
fn whole_sets_convert_and_come_back_as_their_parts() {
    for (set, count) in [
        ("split-ok-3", 3),
        ("split-open-second", 3),
        ("split-count-u32", 3),
        ("split-extra", 3),
        ("split-meta-first", 2),
        ("split-name-format", 2),
    ] {
        let folder = folder();
        let path = named(set);
        let model = open(&path).unwrap();
        assert_eq!(model.fault(), None, "{set}");
        assert_eq!(model.parts().len(), count, "{set}");

        let output = folder.path().join("out.safetensors");
        model.convert(&model.plan(&raw().plan).unwrap(), &output, &raw().run, &|_| ()).unwrap();
        let weights = Weights::open_path(&output).unwrap();
        assert!(verify(&weights, &model, None, &|_| ()).unwrap().is_equal(), "{set}");

        let back = folder.path().join("back");
        let (parts, bytes) = restore(&weights, &back, &RunOptions::default(), &|_| ()).unwrap();
        assert_eq!(parts, count, "{set}");
        let mut restored = 0;
        for entry in std::fs::read_dir(&back).unwrap() {
            let entry = entry.unwrap();
            let original = std::fs::read(path.with_file_name(entry.file_name())).unwrap();
            assert!(std::fs::read(entry.path()).unwrap() == original, "{set}: {:?}", entry.file_name());
            restored += original.len() as u64;
        }
        assert_eq!(restored, bytes, "{set}");
    }
}

#[test]
fn broken_sets_are_told_apart_and_refused() {
    for (set, expected) in [
        ("split-missing", "model-00002-of-00003.gguf"),
        ("split-name-count", "part 1 of 3"),
        ("split-dup-tensor", "duplicate tensor \"a\""),
        ("split-total-wrong", "split.tensors.count"),
        ("split-count-65535", "model-00002-of-65535.gguf"),
        ("split-count-f32", "split.count is 3.0 (f32)"),
        ("split-count-u64max", "split.count is 18446744073709551615"),
        ("split-count-arr", "split.count is array"),
        ("split-part-plain", "split.count missing; 3 is expected"),
        ("split-part-truncated", "tensor_data: out of bounds"),
        ("split-part-not-gguf", "not a GGUF file"),
        ("split-same-file", "split.no 0; 1 is expected"),
        ("split-mixed-endian", "byte order big; little is expected"),
        ("split-other-arch", "general.architecture"),
        ("split-renamed", "part 1 of 3"),
    ] {
        let model = open(&named(set)).unwrap();
        let error = model.plan(&raw().plan).unwrap_err().to_string();
        assert!(error.contains(expected), "{set}: {error}");
        // The part named can be looked at all the same.
        assert!(!model.file().metadata().is_empty(), "{set}");
    }
}

#[test]
fn a_part_opened_alone_is_not_taken_for_a_model() {
    let model = Model::open(Arc::new(FileSource::open(named("split-ok-3")).unwrap())).unwrap();
    let error = model.plan(&raw().plan).unwrap_err().to_string();
    assert!(error.contains("one of 3 parts"), "{error}");
}

#[test]
fn a_name_in_a_file_leads_nowhere_else() {
    let folder = folder();
    let output = folder.path().join("out");
    let model = open(&named("split-ok-3")).unwrap();
    model.convert(&model.plan(&raw().plan).unwrap(), &output, &raw().run, &|_| ()).unwrap();
    let bytes = std::fs::read(&output).unwrap();
    let name = b"{\\\"name\\\":\\\"model-00002-of-00003.gguf\\\"";
    let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
    let mut evil = bytes.clone();
    evil[at..at + name.len()].copy_from_slice(b"{\\\"name\\\":\\\"../../../2-of-000003.gguf\\\"");
    std::fs::write(&output, &evil).unwrap();
    let back = folder.path().join("back");
    let error = restore(&Weights::open_path(&output).unwrap(), &back, &RunOptions::default(), &|_| ()).unwrap_err();
    assert!(error.to_string().contains("is no file name"), "{error}");
    assert_eq!(names(&folder), ["out"]);
}
