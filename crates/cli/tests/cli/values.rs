//! What looks at the values themselves: `inspect --stats`, `inspect --values`, `check --data`.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use gguf2st_gguf::write::Builder;
use gguf2st_gguf::{ByteOrder, GgmlType};
use serde_json::{Value, json};

use crate::util::{Folder, assert_snapshot, tiny};

const FLOATS: [f32; 6] = [0.1, -2.5, 0.0, -0.0, 1e-45, 3.4e38];
const UNSOUND: [f32; 6] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1.0, f32::NAN, -0.0];

/// Finite floats, floats that are not, integers, doubles, blocks, none at all.
fn folder() -> Folder {
    let builder = Builder::new()
        .metadata("general.architecture", "llama")
        .tensor("floats", &[3, 2], GgmlType::F32)
        .tensor("unsound\u{1b}[2J\n\u{202e}", &[6], GgmlType::F32)
        .tensor("nothing finite", &[2], GgmlType::F32)
        .tensor("integers", &[4], GgmlType::I64)
        .tensor("doubles", &[2], GgmlType::F64)
        .tensor("blk.0.attn_q.weight", &[32], GgmlType::Q8_0);
    let container = builder.container(|position, bytes| match position {
        0 => bytes.copy_from_slice(&FLOATS.map(f32::to_le_bytes).concat()),
        1 => bytes.copy_from_slice(&UNSOUND.map(f32::to_le_bytes).concat()),
        2 => bytes.copy_from_slice(&[f32::NAN, f32::INFINITY].map(f32::to_le_bytes).concat()),
        3 => bytes.copy_from_slice(&[i64::MIN, -1, 0, i64::MAX].map(i64::to_le_bytes).concat()),
        4 => bytes.copy_from_slice(&[0.1, -1e100].map(f64::to_le_bytes).concat()),
        _ => (0..).zip(bytes).for_each(|(value, byte)| *byte = value),
    });
    Folder::with("model.gguf", &container.unwrap())
}

/// A type without a layout in this byte order beside one with it.
fn big_endian() -> Folder {
    let builder = Builder::new()
        .format(3, ByteOrder::Big)
        .metadata("general.architecture", "llama")
        .metadata("general.quantization_version", 2_u32)
        .tensor("known", &[32], GgmlType::Q8_0)
        .tensor("no\ndecoder", &[32], GgmlType::Q5_1);
    Folder::with_model(&builder)
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("valid JSON")
}

#[test]
fn statistics() {
    let folder = folder();
    let shown = folder.run(["model.gguf", "--stats"]).done();
    assert_snapshot("values.stats.txt", &shown);
    assert_eq!(folder.run(["inspect", "model.gguf", "--stats", "--tensors"]).done(), shown);

    let shown = folder.run(["model.gguf", "--stats", "--query", "FLOATS"]).done();
    assert!(shown.starts_with("tensor ") && shown.matches("\nfloats ").count() == 2, "two tables: {shown}");
    assert_eq!(shown.lines().count(), 5, "{shown}");
    let none = folder.run(["model.gguf", "--stats", "--query", "nowhere"]).done();
    assert_eq!(none, "no metadata key or tensor that matches\n");
}

#[test]
fn statistics_as_json() {
    let folder = folder();
    let shown = folder.run(["model.gguf", "--stats", "--json"]).done();
    assert_snapshot("values.stats.json", &shown);
    let all = parsed(&shown);
    let one = parsed(&folder.run(["model.gguf", "--stats", "--json", "-q", "nothing"]).done());
    assert_eq!(one["tensors"], json!([all["tensors"][2]]));
    let none = json!({
        "values": 2, "min": null, "max": null, "mean": null, "std": null, "nan": 1, "inf": 1, "zeros": 0
    });
    assert_eq!(one["tensors"][0]["stats"], none);
    let without = parsed(&folder.run(["model.gguf", "--json"]).done());
    assert!(without["tensors"].as_array().unwrap().iter().all(|tensor| tensor.get("stats").is_none()));
}

#[test]
fn statistics_without_a_decoder() {
    let folder = big_endian();
    let shown = folder.run(["model.gguf", "--stats"]).done();
    assert!(shown.ends_with("\nno\\ndecoder  Q5_1 has no decoder for big-endian files\n"), "{shown}");
    let document = parsed(&folder.run(["model.gguf", "--stats", "--json"]).done());
    assert_eq!(
        (&document["tensors"][0]["stats"]["zeros"], &document["tensors"][1]["stats"]),
        (&32.into(), &Value::Null)
    );
    let error = folder.run(["model.gguf", "--values", "no\ndecoder"]).refused();
    assert!(error.contains("Q5_1") && error.contains("big-endian"), "{error}");
}

#[test]
fn a_model_without_tensors_has_no_statistics() {
    let folder = Folder::with_model(&Builder::new().metadata("general.architecture", "llama"));
    assert!(folder.run(["model.gguf", "--stats", "--quiet"]).done().ends_with("\nno tensors\n"));
}

#[test]
fn first_values() {
    let folder = folder();
    let values = |name: &str, more: &[&str]| folder.run([&["model.gguf", "--values", name], more].concat()).done();
    assert_eq!(values("floats", &[]), "floats  F32  [2, 3]\n0  0.1\n1  -2.5\n2  0.0\n3  -0.0\n4  1e-45\n5  3.4e38\n");
    assert_eq!(values("integers", &["--count", "1"]), "integers  I64  [4]\n0  -9223372036854775808\n… +3 more\n");
    assert_eq!(values("doubles", &["--count", "999"]), "doubles  F64  [2]\n0  0.1\n1  -1e100\n");
    assert_eq!(values("floats", &["--count", "0"]), "floats  F32  [2, 3]\n… +6 more\n");
    assert_eq!(
        values("unsound\u{1b}[2J\n\u{202e}", &["--count", "3"]),
        "unsound\\u{1b}[2J\\n\\u{202e}  F32  [6]\n0  NaN\n1  inf\n2  -inf\n… +3 more\n"
    );
    // A scale of 0x0100, then bytes 2, 3, …; places line up.
    let shown = values("blk.0.attn_q.weight", &[]);
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[17]), (18, "blk.0.attn_q.weight  Q8_0  [32]", "… +16 more"));
    assert!(lines[1].starts_with(" 0  ") && lines[16].starts_with("15  "), "{shown}");
}

#[test]
fn first_values_as_json() {
    let folder = folder();
    let values = |name: &str| folder.run(["inspect", "model.gguf", "--json", "--count=4", "--values", name]).done();
    assert_eq!(
        values("floats"),
        "{\"path\":\"model.gguf\",\"name\":\"floats\",\"ggml_type\":\"F32\",\"shape\":[2,3],\"values\":[0.1,-2.5,0.0,-0.0]}\n"
    );
    let document = parsed(&values("unsound\u{1b}[2J\n\u{202e}"));
    assert_eq!(document["values"], json!([{"float": "nan"}, {"float": "inf"}, {"float": "-inf"}, 1.0]));
    assert!(values("integers").ends_with("[-9223372036854775808,-1,0,9223372036854775807]}\n"));
}

#[test]
fn a_tensor_that_there_is_not() {
    let folder = folder();
    let error = |name: &str| folder.run(["model.gguf", "--values", name]).refused();
    assert_eq!(error("nowhere"), "gguf2st: model.gguf: no tensor is called \"nowhere\"\n");
    assert!(error("ATTN_Q").ends_with("no tensor is called \"ATTN_Q\"; did you mean \"blk.0.attn_q.weight\"?\n"));
    assert!(error("blk.0.atn_k.weight").ends_with("; did you mean \"blk.0.attn_q.weight\"?\n"));
    assert!(error("UNSOUND\u{1b}").contains(r#""UNSOUND\u{1b}"; did you mean "unsound\u{1b}[2J\n\u{202e}"?"#));
    let said = folder.run(["--values".as_ref(), "weight".as_ref(), tiny().as_os_str()]);
    let names = "did you mean \"token_embd.weight\", \"output.weight\" or \"output_norm.weight\"?\n";
    assert!(said.refused().ends_with(names));
}

#[test]
fn a_check_of_values() {
    let folder = Folder::new();
    let arguments = |more: &str| ["check".into(), "--data".into(), more.into(), tiny().into_os_string()];
    let shown = folder.run(arguments("--quiet")).done();
    assert!(shown.ends_with("\nok  values          879360 values, all finite\n"), "{shown}");
    let document = parsed(&folder.run(arguments("--json")).done());
    let last = json!({"name": "values", "verdict": "ok", "detail": "879360 values, all finite"});
    assert_eq!(document["checks"].as_array().unwrap().last(), Some(&last));
}

#[test]
fn values_that_are_not_finite_fail() {
    let folder = folder();
    let found = folder.run(["check", "--data", "model.gguf"]).found();
    let line = found.lines().find(|line| line.starts_with("FAIL")).unwrap();
    assert_eq!(
        line.split_once("values").unwrap().1.trim_start(),
        "tensor \"unsound\\u{1b}[2J\\n\\u{202e}\" has 2 NaN and 2 Inf in 6 values; \
         tensor \"nothing finite\" has 1 NaN and 1 Inf in 2 values"
    );
    let said = folder.run(["check", "model.gguf"]);
    assert_eq!(said.status, 0, "without --data nobody looks: {}", said.out);

    let builder = (0..8).fold(Builder::new().metadata("general.architecture", "llama"), |builder, tensor| {
        builder.tensor(format!("t{tensor}"), &[1], GgmlType::F32)
    });
    let container = builder.container(|_, bytes| bytes.copy_from_slice(&f32::NAN.to_le_bytes())).unwrap();
    let found = Folder::with("model.gguf", &container).run(["check", "--data", "model.gguf"]).found();
    assert!(found.contains("tensor \"t4\" has 1 NaN and 0 Inf in 1 values; and 3 more\n"), "{found}");
}

#[test]
fn values_without_a_decoder_warn() {
    let said = big_endian().run(["check", "--data", "model.gguf"]);
    assert_eq!(said.status, 0);
    let line = said.out.lines().last().unwrap();
    assert!(line.starts_with("warn  values "), "{line}");
    assert!(
        line.ends_with(
            "32 values, all finite; not looked at, having no decoder for big-endian files: \"no\\ndecoder\" (Q5_1)"
        ),
        "{line}"
    );
}

#[test]
fn values_of_an_unsound_model_are_not_looked_at() {
    let builder = Builder::new().metadata("general.architecture", "llama").tensor("t", &[4], GgmlType::F32);
    let folder = Folder::with("model.gguf", &builder.head().unwrap());
    let found = folder.run(["check", "--data", "model.gguf"]).found();
    assert!(found.ends_with("\nwarn  values          not looked at, because of what fails above\n"), "{found}");
    let document = folder.run(["check", "--data", "--json", "model.gguf"]).found();
    assert_eq!(parsed(&document)["verdict"], "fail");
    for arguments in [&["model.gguf", "--stats"][..], &["model.gguf", "--values", "t"]] {
        let error = folder.run(arguments).refused();
        assert!(error.contains("out of bounds"), "{error}");
    }
}

/// A file so large that it can't be looked at within the time of a test, mostly a hole.
fn endless() -> Option<Folder> {
    let builder =
        Builder::new().metadata("general.architecture", "llama").tensor("t", &[1 << 20, 1 << 18], GgmlType::F32);
    let folder = Folder::with("model.gguf", &builder.head().unwrap());
    let file = File::options().write(true).open(folder.path("model.gguf")).unwrap();
    let head = file.metadata().unwrap().len();
    file.set_len(head + (1 << 40)).ok().map(|()| folder)
}

#[test]
fn a_file_cut_short_meanwhile_is_an_error_and_long_work_shows_progress() {
    let Some(folder) = endless() else {
        println!("does not run here: the temporary folder can't hold a file with a hole of 1 TiB");
        return;
    };
    for arguments in [&["check", "--data", "model.gguf"][..], &["inspect", "--stats", "model.gguf"]] {
        let head = folder.path("model.gguf").metadata().unwrap().len();
        let mut child =
            folder.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program runs");
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        assert!(line.starts_with("gguf2st: decoding ") && line.contains(" of 1.00 TiB, "), "{line}");
        let file = File::options().write(true).open(folder.path("model.gguf")).unwrap();
        file.set_len(100_000).unwrap();
        let mut error = String::new();
        stderr.read_to_string(&mut error).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), &*output.stdout), (Some(2), &b""[..]), "{error}");
        let last = error.lines().last().unwrap_or_default();
        assert!(last.starts_with("gguf2st: model.gguf: cut short while in use"), "{error}");
        file.set_len(head).unwrap();
    }
}
