//! Every type against the float32 bits of ggml's C reference, with every set of kernels.

use std::path::PathBuf;

use gguf2st_quants::{ByteOrder, Decoded, GgmlType, Kernels, bf16, decode_with, f16, f32_to_bf16, f32_to_f16};
use serde_json::Value;
use sha2::{Digest, Sha256};

fn golden(name: &str) -> Vec<u8> {
    let folder: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "testdata", "golden"].iter().collect();
    let path = folder.join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One set of one type: its blocks and the reference's values.
struct Set {
    ggml_type: GgmlType,
    name: String,
    exact: bool,
    blocks: Vec<u8>,
    values: Vec<f32>,
}

/// All that the manifest names; a file that is missing or changed fails.
fn sets() -> Vec<Set> {
    let manifest: Value = serde_json::from_slice(&golden("manifest.json")).expect("the manifest is JSON");
    let mut all = Vec::new();
    for entry in manifest["types"].as_array().expect("types") {
        let Some(sets) = entry["sets"].as_object() else { continue };
        let id = entry["id"].as_u64().and_then(|id| u32::try_from(id).ok()).expect("an id");
        let type_name = entry["name"].as_str().expect("a name");
        for (set, facts) in sets {
            let name = format!("{type_name}.{set}");
            let blocks = golden(&format!("{name}.blocks"));
            let bytes = golden(&format!("{name}.f32"));
            assert_eq!(facts["blocks_sha256"], sha256(&blocks), "{name}.blocks");
            assert_eq!(facts["f32_sha256"], sha256(&bytes), "{name}.f32");
            let values = bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
            all.push(Set { ggml_type: GgmlType(id), name, exact: set != "edge", blocks, values });
        }
    }
    all
}

fn decoded<T: gguf2st_quants::Target>(kernels: Kernels, set: &Set, zero: T) -> (Vec<T>, Decoded) {
    let mut out = vec![zero; set.values.len()];
    let decoded = decode_with(kernels, set.ggml_type, ByteOrder::Little, &set.blocks, &mut out)
        .unwrap_or_else(|error| panic!("{}: {error}", set.name));
    (out, decoded)
}

#[test]
fn every_type_with_a_decoder_has_goldens_or_another_test() {
    let sets = sets();
    // Plain types are tested bit pattern by bit pattern; ggml decodes no Q8_1.
    let without = [GgmlType::F32, GgmlType::F64, GgmlType::Q8_1];
    for ggml_type in GgmlType::all() {
        let has_decoder = gguf2st_quants::can_decode(ggml_type, ByteOrder::Little).is_ok();
        let count = sets.iter().filter(|set| set.ggml_type == ggml_type).count();
        let expected = if has_decoder && !without.contains(&ggml_type) { 3 } else { 0 };
        assert_eq!(count, expected, "{ggml_type}");
    }
}

#[test]
fn f32_equals_the_reference_bit_for_bit() {
    for set in sets() {
        for kernels in Kernels::available() {
            let (out, info) = decoded(kernels, &set, 0.0_f32);
            assert_eq!(info.overflowed, 0, "{}", set.name);
            for (index, (ours, theirs)) in out.iter().zip(&set.values).enumerate() {
                let same = ours.to_bits() == theirs.to_bits() || (!set.exact && ours.is_nan() && theirs.is_nan());
                assert!(same, "{} [{index}], {}: {ours:e} for {theirs:e}", set.name, kernels.name());
            }
        }
    }
}

#[test]
fn bf16_is_the_reference_rounded_once() {
    for set in sets() {
        for kernels in Kernels::available() {
            let (out, _) = decoded(kernels, &set, bf16::ZERO);
            for (index, (ours, &theirs)) in out.iter().zip(&set.values).enumerate() {
                let theirs = f32_to_bf16(theirs);
                let same = ours.to_bits() == theirs.to_bits() || (ours.is_nan() && theirs.is_nan());
                assert!(same, "{} [{index}], {}: {ours} for {theirs}", set.name, kernels.name());
            }
        }
    }
}

#[test]
fn f16_is_the_reference_rounded_once_and_counts_what_overflows() {
    let mut overflowed_somewhere = false;
    for set in sets() {
        for kernels in Kernels::available() {
            let (out, info) = decoded(kernels, &set, f16::ZERO);
            let mut overflowed = 0;
            for (index, (ours, &value)) in out.iter().zip(&set.values).enumerate() {
                let theirs = f32_to_f16(value);
                overflowed += u64::from(value.is_finite() && theirs.is_infinite());
                let same = ours.to_bits() == theirs.to_bits() || (ours.is_nan() && theirs.is_nan());
                assert!(same, "{} [{index}], {}: {ours} for {theirs}", set.name, kernels.name());
            }
            assert_eq!(info.overflowed, overflowed, "{}, {}", set.name, kernels.name());
            overflowed_somewhere |= overflowed > 0;
        }
    }
    assert!(overflowed_somewhere, "the goldens hold values beyond f16");
}
