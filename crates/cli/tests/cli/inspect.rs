//! `gguf2st inspect MODEL` and `gguf2st MODEL`.

use gguf2st_gguf::bstr::BString;
use gguf2st_gguf::write::Builder;
use gguf2st_gguf::{ByteOrder, GgmlType, OwnedValue, ValueType};
use serde_json::{Value, json};

use crate::util::{Folder, Said, assert_snapshot, testdata};

fn strings(texts: &[&str]) -> OwnedValue {
    OwnedValue::Array(ValueType::String, texts.iter().map(|text| (*text).into()).collect())
}

/// A model as people have them, small.
fn model() -> Builder {
    Builder::new()
        .metadata("general.architecture", "llama")
        .metadata("general.name", "Tiny Llama")
        .metadata("llama.context_length", 4096_u32)
        .metadata("llama.rope.freq_base", 10_000.0_f32)
        .metadata("tokenizer.ggml.model", "gpt2")
        .metadata("tokenizer.ggml.pre", "llama-bpe")
        .metadata("tokenizer.ggml.tokens", strings(&["<s>", "</s>", "a", "b", "\n", "é", "模型"]))
        .metadata("tokenizer.ggml.bos_token_id", 0_u32)
        .metadata("tokenizer.ggml.eos_token_id", 1_u32)
        .metadata("tokenizer.chat_template", "{{ bos_token }}{% for message in messages %}\n".repeat(400).as_str())
        .metadata("general.quantization_version", 2_u32)
        .tensor("token_embd.weight", &[256, 7], GgmlType::Q4_K)
        .tensor("blk.0.attn_q.weight", &[256, 256], GgmlType::Q8_0)
        .tensor("blk.0.attn_norm.weight", &[256], GgmlType::F32)
}

/// Everything that is odd and can be written: types that ggml does not have, values that JSON does not have,
/// bytes that are no text.
fn oddities() -> Builder {
    let floats = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 1e-45, f32::MAX].map(OwnedValue::F32);
    let inner = |values: &[u8]| OwnedValue::Array(ValueType::U8, values.iter().map(|value| (*value).into()).collect());
    let long: Vec<_> = (0..7_u16).map(OwnedValue::from).collect();
    Builder::new()
        .metadata("general.architecture", "odd")
        .metadata("u64", u64::MAX)
        .metadata("i64", i64::MIN)
        .metadata("f64", 0.1_f64)
        .metadata("f64.inf", f64::NEG_INFINITY)
        .metadata("bool", true)
        .metadata("floats", OwnedValue::Array(ValueType::F32, floats.to_vec()))
        .metadata("long", OwnedValue::Array(ValueType::U16, long))
        .metadata("empty", OwnedValue::Array(ValueType::I64, Vec::new()))
        .metadata("nested", OwnedValue::Array(ValueType::Array, vec![inner(&[1, 2]), inner(&[])]))
        .metadata("text", BString::from(&b"caf\xe9"[..]))
        .metadata("terminal", "\u{1b}[2J\u{7f}\u{9b}31m\u{202e}\u{2028}\u{e0041}\"\\\t")
        .metadata(BString::from(&b"key\xff"[..]), 1_u8)
        .tensor_at(BString::from(&b"name\xff"[..]), &[2], GgmlType::F32, 0)
        .tensor_at("next year's", &[32, 2], GgmlType(77), 32)
        .tensor_at("removed", &[32], GgmlType(4), 64)
        .tensor_at("no whole block", &[33], GgmlType::Q8_0, 96)
        .tensor_at("too large", &[1 << 40, 1 << 40], GgmlType::F16, 128)
        .tensor_at("scalar", &[], GgmlType::F32, 160)
}

/// `oddities()` in a folder: its tensors have no sizes to be summed, so the data is put behind it here.
fn odd_folder() -> Folder {
    let mut bytes = oddities().head().unwrap();
    bytes.resize(bytes.len().next_multiple_of(32) + 192, 0);
    Folder::with("odd.gguf", &bytes)
}

fn parsed(said: Said) -> Value {
    assert_eq!(said.status, 0, "{said:?}");
    assert!(said.out.ends_with("}\n") && said.out.matches('\n').count() == 1, "one line");
    serde_json::from_str(&said.out).expect("valid JSON")
}

#[test]
fn a_model_as_text() {
    let folder = Folder::with_model(&model());
    let shown = folder.run(["inspect", "model.gguf", "--tensors"]).done();
    assert_snapshot("model.txt", &shown);
    assert_eq!(folder.run(["-t", "model.gguf"]).done(), shown, "inspect is what is meant without a command");
}

#[test]
fn a_model_as_json() {
    let folder = Folder::with_model(&model());
    let shown = folder.run(["inspect", "--json", "model.gguf"]).done();
    assert_snapshot("model.json", &shown);
    assert_eq!(folder.run(["--json", "model.gguf"]).done(), shown);
}

#[test]
fn oddities_as_text() {
    let folder = odd_folder();
    let said = folder.run(["odd.gguf", "-t"]);
    assert_eq!(said.status, 0);
    assert_snapshot("odd.txt", &said.out);
    for named in ["metadata_keys: ", "tensor_names: ", "tensor_shapes: ", "name\\xff"] {
        assert!(said.err.contains(named), "{}", said.err);
    }
    assert!(said.err.lines().all(|line| line.starts_with("gguf2st: warning: odd.gguf: ")), "{}", said.err);
    assert_snapshot("odd.full.txt", &folder.run(["odd.gguf", "--full", "--quiet"]).done());
}

#[test]
fn oddities_as_json() {
    let folder = odd_folder();
    assert_snapshot("odd.json", &folder.run(["odd.gguf", "--json", "--quiet"]).done());
    let document = parsed(folder.run(["odd.gguf", "--json", "--full"]));
    let value = |key: &str| {
        let entries = document["metadata"].as_array().unwrap();
        entries.iter().find(|entry| entry["key"] == key).unwrap()["value"].clone()
    };
    assert_eq!(value("terminal"), "\u{1b}[2J\u{7f}\u{9b}31m\u{202e}\u{2028}\u{e0041}\"\\\t");
    assert_eq!(value("text"), json!({"bytes": "636166e9"}));
    assert_eq!(value("long"), json!({"element_type": "u16", "length": 7, "elements": [0, 1, 2, 3, 4, 5, 6]}));
    assert_eq!(value("u64"), u64::MAX);
    assert_eq!(document["metadata"][12]["key"], json!({"bytes": "6b6579ff"}));
    assert_eq!(document["parameters"], Value::Null);
    let tensor = |at: usize| document["tensors"][at].clone();
    let unknown = json!({
        "name": "next year's", "ggml_type": "unknown(77)", "ggml_type_id": 77, "dims": [32, 2], "shape": [2, 32],
        "offset": document["data_offset"].as_u64().unwrap() + 32, "bytes": null, "room": 32
    });
    assert_eq!(tensor(1), unknown);
    assert_eq!((&tensor(2)["ggml_type"], &tensor(2)["ggml_type_id"]), (&json!("Q4_2"), &json!(4)));
    assert_eq!(
        (&tensor(3)["bytes"], &tensor(3)["room"], &tensor(3)["ggml_type_id"]),
        (&Value::Null, &json!(32), &Value::Null)
    );
    assert_eq!((&tensor(5)["dims"], &tensor(5)["bytes"]), (&json!([]), &json!(4)));
}

#[test]
fn other_versions_and_byte_orders() {
    let big = Folder::with_model(&model().format(3, ByteOrder::Big));
    let old = Folder::with_model(&model().format(1, ByteOrder::Little));
    let (big, old) = (parsed(big.run(["--json", "model.gguf"])), parsed(old.run(["--json", "model.gguf"])));
    assert_eq!((&big["version"], &big["byte_order"]), (&json!(3), &json!("big")));
    assert_eq!((&old["version"], &old["byte_order"]), (&json!(1), &json!("little")));
    assert_eq!(big["metadata"], old["metadata"]);
}

#[test]
fn a_query_keeps_what_contains_it() {
    let folder = Folder::with_model(&model());
    let shown = folder.run(["model.gguf", "--query", "CONTEXT"]).done();
    assert_eq!(shown, "key                   type  value\nllama.context_length  u32   4096\n");

    let shown = folder.run(["model.gguf", "-t", "-q", "attn_"]).done();
    assert!(shown.starts_with("tensor ") && shown.lines().count() == 3, "no summary, no metadata: {shown}");

    let document = parsed(folder.run(["model.gguf", "--json", "-q", "Token_embd"]));
    assert_eq!((&document["metadata_count"], &document["tensor_count"]), (&json!(11), &json!(3)), "of the file");
    assert_eq!(document["metadata"], json!([]));
    assert_eq!(document["tensors"].as_array().unwrap().len(), 1);

    assert_eq!(folder.run(["model.gguf", "-q", "nowhere"]).done(), "no metadata key that matches\n");
    assert_eq!(folder.run(["model.gguf", "-tq", "nowhere"]).done(), "no metadata key or tensor that matches\n");
}

#[test]
fn long_values_are_shortened_unless_full() {
    let folder = Folder::with_model(&model());
    let template = "{{ bos_token }}{% for message in messages %}\\n".repeat(400);
    let brief = folder.run(["model.gguf", "-q", "chat_template"]).done();
    assert!(brief.len() < 400 && brief.contains("…\" +17,"), "{brief}");
    let full = folder.run(["model.gguf", "-q", "chat_template", "--full"]).done();
    assert!(full.contains(&format!("\"{template}\"")), "{full}");
    let tokens = folder.run(["model.gguf", "-q", "ggml.tokens"]).done();
    assert!(tokens.contains(r#"array[string; 7]  ["<s>", "</s>", "a", "b", "\n", … +2 more]"#), "{tokens}");
    let tokens = folder.run(["model.gguf", "-q", "ggml.tokens", "--full"]).done();
    assert!(tokens.contains(r#"["<s>", "</s>", "a", "b", "\n", "é", "模型"]"#), "{tokens}");
}

#[test]
fn kinds_of_files() {
    let tensor = |builder: Builder| builder.tensor("t", &[4], GgmlType::F32);
    let typed = |kind: &str| tensor(Builder::new().metadata("general.type", kind));
    let of = |architecture: &str| Builder::new().metadata("general.architecture", architecture);
    let part = Builder::new().metadata("split.no", 1_u16).metadata("split.count", 3_u16);
    for (builder, kind) in [
        (tensor(of("llama")), "model"),
        (typed("model"), "model"),
        (typed("adapter").metadata("adapter.type", "lora"), "LoRA adapter"),
        (typed("imatrix"), "importance matrix"),
        (typed("mmproj"), "projector"),
        (tensor(of("clip")), "projector"),
        (tensor(of("controlvector")), "control vector"),
        (of("llama").metadata("tokenizer.ggml.model", "llama"), "vocabulary only"),
        (of("llama"), "metadata only"),
        (tensor(part), "model, part 2 of 3"),
    ] {
        let shown = Folder::with_model(&builder).run(["model.gguf", "--quiet"]).done();
        let line = shown.lines().find(|line| line.starts_with("  kind ")).unwrap();
        assert_eq!(line.trim_start_matches("  kind").trim_start(), kind);
    }
}

#[test]
fn real_vocabularies() {
    let folder = Folder::new();
    for (file, expected) in [
        ("ggml-vocab-llama-spm.gguf", "llama (default), 32,000 tokens"),
        ("ggml-vocab-bert-bge.gguf", "bert (bert-bge), 30,522 tokens"),
        ("ggml-vocab-gpt-2.gguf", "gpt2 (gpt-2), 50,257 tokens"),
    ] {
        let path = testdata("models").join(file);
        let shown = folder.run([&path]).done();
        assert!(shown.contains("vocabulary only\n") && shown.contains(expected), "{shown}");
        let full = folder.run(["--json".as_ref(), "--full".as_ref(), path.as_os_str()]);
        let document = parsed(full);
        let tokens =
            document["metadata"].as_array().unwrap().iter().find(|entry| entry["key"] == "tokenizer.ggml.tokens");
        let value = &tokens.unwrap()["value"];
        assert_eq!(value["elements"].as_array().unwrap().len() as u64, value["length"].as_u64().unwrap());
    }
}
