//! `gguf2st convert MODEL OUT`: what comes out, and what is said of it.

use std::collections::BTreeMap;
use std::fs;

use gguf2st_gguf::GgmlType;
use gguf2st_gguf::write::Builder;

use crate::util::{Folder, safetensors, tiny};

/// A folder with a copy of the small model.
fn folder() -> Folder {
    Folder::with("model.gguf", &fs::read(tiny()).unwrap())
}

/// How many tensors of each dtype a safetensors file has.
fn dtypes(folder: &Folder, name: &str) -> BTreeMap<String, usize> {
    let mut dtypes = BTreeMap::new();
    for entry in safetensors(&fs::read(folder.path(name)).unwrap()).values() {
        *dtypes.entry(entry["dtype"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    dtypes
}

#[test]
fn every_dtype() {
    // 14 quantised tensors, 5 of F32, one each of F16 and BF16.
    for (dtype, expected) in [
        ("auto", &[("BF16", 15), ("F16", 1), ("F32", 5)][..]),
        ("f32", &[("F32", 21)]),
        ("f16", &[("F16", 21)]),
        ("bf16", &[("BF16", 21)]),
        // The reserved tensor makes one more of bytes.
        ("raw", &[("BF16", 1), ("F16", 1), ("F32", 5), ("U8", 15)]),
    ] {
        let folder = folder();
        let shown = folder.run(["convert", "model.gguf", "out.safetensors", "--dtype", dtype]).done();
        let tensors: usize = expected.iter().map(|(_, count)| count).sum();
        assert!(shown.starts_with(&format!("wrote out.safetensors: {tensors} tensors, ")), "{dtype}: {shown}");
        assert!(shown.ends_with("/s)\n") && shown.matches('\n').count() == 1, "{shown}");
        let found = dtypes(&folder, "out.safetensors");
        let found: Vec<_> = found.iter().map(|(dtype, count)| (dtype.as_str(), *count)).collect();
        assert_eq!(found, expected, "{dtype}");
        assert_eq!(folder.names(), ["model.gguf", "out.safetensors"]);

        let equal = folder.run(["verify", "out.safetensors", "--against", "model.gguf"]).done();
        assert_eq!(equal, format!("equal: {tensors} tensors, every byte\n"), "{dtype}");
    }
    let folder = folder();
    folder.run(["convert", "model.gguf", "without"]).done();
    folder.run(["convert", "model.gguf", "auto", "--dtype=auto"]).done();
    assert_eq!(fs::read(folder.path("without")).unwrap(), fs::read(folder.path("auto")).unwrap(), "it is the default");
}

#[test]
fn threads_and_quietness_change_no_byte() {
    let folder = folder();
    folder.run(["convert", "model.gguf", "out"]).done();
    let expected = fs::read(folder.path("out")).unwrap();
    for threads in ["1", "3", "64"] {
        let shown = folder.run(["convert", "--quiet", "model.gguf", "again", "--force", "--threads", threads]).done();
        assert_eq!(shown, "");
        assert!(fs::read(folder.path("again")).unwrap() == expected, "{threads}");
    }
}

#[test]
fn tensors_that_stay_f32() {
    let folder = folder();
    let kept = ["convert", "model.gguf", "out", "--dtype", "bf16", "--keep-f32", "norm,output.weight"];
    folder.run(kept).done();
    for (name, entry) in safetensors(&fs::read(folder.path("out")).unwrap()) {
        let expected = if name.contains("norm") || name.contains("output.weight") { "F32" } else { "BF16" };
        assert_eq!(entry["dtype"], expected, "{name}");
    }
    let said = folder.run(["convert", "model.gguf", "two", "--keep-f32", "norm,nrom\u{1b}"]);
    assert_eq!(said.status, 0);
    assert_eq!(said.err, "gguf2st: warning: --keep-f32: no tensor's name contains \"nrom\\u{1b}\"\n");
    folder.run(["convert", "model.gguf", "three", "--keep-f32", "nrom", "--quiet"]).done();
    let refused = folder.run(["convert", "model.gguf", "four", "--keep-f32", "norm", "--dtype", "raw"]);
    assert_eq!((refused.status, &*refused.out), (2, ""));
    assert_eq!(folder.names(), ["model.gguf", "out", "three", "two"]);
}

/// Values that are too large for 16 bits, for bf16, and for f32.
fn large() -> Folder {
    let builder = Builder::new()
        .metadata("general.architecture", "llama")
        .tensor("too\u{1b}[2J\nlarge", &[3], GgmlType::F32)
        .tensor("doubles", &[2], GgmlType::F64)
        .tensor("infinite", &[1], GgmlType::F32);
    let container = builder.container(|position, bytes| match position {
        0 => bytes.copy_from_slice(&[1e6_f32, -7e4, 65504.0].map(f32::to_le_bytes).concat()),
        1 => bytes.copy_from_slice(&[1e300, 1.0].map(f64::to_le_bytes).concat()),
        _ => bytes.copy_from_slice(&f32::INFINITY.to_le_bytes()),
    });
    Folder::with("model.gguf", &container.unwrap())
}

#[test]
fn values_that_become_infinite_are_told() {
    let folder = large();
    let said = folder.run(["convert", "model.gguf", "out", "--dtype", "f16"]);
    assert_eq!(said.status, 0);
    assert!(said.out.starts_with("wrote out: 3 tensors, "), "{}", said.out);
    let mut lines: Vec<_> = said.err.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "gguf2st: warning: tensor \"doubles\": 1 finite value too large for it became infinite; --dtype auto holds them",
            "gguf2st: warning: tensor \"too\\u{1b}[2J\\nlarge\": 2 finite values too large for it became infinite; \
             --dtype f32 holds them",
        ],
        "what was infinite before is not counted"
    );
    folder.run(["convert", "model.gguf", "quiet", "--dtype", "f16", "--quiet"]).done();
    folder.run(["convert", "model.gguf", "auto", "--strict"]).done();
    assert_eq!(folder.names(), ["auto", "model.gguf", "out", "quiet"]);
}

#[test]
fn or_are_an_error_and_leave_nothing() {
    let folder = large();
    for dtype in ["f16", "bf16", "f32"] {
        let error = folder.run(["convert", "model.gguf", "out", "--strict", "--dtype", dtype]).refused();
        assert!(error.contains("too large for ") && error.contains(&dtype.to_uppercase()), "{error}");
        assert_eq!(folder.names(), ["model.gguf"]);
    }
}

#[test]
fn a_model_that_can_not_be_converted_leaves_nothing() {
    let unsound = Builder::new().metadata("general.architecture", "llama").tensor("t", &[4], GgmlType::F32);
    let reserved = Builder::new().metadata("general.architecture", "llama").tensor("__metadata__", &[1], GgmlType::F32);
    let folder = Folder::with("unsound", &unsound.head().unwrap());
    fs::write(folder.path("reserved"), reserved.container(|_, _| ()).unwrap()).unwrap();
    fs::write(folder.path("zip"), b"PK\x03\x04 and more of a zip archive").unwrap();
    for (model, reason) in [
        ("unsound", "out of bounds"),
        ("reserved", "reserved name"),
        ("zip", "not a GGUF file"),
        ("nowhere", "cannot be opened"),
        (".", "folder"),
    ] {
        let error = folder.run(["convert", model, "out"]).refused();
        assert!(error.contains(reason), "{model}: {error}");
    }
    assert_eq!(folder.names(), ["reserved", "unsound", "zip"]);
}
