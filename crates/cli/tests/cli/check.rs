//! `gguf2st check MODEL`.

use gguf2st_gguf::GgmlType;
use gguf2st_gguf::write::Builder;
use serde_json::Value;

use crate::util::{Folder, Said, assert_snapshot};

fn sound() -> Builder {
    Builder::new().metadata("general.architecture", "llama").tensor("token_embd.weight", &[4, 2], GgmlType::F32)
}

fn parsed(said: &Said) -> Value {
    serde_json::from_str(&said.out).expect("valid JSON")
}

#[test]
fn a_sound_model() {
    let folder = Folder::with_model(&sound());
    let shown = folder.run(["check", "model.gguf"]).done();
    assert_snapshot("check.sound.txt", &shown);
    assert!(shown.lines().all(|line| line.starts_with("ok  ")));
    let said = folder.run(["check", "--json", "model.gguf"]);
    assert_eq!((said.status, &parsed(&said)["verdict"]), (0, &"ok".into()));
}

#[test]
fn warnings_are_no_failure() {
    let mut bytes = sound().container(|_, _| ()).unwrap();
    bytes.extend([1; 100]);
    let folder = Folder::with("model.gguf", &bytes);
    let said = folder.run(["check", "model.gguf"]);
    assert_eq!(said.status, 0);
    assert!(said.out.contains("\nwarn  file_length     "), "{}", said.out);
    assert_eq!(parsed(&folder.run(["check", "--json", "model.gguf"]))["verdict"], "warn");
}

#[test]
fn a_model_without_its_data() {
    let folder = Folder::with("model.gguf", &sound().head().unwrap());
    let said = folder.run(["check", "model.gguf"]);
    assert_eq!((said.status, &*said.err), (1, ""));
    assert_snapshot("check.no-data.txt", &said.out);
    let said = folder.run(["check", "model.gguf", "--json"]);
    assert_eq!(said.status, 1);
    assert_snapshot("check.no-data.json", &said.out);
}

#[test]
fn what_can_not_be_parsed_fails_by_name() {
    for (bytes, name, detail) in [
        (&b"GGUF\x04\0\0\0rest of the header"[..], "header", "unsupported version"),
        (b"", "header", "empty"),
        (b"PK\x03\x04 and more of a zip archive", "header", "zip"),
        (b"GGUF\x03\0\0\0\xff\xff\xff\xff\xff\xff\xff\x7f\0\0\0\0\0\0\0\0", "counts", "9223372036854775807 tensors"),
        (
            b"GGUF\x03\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0a.key\x63\0\0\0....",
            "parse",
            "type id 99",
        ),
    ] {
        let folder = Folder::with("model.gguf", bytes);
        let said = folder.run(["check", "model.gguf"]);
        assert_eq!((said.status, &*said.err), (1, ""), "{detail}");
        assert!(said.out.starts_with(&format!("FAIL  {name}  ")) && said.out.contains(detail), "{}", said.out);
        let document = parsed(&folder.run(["check", "model.gguf", "--json"]));
        assert_eq!((&document["verdict"], &document["checks"][0]["name"]), (&"fail".into(), &name.into()));
        assert!(folder.run(["inspect", "model.gguf"]).refused().contains(detail));
    }
}

#[test]
fn colours_where_they_are_asked_for() {
    let folder = Folder::with("model.gguf", &sound().head().unwrap());
    let output = folder.command(["check", "model.gguf", "--color", "always"]).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("\u{1b}[32mok\u{1b}[0m") && shown.contains("\u{1b}[1m\u{1b}[31mFAIL\u{1b}[0m"), "{shown:?}");
}
