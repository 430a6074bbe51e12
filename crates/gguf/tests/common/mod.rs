//! What the test binaries share: where the test data is, and a look at everything that a parsed file hands out.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use gguf2st_gguf::{GgufFile, Value};

pub fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

pub fn json(path: &Path) -> serde_json::Value {
    let text = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All facts of a file as text: two parses agree if and only if these do. Looking at all of it is also how the
/// tests find a view that panics.
pub fn everything<H: AsRef<[u8]>>(file: &GgufFile<H>) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{} {:?} {} {} {} {} {}",
        file.version(),
        file.byte_order(),
        file.alignment(),
        file.index_end(),
        file.data_offset(),
        file.head_len(),
        file.container_len()
    );
    for (key, value) in file.metadata().iter() {
        let _ = writeln!(out, "{key:?} {} {value}", value.type_name());
        let _ = match value {
            Value::Array(array) if array.element_type().size().is_some() => writeln!(out, "{:?}", array.as_bytes()),
            other => writeln!(out, "{:?}", other.to_owned()),
        };
    }
    for (tensor, room) in file.tensors().iter().zip(file.rooms()) {
        let _ = writeln!(out, "{tensor:?} {:?} {:?} {room}", tensor.shape(), file.byte_range(&tensor));
    }
    let _ = writeln!(out, "{:?} {:?}", file.by_offset(), file.gaps());
    for check in file.check() {
        let _ = writeln!(out, "{check:?}");
    }
    out
}
