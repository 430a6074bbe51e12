//! Models in several files.

use std::fs;

use serde_json::{Value, json};

use crate::util::{Folder, assert_snapshot, corpus};

/// A folder with the files of a set of the corpus.
fn set(name: &str) -> Folder {
    let folder = Folder::new();
    for entry in fs::read_dir(corpus(name)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.path(entry.file_name())).unwrap();
    }
    folder
}

const PARTS: [&str; 3] = ["model-00001-of-00003.gguf", "model-00002-of-00003.gguf", "model-00003-of-00003.gguf"];

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("valid JSON")
}

#[test]
fn any_part_stands_for_the_whole() {
    let folder = set("split-ok-3");
    let shown = folder.run([PARTS[0], "--tensors"]).done();
    assert_snapshot("set.txt", &shown);
    let document = parsed(&folder.run([PARTS[0], "--json"]).done());
    let sizes = PARTS.map(|part| fs::metadata(folder.path(part)).unwrap().len());
    assert_eq!((&document["file_size"], &document["tensor_count"]), (&json!(sizes.iter().sum::<u64>()), &json!(3)));
    let parts = [0, 1, 2].map(|at| document["parts"][at].clone());
    let offsets = parts.each_ref().map(|part| part["data_offset"].as_u64().unwrap());
    for (at, part) in parts.iter().enumerate() {
        assert_eq!((&part["path"], &part["size"]), (&json!(PARTS[at]), &json!(sizes[at])));
        let tensor = &document["tensors"][at];
        assert_eq!((&tensor["part"], &tensor["offset"]), (&json!(at + 1), &json!(offsets[at])), "{tensor}");
    }
    for part in &PARTS[1..] {
        assert_eq!(
            folder.run([part, "-t"]).done(),
            shown.replace(PARTS[0], part).replace(&format!("({part}"), &format!("({}", PARTS[0]))
        );
        let mut other = parsed(&folder.run([part, "--json"]).done());
        assert_eq!(other["path"], *part);
        other["path"] = json!(PARTS[0]);
        assert_eq!(other, document);
    }
    assert_eq!(
        parsed(&folder.run([PARTS[2], "--values", "a", "--json"]).done())["values"].as_array().unwrap().len(),
        8
    );
    assert!(folder.run([PARTS[1], "--stats"]).done().contains("\na "));
    assert_snapshot("set.check.txt", &folder.run(["check", PARTS[1]]).done());
    assert_eq!(folder.run(["check", PARTS[0], "--data", "--quiet"]).status, 0);
}

#[test]
fn a_set_that_lacks_a_part() {
    let folder = set("split-ok-3");
    fs::remove_file(folder.path(PARTS[1])).unwrap();
    for (part, position) in [(PARTS[0], 1), (PARTS[2], 3)] {
        let said = folder.run([part, "-t"]);
        assert_eq!(said.status, 0);
        assert!(said.out.contains(&format!("  model, part {position} of 3\n")), "{}", said.out);
        assert!(
            said.err.starts_with(&format!("gguf2st: warning: {part}: bad split: part {:?}: ", PARTS[1])),
            "{}",
            said.err
        );
        let document = parsed(&folder.run([part, "--json", "--quiet"]).done());
        assert_eq!((&document["parts"], &document["tensors"][0]["part"]), (&Value::Null, &Value::Null));
        let found = folder.run(["check", part]).found();
        assert!(found.contains("\nFAIL  split_set       bad split: "), "{found}");
        assert!(folder.run(["convert", part, "out"]).refused().contains("bad split: part "));
    }
    assert_eq!(folder.names(), [PARTS[0], PARTS[2]]);
}

#[test]
fn converted_as_one_and_restored_to_its_parts() {
    let folder = set("split-ok-3");
    folder.run(["convert", PARTS[1], "raw", "--dtype", "raw", "--shard-size", "40B", "--quiet"]).done();
    assert_eq!(folder.run(["verify", "raw", "--against", PARTS[2]]).done(), "equal: 4 tensors, every byte\n");
    let shown = folder.run(["restore", "raw", "back"]).done();
    assert!(shown.starts_with("wrote back: 3 files, 672 bytes "), "{shown}");
    for part in PARTS {
        assert!(fs::read(folder.path(part)).unwrap() == fs::read(folder.path("back").join(part)).unwrap(), "{part}");
    }
    assert!(folder.run(["restore", "raw", "back"]).refused().contains("--force"));
}
