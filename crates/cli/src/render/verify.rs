//! What `verify` prints.

use std::io::{self, Write};

use gguf2st_convert::{Comparison, Difference, TensorComparison};
use gguf2st_gguf::Escaped;
use serde::ser::{Serialize, SerializeMap as _, Serializer};

use super::json::Text;
use super::units;
use crate::args::VerifyArgs;

/// A line a difference, and the sum.
pub(crate) fn write_text(out: &mut impl Write, comparison: &Comparison) -> io::Result<()> {
    for tensor in &comparison.tensors {
        if let Some(difference) = &tensor.difference {
            let name = Escaped(tensor.name.as_bytes());
            writeln!(out, "differs  {name}  {} {:?}: {difference}", tensor.dtype, tensor.shape)?;
        }
    }
    for name in &comparison.missing {
        writeln!(out, "missing  {}  the model has it, the file does not", Escaped(name.as_bytes()))?;
    }
    for name in &comparison.extra {
        writeln!(out, "extra    {}  the file has it, the model does not", Escaped(name.as_bytes()))?;
    }
    let differing = comparison.tensors.iter().filter(|tensor| !tensor.is_equal()).count();
    let equal = units::plural(comparison.tensors.len() - differing, "tensor");
    let (missing, extra) = (comparison.missing.len(), comparison.extra.len());
    if comparison.is_equal() {
        writeln!(out, "equal: {equal}, every byte")
    } else {
        writeln!(out, "not equal: {equal} equal, {differing} differ, {missing} missing, {extra} extra")
    }
}

/// `{"path","against","equal","tensors":[{"name","dtype","shape","sha256","equal"[,"difference"]}],"missing","extra"}`
pub(crate) fn write_json(out: &mut impl Write, args: &VerifyArgs, comparison: &Comparison) -> io::Result<()> {
    super::write_json(out, &Compared { args, comparison })
}

struct Compared<'a> {
    args: &'a VerifyArgs,
    comparison: &'a Comparison,
}

impl Serialize for Compared<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { args, comparison } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("path", &Text(args.output.as_os_str().as_encoded_bytes()))?;
        map.serialize_entry("against", &Text(args.against.as_os_str().as_encoded_bytes()))?;
        map.serialize_entry("equal", &comparison.is_equal())?;
        map.serialize_entry("tensors", &comparison.tensors.iter().map(Tensor).collect::<Vec<_>>())?;
        map.serialize_entry("missing", &comparison.missing)?;
        map.serialize_entry("extra", &comparison.extra)?;
        map.end()
    }
}

struct Tensor<'a>(&'a TensorComparison);

impl Serialize for Tensor<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tensor = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &tensor.name)?;
        map.serialize_entry("dtype", &tensor.dtype)?;
        map.serialize_entry("shape", &tensor.shape)?;
        map.serialize_entry("sha256", &tensor.sha256)?;
        map.serialize_entry("equal", &tensor.is_equal())?;
        match &tensor.difference {
            Some(Difference::Bytes { index, sha256, .. }) => {
                map.serialize_entry("first_difference", index)?;
                map.serialize_entry("expected_sha256", sha256)?;
            }
            Some(Difference::Kind { dtype, shape }) => {
                map.serialize_entry("expected_dtype", dtype)?;
                map.serialize_entry("expected_shape", shape)?;
            }
            _ => {}
        }
        map.end()
    }
}
