//! `gguf2st verify OUT --against MODEL`.

use std::fs;
use std::process::Stdio;

use gguf2st_gguf::GgmlType;
use gguf2st_gguf::write::Builder;
use serde_json::{Value, json};

use crate::util::{Folder, Said, assert_snapshot};

const NAME: &str = "name\u{1b}[2J\n\u{202e}";

fn model() -> Builder {
    Builder::new()
        .metadata("general.architecture", "llama")
        .metadata("general.quantization_version", 2_u32)
        .tensor(NAME, &[4, 2], GgmlType::F32)
        .tensor("blk.0.attn_q.weight", &[32], GgmlType::Q8_0)
}

/// A model of zeros and its conversion.
fn folder(dtype: &str) -> Folder {
    let folder = Folder::with_model(&model());
    folder.run(["convert", "--quiet", "model.gguf", "out", "--dtype", dtype]).done();
    folder
}

const TEXT: [&str; 4] = ["verify", "out", "--against", "model.gguf"];
const JSON: [&str; 5] = ["verify", "out", "--json", "--against", "model.gguf"];

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("valid JSON")
}

/// Changes the output's header, which keeps its length, or its data.
fn edit(folder: &Folder, from: &[u8], to: &[u8]) {
    assert_eq!(from.len(), to.len());
    let mut bytes = fs::read(folder.path("out")).unwrap();
    let at = bytes.windows(from.len()).position(|window| window == from).expect("it is there");
    bytes[at..at + to.len()].copy_from_slice(to);
    fs::write(folder.path("out"), bytes).unwrap();
}

#[test]
fn equal() {
    let folder = folder("auto");
    assert_eq!(folder.run(TEXT).done(), "equal: 2 tensors, every byte\n");
    assert_eq!(
        folder.run(TEXT.into_iter().chain(["--quiet", "--threads", "1"])).done(),
        "equal: 2 tensors, every byte\n"
    );
    let shown = folder.run(JSON).done();
    assert_snapshot("verify.equal.json", &shown);
    assert_eq!(parsed(&shown)["equal"], true);
}

#[test]
fn another_value() {
    for (dtype, change, shown, found) in [
        ("f32", &[0, 0, 0x40, 0xc0][..], "F32 [2, 4]: value 7 is -3.0, 0.0 is expected", json!(-3.0)),
        ("f16", &[0, 0xc2], "F16 [2, 4]: value 7 is -3.0, 0.0 is expected", json!(-3.0)),
        ("bf16", &[0xc0, 0x7f], "BF16 [2, 4]: value 7 is NaN, 0.0 is expected", json!({"float": "nan"})),
    ] {
        let folder = folder(dtype);
        // Of two tensors of one dtype, that of the later name lies at the end.
        let mut bytes = fs::read(folder.path("out")).unwrap();
        let at = bytes.len() - change.len();
        bytes[at..].copy_from_slice(change);
        fs::write(folder.path("out"), bytes).unwrap();
        assert_eq!(
            folder.run(TEXT).found(),
            format!(
                "differs  name\\u{{1b}}[2J\\n\\u{{202e}}  {shown}\nnot equal: 1 tensor equal, 1 differ, 0 missing, 0 extra\n"
            )
        );
        let document = parsed(&folder.run(JSON).found());
        assert_eq!(document["equal"], false);
        let tensor = &document["tensors"][1];
        assert_eq!((&tensor["name"], &tensor["equal"]), (&json!(NAME), &json!(false)));
        assert_eq!(
            (&tensor["first_difference"], &tensor["found"], &tensor["expected"]),
            (&json!(7), &found, &json!(0.0))
        );
        assert_ne!(tensor["sha256"], tensor["expected_sha256"]);
        assert_eq!(document["tensors"][0]["equal"], true);
    }
}

#[test]
fn another_kind() {
    let folder = folder("f32");
    edit(&folder, b"[2,4]", b"[4,2]");
    edit(&folder, br#""dtype":"F32","shape":[32]"#, br#""dtype":"F64","shape":[16]"#);
    let found = folder.run(TEXT).found();
    assert_snapshot("verify.kind.txt", &found);
    let document = parsed(&folder.run(JSON).found());
    let [first, second] = [0, 1].map(|at: usize| &document["tensors"][at]);
    assert_eq!((&first["shape"], &first["expected_shape"]), (&json!([4, 2]), &json!([2, 4])));
    assert_eq!((&second["dtype"], &second["expected_dtype"]), (&json!("F64"), &json!("U8")));
    assert_eq!(second["sha256"].as_str().map(str::len), Some(64));
}

#[test]
fn a_dtype_that_acts_on_terminals() {
    let folder = folder("f32");
    edit(&folder, br#""dtype":"F32","shape":[2,4]"#, br#""dtype":"\u001b","shape":[]"#);
    let found = folder.run(TEXT).found();
    assert!(found.contains(r"\u{202e}  \u{1b} []: F32 [2, 4] is expected"), "{found}");
    folder.run(JSON).found();
}

#[test]
fn missing_and_extra() {
    let folder = folder("auto");
    edit(&folder, b"blk.0.attn_q", b"blk.0.attn_k");
    assert_eq!(
        folder.run(TEXT).found(),
        "missing  blk.0.attn_q.weight  the model has it, the file does not\n\
         extra    blk.0.attn_k.weight  the file has it, the model does not\n\
         not equal: 1 tensor equal, 0 differ, 1 missing, 1 extra\n"
    );
    let document = parsed(&folder.run(JSON).found());
    assert_eq!(
        (&document["missing"], &document["extra"]),
        (&json!(["blk.0.attn_q.weight"]), &json!(["blk.0.attn_k.weight"]))
    );
}

#[test]
fn what_can_not_be_compared() {
    let folder = folder("auto");
    fs::write(folder.path("short"), &fs::read(folder.path("out")).unwrap()[..100]).unwrap();
    for (output, model, reason) in [
        ("model.gguf", "model.gguf", "model.gguf: not a safetensors file"),
        ("short", "model.gguf", "short: not a safetensors file"),
        ("out", "out", "not a GGUF file"),
        ("nowhere", "model.gguf", "nowhere: cannot be opened"),
        ("out", "nowhere", "nowhere: cannot be opened"),
    ] {
        let error = folder.run(["verify", output, "--against", model]).refused();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_difference_holds_though_nobody_reads_it() {
    let folder = folder("auto");
    edit(&folder, b"blk.0.attn_q", b"blk.0.attn_k");
    for arguments in [&TEXT[..], &JSON] {
        let mut child =
            folder.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program runs");
        drop(child.stdout.take());
        let said = Said::of(child.wait_with_output().unwrap());
        assert_eq!((said.status, &*said.err), (1, ""));
    }
}
