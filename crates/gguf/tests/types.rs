//! The table of ggml types against ggml's own figures.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[allow(unreachable_pub, reason = "shared by several test binaries")]
mod common;

use std::collections::BTreeSet;

use gguf2st_gguf::GgmlType;

#[test]
fn the_table_is_ggmls_own() {
    let manifest = common::json(&common::testdata().join("golden/manifest.json"));
    let mut listed = BTreeSet::new();
    for fact in manifest["types"].as_array().unwrap() {
        let ggml_type = GgmlType(u32::try_from(fact["id"].as_u64().unwrap()).unwrap());
        assert_eq!(ggml_type.name(), fact["name"].as_str());
        assert_eq!(ggml_type.block_size(), fact["block"].as_u64(), "{ggml_type}");
        assert_eq!(ggml_type.type_size(), fact["bytes"].as_u64(), "{ggml_type}");
        listed.insert(ggml_type);
    }
    let sized: BTreeSet<_> = GgmlType::all().filter(|ggml_type| ggml_type.type_size().is_some()).collect();
    assert_eq!(sized, listed, "types that have a size");
    let removed: Vec<u32> =
        GgmlType::all().filter(|ggml_type| ggml_type.is_removed()).map(|removed| removed.0).collect();
    assert_eq!(removed, [4, 5, 31, 32, 33, 36, 37, 38]);
}
