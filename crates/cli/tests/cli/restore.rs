//! `gguf2st restore IN BACK`.

use std::fs;

use gguf2st_gguf::write::Builder;
use gguf2st_gguf::{ByteOrder, GgmlType};

use crate::util::{Folder, corpus, tiny};

/// A model with its raw conversion beside it.
fn folder(model: &[u8]) -> Folder {
    let folder = Folder::with("model.gguf", model);
    folder.run(["convert", "--quiet", "model.gguf", "raw.safetensors", "--dtype", "raw"]).done();
    folder
}

fn tiny_folder() -> Folder {
    folder(&fs::read(tiny()).unwrap())
}

#[test]
fn the_same_bytes_come_back() {
    let big = Builder::new()
        .format(3, ByteOrder::Big)
        .metadata("general.architecture", "llama")
        .metadata("general.quantization_version", 2_u32)
        .tensor("floats", &[5], GgmlType::F32)
        .tensor("blocks", &[32, 2], GgmlType::Q5_1);
    let mut trailing = big.container(|position, bytes| bytes.fill(u8::try_from(position).unwrap() + 1)).unwrap();
    trailing.extend(b"and bytes behind the last tensor");
    for model in [fs::read(tiny()).unwrap(), fs::read(corpus("files/basic-v3.gguf")).unwrap(), trailing] {
        let folder = folder(&model);
        let shown = folder.run(["restore", "raw.safetensors", "back.gguf"]).done();
        assert!(shown.starts_with("wrote back.gguf: ") && shown.matches('\n').count() == 1, "{shown}");
        assert!(fs::read(folder.path("back.gguf")).unwrap() == model);
        assert_eq!(folder.names(), ["back.gguf", "model.gguf", "raw.safetensors"]);
        assert_eq!(folder.run(["restore", "raw.safetensors", "back.gguf", "--force", "--quiet"]).done(), "");
        assert!(fs::read(folder.path("back.gguf")).unwrap() == model);
    }
}

#[test]
fn what_is_no_raw_conversion_is_refused() {
    let folder = tiny_folder();
    folder.run(["convert", "--quiet", "model.gguf", "auto.safetensors"]).done();
    let names = folder.names();
    for (input, reason) in [
        ("auto.safetensors", "auto.safetensors: can't be restored: it has no tensor __gguf2st__"),
        ("model.gguf", "model.gguf: not a safetensors file"),
        ("nowhere", "nowhere: cannot be opened"),
    ] {
        let error = folder.run(["restore", input, "back.gguf"]).refused();
        assert!(error.contains(reason), "{error}");
    }
    assert_eq!(folder.names(), names);
}

#[test]
fn what_was_changed_is_refused() {
    let folder = tiny_folder();
    let raw = fs::read(folder.path("raw.safetensors")).unwrap();
    let position = |text: &[u8]| raw.windows(text.len()).position(|window| window == text).unwrap();
    // A letter of the container's head, which lies in the reserved tensor, behind the header's names.
    let head = raw.windows(4).rposition(|window| window == b"GGUF").unwrap();
    for (at, byte, reason) in [
        (head + 5, 9, "is not that of gguf2st.reserved"),
        (position(b"token_embd.weight\":{"), b'x', "missing or was changed"),
        (position(b"gguf2st.source_bytes"), 0x1f, "header is not right"),
    ] {
        let mut changed = raw.clone();
        changed[at] = byte;
        fs::write(folder.path("changed"), changed).unwrap();
        let error = folder.run(["restore", "changed", "back.gguf"]).refused();
        assert!(error.contains(reason), "{error}");
    }
    fs::write(folder.path("changed"), &raw[..raw.len() - 1]).unwrap();
    assert!(folder.run(["restore", "changed", "back.gguf"]).refused().contains("not inside the file"));
    assert_eq!(folder.names(), ["changed", "model.gguf", "raw.safetensors"]);
}
