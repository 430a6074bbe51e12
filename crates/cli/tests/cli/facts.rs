//! `inspect --json --full` of every file of the corpus against what its manifest says of it.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::util::{Folder, corpus};

/// The manifest's entries of single files.
fn entries() -> Vec<(String, PathBuf, Value)> {
    let text = fs::read_to_string(corpus("manifest.json")).expect("the corpus is there");
    let manifest: Value = serde_json::from_str(&text).expect("its manifest is JSON");
    let entries = manifest["entries"].as_array().expect("it has entries");
    let single = entries.iter().filter(|entry| entry["group"] != "split");
    let entries: Vec<_> = single
        .map(|entry| {
            let text = |key: &str| entry[key].as_str().expect("a string").to_owned();
            (text("id"), corpus(&text("file")), entry.clone())
        })
        .collect();
    assert!(entries.len() > 400, "a corpus that is not there must not pass");
    entries
}

#[test]
fn every_file_that_can_be_read() {
    let folder = Folder::new();
    let mut compared = 0;
    for (id, path, entry) in entries() {
        let said = folder.run(["--json".as_ref(), "--full".as_ref(), path.as_os_str()]);
        let Some(facts) = entry.get("facts").filter(|_| said.status == 0) else { continue };
        let document: Value = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{id}: {error}"));
        let of = |key: &str| document[key].clone();
        for (ours, theirs) in [
            ("version", "version"),
            ("byte_order", "byte_order"),
            ("metadata_count", "kv_count"),
            ("tensor_count", "tensor_count"),
            ("alignment", "alignment"),
            ("file_size", "file_size"),
            ("data_offset", "data_offset"),
        ] {
            if let Some(fact) = facts.get(theirs).filter(|fact| !fact.is_null()) {
                assert_eq!(of(ours), *fact, "{id}: {ours}");
            }
        }
        if let Some(tensors) = facts["tensors"].as_array() {
            let found: Vec<_> = document["tensors"].as_array().unwrap().iter().map(tensor).collect();
            let facts: Vec<_> = tensors.iter().map(tensor_fact).collect();
            assert_eq!(found[..facts.len()], facts, "{id}");
        }
        for fact in facts["kv"].as_array().into_iter().flatten() {
            compare_entry(&id, &document, fact);
        }
        compared += 1;
    }
    assert!(compared > 150, "{compared}");
}

/// What both sides say of a tensor.
fn tensor(tensor: &Value) -> Value {
    json!([tensor["name"], tensor["ggml_type"], tensor["dims"], tensor["shape"], tensor["offset"], tensor["bytes"]])
}

fn tensor_fact(fact: &Value) -> Value {
    let fields = ["type", "dims", "shape", "file_offset", "nbytes"].map(|key| fact[key].clone());
    let [ggml_type, dims, shape, offset, bytes] = fields;
    json!([text_fact(fact, "name"), ggml_type, dims, shape, offset, bytes])
}

/// A string of the manifest as our JSON has it: bytes that are no UTF-8 are given there as hex beside it.
fn text_fact(fact: &Value, key: &str) -> Value {
    let Some(hex) = fact[format!("{key}_hex")].as_str() else { return fact[key].clone() };
    let bytes: Vec<u8> =
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect();
    String::from_utf8(bytes).map_or_else(|_| json!({"bytes": hex}), Value::from)
}

fn compare_entry(id: &str, document: &Value, fact: &Value) {
    let key = text_fact(fact, "key");
    let entries = document["metadata"].as_array().unwrap();
    let entry = entries.iter().find(|entry| entry["key"] == key).unwrap_or_else(|| panic!("{id}: no {key}"));
    let value = &entry["value"];
    match fact["type"].as_str().unwrap() {
        "str" => {
            assert_eq!(entry["type"], "string", "{id}: {key}");
            // Long ones are not in the manifest.
            if !fact["value"].is_null() {
                assert_eq!(*value, text_fact(fact, "value"), "{id}: {key}");
            }
        }
        "arr" => {
            if let Some(len) = fact.get("len") {
                assert_eq!(value["length"], *len, "{id}: {key}");
                assert_eq!(value["elements"].as_array().unwrap().len() as u64, len.as_u64().unwrap(), "{id}: {key}");
            }
        }
        "f32" if value.is_number() => {
            let bits = u32::from_str_radix(&fact["value_bits"].as_str().unwrap()[2..], 16).unwrap();
            let shown: f32 = value.to_string().parse().unwrap();
            assert_eq!(shown.to_bits(), bits, "{id}: {key}");
        }
        "bool" => assert_eq!(value, &fact["value"], "{id}: {key}"),
        kind @ ("u8" | "i8" | "u16" | "i16" | "u32" | "i32" | "u64" | "i64") => {
            assert_eq!(entry["type"], kind, "{id}: {key}");
            // The manifest writes 64-bit integers as strings.
            let expected = fact["value"].as_str().map_or_else(|| fact["value"].to_string(), str::to_owned);
            assert_eq!(value.to_string(), expected, "{id}: {key}");
        }
        _ => {}
    }
}
