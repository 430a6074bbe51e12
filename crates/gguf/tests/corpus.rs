//! The corpus of hostile, odd and ordinary containers against its manifest.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
#![allow(clippy::cast_possible_truncation, reason = "lengths of files that lie in memory")]

#[allow(unreachable_pub, reason = "shared by several test binaries")]
mod common;

use std::collections::BTreeSet;
use std::path::PathBuf;

use common::{everything, json, testdata};
use gguf2st_gguf::{Check, GgufFile, ParserError, TensorInfo, Value, Verdict, parse_gguf};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

/// Where the manifest leaves a choice and this parser takes the other one than the manifest prefers.
const DEVIATIONS: &[(&str, &str)] = &[
    ("bool-127", "reads as true and is a finding that `check` warns of: the issue's rule"),
    ("bool-128", "the same"),
    ("bool-2", "the same"),
    ("bool-array", "the same"),
];

/// How the corpus names the cause of an error.
fn class_of_error(error: &ParserError) -> &'static str {
    match error {
        ParserError::UnexpectedEof { .. } | ParserError::CountTooLarge { .. } => "truncated",
        ParserError::LimitExceeded { .. } | ParserError::HeadTooLarge { .. } => "limit",
        ParserError::Empty | ParserError::InvalidMagic { .. } => "not_gguf",
        ParserError::UnsupportedVersion { .. } => "unsupported_version",
        ParserError::UnknownValueType { .. } => "bad_value_type",
        ParserError::EmptyKey { .. } => "bad_key",
        ParserError::DuplicateKey { .. } => "duplicate_key",
        ParserError::EmptyTensorName { .. } => "bad_tensor_name",
        ParserError::DuplicateTensor { .. } => "duplicate_tensor",
        ParserError::AlignmentType { .. } | ParserError::AlignmentValue { .. } => "bad_alignment",
        ParserError::UnknownGgmlType { .. } => "bad_tensor_type",
        ParserError::RowNotWholeBlocks { .. } => "bad_shape",
        ParserError::SizeOverflow { .. } => "overflow",
        ParserError::OutOfBounds { .. } => "out_of_bounds",
        other => panic!("not an error of a container given whole: {other:?}"),
    }
}

/// What the message of each class has to say.
fn phrase(class: &str) -> &'static str {
    match class {
        "truncated" => "truncated",
        "limit" => "limit",
        "not_gguf" => "not a GGUF file",
        "unsupported_version" => "unsupported version",
        "bad_value_type" => "unknown value type",
        "bad_key" => "bad key",
        "duplicate_key" => "duplicate key",
        "duplicate_tensor" => "duplicate tensor",
        "bad_alignment" => "bad alignment",
        "bad_tensor_name" => "bad tensor name",
        "bad_tensor_type" => "unknown tensor type",
        "bad_shape" => "bad shape",
        "overflow" => "overflow",
        "bad_offset" => "bad offset",
        "out_of_bounds" => "out of bounds",
        "overlap" => "overlap",
        other => panic!("no phrase for the class {other}"),
    }
}

/// The classes that a failed check stands for.
fn classes_of_check<H: AsRef<[u8]>>(file: &GgufFile<H>, check: &Check) -> Vec<&'static str> {
    match check.name {
        "metadata_keys" => vec!["bad_key"],
        "tensor_names" => vec!["bad_tensor_name"],
        "tensor_shapes" => {
            file.tensors().iter().filter_map(|tensor| tensor.byte_size().err()).map(|e| class_of_error(&e)).collect()
        }
        "tensor_offsets" => vec!["bad_offset"],
        "tensor_data" => vec!["out_of_bounds"],
        "overlap" => vec!["overlap"],
        "file_length" => vec!["truncated"],
        other => panic!("no class for the failed check {other}: {}", check.detail),
    }
}

/// What is wrong with a container: classes, each with the message that names it. None if nothing is.
fn faults(container: &[u8]) -> Vec<(&'static str, String)> {
    let file = match parse_gguf(container, container.len() as u64) {
        Ok(file) => file,
        Err(error) => return vec![(class_of_error(&error), error.to_string())],
    };
    let failed = file.check().into_iter().filter(|check| check.verdict == Verdict::Fail);
    failed
        .flat_map(|check| {
            let classes = classes_of_check(&file, &check);
            let message = format!("{}: {}", check.name, check.detail);
            classes.into_iter().map(move |class| (class, message.clone()))
        })
        .collect()
}

fn corpus() -> (PathBuf, Json) {
    let folder = testdata().join("corpus");
    let manifest = json(&folder.join("manifest.json"));
    (folder, manifest)
}

fn entries(manifest: &Json) -> impl Iterator<Item = &Json> {
    manifest["entries"].as_array().unwrap().iter()
}

/// Entries of one container, with its bytes.
fn single_files() -> Vec<(Json, Vec<u8>)> {
    let (folder, manifest) = corpus();
    let single = entries(&manifest).filter(|entry| entry.get("files").is_none());
    single.map(|entry| (entry.clone(), std::fs::read(folder.join(text(&entry["file"]))).unwrap())).collect()
}

fn text(json: &Json) -> &str {
    json.as_str().unwrap_or_else(|| panic!("a string is expected, not {json}"))
}

fn texts(json: &Json) -> Vec<&str> {
    json.as_array().map(|list| list.iter().map(text).collect()).unwrap_or_default()
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn every_file_has_an_entry_and_every_entry_its_files() {
    let (folder, manifest) = corpus();
    let mut listed = BTreeSet::new();
    for entry in entries(&manifest) {
        let parts = entry.get("files").and_then(Json::as_array).map_or(std::slice::from_ref(entry), Vec::as_slice);
        for part in parts {
            let name = text(&part["file"]);
            let bytes = std::fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(sha256(&bytes), text(&part["sha256"]), "{name}");
            assert_eq!(part["size"], bytes.len(), "{name}");
            listed.insert(name.to_owned());
        }
    }
    let mut there = BTreeSet::new();
    for sub in std::fs::read_dir(&folder).unwrap().map(|sub| sub.unwrap().path()).filter(|path| path.is_dir()) {
        for file in std::fs::read_dir(sub).unwrap() {
            let path = file.unwrap().path();
            there.insert(path.strip_prefix(&folder).unwrap().to_str().unwrap().to_owned());
        }
    }
    assert_eq!(there, listed);
}

#[test]
fn every_verdict_is_right() {
    let mut deviations = Vec::new();
    for (entry, container) in single_files() {
        let id = text(&entry["id"]);
        let parse = &entry["parse"];
        let faults = faults(&container);
        let accepted = texts(&parse["accept"]);
        let named = || {
            let fitting = faults.iter().find(|(class, _)| accepted.contains(class));
            let (class, message) = fitting.unwrap_or_else(|| panic!("{id}: none of {accepted:?} in {faults:?}"));
            assert!(message.contains(phrase(class)), "{id}: {class} is not named in {message:?}");
        };
        let reads = parse_gguf(&container, container.len() as u64).is_ok();
        match text(&parse["verdict"]) {
            // What conversion would refuse may fail a check all the same.
            "ok" => assert!(reads, "{id}: {faults:?}"),
            "error" => named(),
            "either" => {
                let error = faults.iter().any(|(class, _)| accepted.contains(class));
                if error {
                    named();
                } else {
                    assert!(reads, "{id}: none of {accepted:?} in {faults:?}");
                }
                if error != (text(&parse["preferred"]) == "error") {
                    deviations.push(id.to_owned());
                }
            }
            other => panic!("{id}: no such verdict: {other}"),
        }
    }
    let expected: Vec<&str> = DEVIATIONS.iter().map(|(id, _)| *id).collect();
    deviations.sort();
    assert_eq!(deviations, expected, "the manifest prefers otherwise");
}

/// A check fails where a conversion would refuse, so it must not fail what converts.
#[test]
fn nothing_that_converts_fails_a_check() {
    for (entry, container) in single_files().iter().filter(|(entry, _)| entry["convert"]["verdict"] == "ok") {
        assert_eq!(faults(container), [], "{}", entry["id"]);
    }
}

#[test]
fn the_facts_are_right() {
    let mut compared = 0;
    for (entry, container) in single_files() {
        let (id, facts) = (text(&entry["id"]), &entry["facts"]);
        let Ok(file) = parse_gguf(&container, container.len() as u64) else { continue };
        if facts.is_null() {
            continue;
        }
        compared += 1;
        assert_eq!(facts["version"], file.version(), "{id}");
        assert_eq!(facts["byte_order"], file.byte_order().name(), "{id}");
        assert_eq!(facts["alignment"], file.alignment(), "{id}");
        assert_eq!(facts["file_size"], file.container_len(), "{id}");
        assert_eq!(facts["kv_count"], file.metadata().len(), "{id}");
        assert_eq!(facts["tensor_count"], file.tensors().len(), "{id}");
        if !facts["data_offset"].is_null() {
            assert_eq!(facts["data_offset"], file.data_offset(), "{id}");
        }
        let (kv, tensors) = (facts["kv"].as_array().unwrap(), facts["tensors"].as_array().unwrap());
        // Long lists are cut, and say so.
        assert!(kv.len() == file.metadata().len() || !facts["kv_listed"].is_null(), "{id}");
        assert!(tensors.len() == file.tensors().len() || !facts["tensors_listed"].is_null(), "{id}");
        for (fact, (key, value)) in kv.iter().zip(file.metadata().iter()) {
            assert_eq!(text(&fact["key"]).as_bytes(), key, "{id}");
            value_is(value, fact, &format!("{id}: {key}"));
        }
        for (fact, tensor) in tensors.iter().zip(file.tensors().iter()) {
            tensor_is(&file, &container, &tensor, fact, &format!("{id}: {}", tensor.name));
        }
    }
    assert!(compared > 100, "only {compared} files had facts to compare");
}

/// How the manifest calls a value's type.
fn type_name(value: &Value<'_>) -> &'static str {
    match value.value_type().name() {
        "string" => "str",
        "array" => "arr",
        other => other,
    }
}

fn value_is(value: Value<'_>, fact: &Json, place: &str) {
    if let Some(expected) = fact.get("type") {
        assert_eq!(text(expected), type_name(&value), "{place}");
    }
    let integer = |json: &Json| json.to_string().trim_matches('"').parse::<i128>().unwrap();
    match value {
        Value::String(found) => {
            if let Some(expected) = fact.get("value_hex") {
                assert_eq!(text(expected), hex(found), "{place}");
            } else if let Some(expected) = fact.get("value_sha256") {
                assert_eq!(fact["value_len"], found.len(), "{place}");
                assert_eq!(text(expected), sha256(found), "{place}");
            } else {
                assert_eq!(text(&fact["value"]).as_bytes(), found, "{place}");
            }
        }
        Value::F32(found) => assert_eq!(text(&fact["value_bits"]), format!("0x{:08x}", found.to_bits()), "{place}"),
        Value::F64(found) => assert_eq!(text(&fact["value_bits"]), format!("0x{:016x}", found.to_bits()), "{place}"),
        Value::Bool(found) => assert_eq!(fact["value"], found, "{place}"),
        Value::Array(array) => {
            // Arrays nested beyond what the manifest writes down have no facts.
            let Some(element) = fact.get("elem_type") else { return };
            let first = array.iter().next();
            assert!(first.is_none_or(|first| text(element) == type_name(&first)), "{place}");
            assert_eq!(fact["len"], array.len(), "{place}");
            assert_eq!(array.iter().count() as u64, array.len(), "{place}");
            for (fact, value) in fact["head"].as_array().into_iter().flatten().zip(array) {
                value_is(value, fact, place);
            }
        }
        other => assert_eq!(Some(integer(&fact["value"])), other.as_integer(), "{place}"),
    }
}

fn tensor_is(file: &GgufFile<&Vec<u8>>, container: &[u8], tensor: &TensorInfo<'_>, fact: &Json, place: &str) {
    match fact.get("name_hex") {
        Some(expected) => assert_eq!(text(expected), hex(tensor.name), "{place}"),
        None => assert_eq!(text(&fact["name"]).as_bytes(), tensor.name, "{place}"),
    }
    assert_eq!(fact["type_id"], tensor.ggml_type.0, "{place}");
    assert_eq!(text(&fact["type"]), tensor.ggml_type.to_string(), "{place}");
    assert_eq!(fact["dims"], Json::from(tensor.dims.to_vec()), "{place}");
    assert_eq!(fact["shape"], Json::from(tensor.shape()), "{place}");
    assert_eq!(fact["elements"], tensor.dims.values().unwrap(), "{place}");
    assert_eq!(fact["offset"], tensor.offset, "{place}");
    assert_eq!(fact["nbytes"], tensor.byte_size().unwrap(), "{place}");
    let range = file.byte_range(tensor).unwrap();
    assert_eq!(fact["file_offset"], range.start, "{place}");
    assert_eq!(text(&fact["sha256"]), sha256(file.tensor_bytes(container, tensor).unwrap()), "{place}");
}

fn sweeps(kind: &str) -> Vec<(Json, Vec<u8>)> {
    let (folder, manifest) = corpus();
    let all = manifest["sweeps"].as_array().unwrap().iter();
    let chosen: Vec<_> = all
        .filter(|sweep| text(&sweep["id"]).starts_with(kind))
        .map(|sweep| (sweep.clone(), std::fs::read(folder.join(text(&sweep["base"]))).unwrap()))
        .collect();
    assert!(!chosen.is_empty(), "no sweep {kind}");
    chosen
}

#[test]
fn cut_short_anywhere() {
    for (sweep, base) in sweeps("sweep-") {
        let id = text(&sweep["id"]);
        let whole_from = sweep["expect"][0]["below"].as_u64().unwrap() as usize;
        for len in 0..base.len() {
            let faults = faults(&base[..len]);
            if len >= whole_from {
                assert_eq!(faults, [], "{id} at {len}");
                continue;
            }
            let fits = |class: &str| ["truncated", "not_gguf", "out_of_bounds"].contains(&class);
            assert!(faults.iter().any(|(class, _)| fits(class)), "{id} at {len}: {faults:?}");
            if let Err(ParserError::UnexpectedEof { len: told, .. }) = parse_gguf(&base[..len], len as u64) {
                assert_eq!(told, len as u64, "{id}");
            }
        }
    }
}

#[test]
fn changed_anywhere() {
    for (_, base) in sweeps("flip-") {
        let data_offset = parse_gguf(&base, base.len() as u64).unwrap().data_offset() as usize;
        for at in 0..data_offset {
            let old = base[at];
            for new in [0x00, 0x01, 0x7f, 0x80, 0xff, old ^ 0x01, old ^ 0x80] {
                let mut changed = base.clone();
                changed[at] = new;
                match parse_gguf(&changed, changed.len() as u64) {
                    Ok(file) => assert!(!everything(&file).is_empty()),
                    Err(error) => assert!(!class_of_error(&error).is_empty()),
                }
            }
        }
    }
}

/// Every result of a shorter head is either the whole's, or a demand that can be met and is not in vain.
fn is_fed(container: &[u8], whole: &Result<String, ParserError>, have: usize, place: &str) -> Option<usize> {
    let len = container.len() as u64;
    match parse_gguf(&container[..have], len) {
        Err(ParserError::NeedMore { have: told, at_least, .. }) => {
            assert_eq!(told, have as u64, "{place}");
            assert!(at_least > told && at_least <= len, "{place}: wants {at_least} of {len}, has {have}");
            if whole.is_ok() {
                let head = parse_gguf(container, len).unwrap().index_end();
                assert!(at_least <= head, "{place}: wants {at_least}, the index ends at {head}");
            }
            Some(at_least as usize)
        }
        found => {
            // The tensors' names lie in the head, so all that can differ is what is behind it: nothing.
            assert_eq!(&found.map(|file| everything(&file)), whole, "{place}: with {have} bytes");
            None
        }
    }
}

#[test]
fn fed_in_parts_it_reads_the_same() {
    for (entry, container) in single_files() {
        let id = text(&entry["id"]);
        let whole = parse_gguf(&container, container.len() as u64).map(|file| everything(&file));
        let small = container.len() <= 1024;
        // Large heads are fed as a careful reader does it: twice as much each time.
        let growth = if small { 1 } else { 2 };
        for start in [0, 1, 24, container.len() / 2].into_iter().filter(|start| *start <= container.len()) {
            let mut have = start;
            while let Some(at_least) = is_fed(&container, &whole, have, id) {
                have = at_least.max(have * growth).min(container.len());
            }
        }
        if small {
            for have in 0..=container.len() {
                is_fed(&container, &whole, have, id);
            }
        }
    }
}
