//! `convert --shard-size`, `--only-shards`, `--dry-run`, and `assemble`.

use std::fs::{self, File};
use std::path::PathBuf;

use serde_json::Value;

use crate::util::{Folder, assert_snapshot, safetensors, tiny};

fn folder() -> Folder {
    Folder::with("model.gguf", &fs::read(tiny()).unwrap())
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("valid JSON")
}

/// The files of an output folder, hidden ones too.
fn files(folder: &Folder, output: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder.path(output)).unwrap().map(|entry| entry.unwrap());
    let mut files: Vec<_> = entries.map(|it| (it.file_name().into(), fs::read(it.path()).unwrap())).collect();
    files.sort();
    files
}

const SHARDS: [&str; 4] = ["convert", "model.gguf", "--shard-size", "100KB"];

fn shards<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SHARDS[..], more].concat()
}

#[test]
fn a_folder_of_shards() {
    let folder = folder();
    let shown = folder.run(shards(&["out"])).done();
    let made = files(&folder, "out");
    let count = made.len() - 1;
    assert!(count > 2 && shown.starts_with(&format!("wrote out: {count} files, 21 tensors, ")), "{shown}");
    let index = parsed(&fs::read_to_string(folder.path("out/model.safetensors.index.json")).unwrap());
    for (name, file) in index["weight_map"].as_object().unwrap() {
        let shard = fs::read(folder.path("out").join(file.as_str().unwrap())).unwrap();
        assert!(safetensors(&shard).contains_key(name), "{name}");
    }
    assert_eq!(folder.run(["verify", "out", "--against", "model.gguf"]).done(), "equal: 21 tensors, every byte\n");

    let shown = folder.run(shards(&["out"])).done();
    assert_eq!(shown, format!("out: nothing to do: {count} files are there and whole\n"));
    let error = folder.run(shards(&["out", "--dtype", "f32"])).refused();
    assert!(error.contains("out holds files of another conversion: model-00001-of-"), "{error}");
    assert!(files(&folder, "out") == made);
    folder.run(shards(&["out", "--dtype", "f32", "--force"])).done();
    assert!(files(&folder, "out") != made);

    let shown = folder.run(["convert", "model.gguf", "one", "--shard-size", "5GB"]).done();
    assert!(shown.starts_with("wrote one: 1 file, "), "{shown}");
    assert_eq!(files(&folder, "one").len(), 1, "no index");
    assert!(folder.run(["assemble", "one"]).done().starts_with("one: 1 shard of one conversion, 21 tensors\n"));
}

#[test]
fn shards_made_on_several_machines() {
    let folder = folder();
    folder.run(shards(&["whole"])).done();
    let whole = files(&folder, "whole");
    let count = whole.len() - 1;
    folder.run(shards(&["out", "--only-shards", "2"])).done();
    let error = folder.run(["assemble", "out"]).refused();
    assert!(error.contains("out: can't be assembled: model-00001-of-"), "{error}");
    assert_eq!(files(&folder, "out").len(), 1);
    let rest = format!("1,3-{count}");
    folder.run(shards(&["other", "--only-shards", &rest])).done();
    for (name, bytes) in files(&folder, "other") {
        fs::write(folder.path("out").join(name), bytes).unwrap();
    }
    let shown = folder.run(["assemble", "out"]).done();
    let expected = format!("out: {count} shards of one conversion, 21 tensors; wrote model.safetensors.index.json\n");
    assert_eq!(shown, expected);
    assert!(files(&folder, "out") == whole);
    assert_eq!(folder.run(["assemble", "out", "--quiet"]).done(), "");
    let error = folder.run(shards(&["out", "--only-shards", "99"])).refused();
    assert!(error.contains("there is no shard 99"), "{error}");
    assert!(folder.run(["assemble", "nowhere"]).refused().contains("nowhere"));
}

#[test]
fn a_plan_that_is_only_looked_at() {
    let folder = folder();
    // The hash holds the version, the free space the machine.
    let masked = |shown: String| {
        let lines = shown.lines().map(|line| match line.split_once(' ') {
            Some(("plan", hash)) => format!("plan {} digits", hash.trim().len()),
            Some(("disk", _)) => line.split(", ").next().unwrap_or_default().to_owned(),
            _ => line.to_owned(),
        });
        lines.collect::<Vec<_>>().join("\n") + "\n"
    };
    assert_snapshot("plan.file.txt", &masked(folder.run(["convert", "model.gguf", "out", "--dry-run"]).done()));
    let raw = shards(&["out", "--dtype", "raw", "--dry-run"]);
    assert_snapshot("plan.raw.txt", &masked(folder.run(&raw).done()));
    let some = folder.run(shards(&["out", "--dry-run", "--only-shards", "1"])).done();
    assert!(some.contains("        1 of "), "{some}");
    let document = parsed(&folder.run(shards(&["out", "--dry-run", "--json"])).done());
    assert_eq!(folder.names(), ["model.gguf"], "nothing is written");

    folder.run(shards(&["out", "--quiet"])).done();
    let made = files(&folder, "out").into_iter().filter(|(name, _)| name.extension().unwrap() == "safetensors");
    let made: Vec<_> = made.map(|(name, bytes)| (name, bytes.len() as u64)).collect();
    assert_eq!(document["bytes"], made.iter().map(|(_, bytes)| bytes).sum::<u64>());
    assert_eq!(document["input_bytes"], fs::metadata(tiny()).unwrap().len());
    assert_eq!(document["plan_hash"].as_str().map(str::len), Some(64));
    let planned = document["plan"]["shards"].as_array().unwrap();
    let planned: Vec<PathBuf> = planned.iter().map(|shard| shard["file"].as_str().unwrap().into()).collect();
    assert_eq!(planned, made.into_iter().map(|(name, _)| name).collect::<Vec<_>>());
}

#[test]
fn one_run_at_a_time() {
    let folder = folder();
    fs::create_dir(folder.path("out")).unwrap();
    let run = File::create(folder.path("out/.gguf2st-run.jsonl")).unwrap();
    run.lock().unwrap();
    let error = folder.run(shards(&["out"])).refused();
    assert_eq!(error, "gguf2st: out: another conversion works on this folder\n");
    drop(run);
    folder.run(shards(&["out"])).done();
}
