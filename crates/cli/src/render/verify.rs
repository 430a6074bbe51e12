//! What `verify` prints.

use std::io::{self, Write};
use std::path::Path;

use gguf2st_convert::{Comparison, Difference, TensorComparison};
use gguf2st_gguf::{Escaped, Value};
use gguf2st_quants::{bf16, f16};
use serde::ser::{Serialize, SerializeMap as _, Serializer};

use super::json::{Json, Text};
use super::text::Extent;
use super::units;

/// A line a difference, and the sum.
pub(crate) fn write_text(out: &mut impl Write, comparison: &Comparison) -> io::Result<()> {
    for tensor in &comparison.tensors {
        if let Some(difference) = &tensor.difference {
            let name = Escaped(tensor.name.as_bytes());
            // The file's own word, whatever it is.
            let dtype = Escaped(tensor.dtype.as_bytes());
            write!(out, "differs  {name}  {dtype} {:?}: ", tensor.shape)?;
            match numbers(&tensor.dtype, difference) {
                // Two NaNs look the same though their bits differ.
                Some((index, found, expected)) if found.to_string() != expected.to_string() => {
                    writeln!(out, "value {index} is {found}, {expected} is expected")?;
                }
                _ => writeln!(out, "{difference}")?,
            }
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

/// The first value that differs, and what it is and should be as numbers.
fn numbers(dtype: &str, difference: &Difference) -> Option<(u64, Value<'static>, Value<'static>)> {
    let Difference::Bytes { index, found, expected, .. } = difference else { return None };
    Some((*index, number(dtype, found)?, number(dtype, expected)?))
}

/// A number of a safetensors file, little-endian; `None` for dtypes that no conversion writes.
fn number(dtype: &str, bytes: &[u8]) -> Option<Value<'static>> {
    Some(match dtype {
        "F64" => Value::F64(f64::from_le_bytes(bytes.try_into().ok()?)),
        "F32" => Value::F32(f32::from_le_bytes(bytes.try_into().ok()?)),
        "F16" => Value::F32(f16::from_le_bytes(bytes.try_into().ok()?).into()),
        "BF16" => Value::F32(bf16::from_le_bytes(bytes.try_into().ok()?).into()),
        "I64" => Value::I64(i64::from_le_bytes(bytes.try_into().ok()?)),
        "I32" => Value::I32(i32::from_le_bytes(bytes.try_into().ok()?)),
        "I16" => Value::I16(i16::from_le_bytes(bytes.try_into().ok()?)),
        "I8" => Value::I8(i8::from_le_bytes(bytes.try_into().ok()?)),
        "U8" => Value::U8(u8::from_le_bytes(bytes.try_into().ok()?)),
        _ => return None,
    })
}

/// `{"path","against","equal","tensors":[{"name","dtype","shape","sha256","equal"}…],"missing","extra"}`; of a
/// tensor that differs also what is expected.
pub(crate) fn write_json(out: &mut impl Write, path: &Path, against: &Path, comparison: &Comparison) -> io::Result<()> {
    super::write_json(out, &Compared { path, against, comparison })
}

struct Compared<'a> {
    path: &'a Path,
    against: &'a Path,
    comparison: &'a Comparison,
}

impl Serialize for Compared<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { path, against, comparison } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("path", &Text(path.as_os_str().as_encoded_bytes()))?;
        map.serialize_entry("against", &Text(against.as_os_str().as_encoded_bytes()))?;
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
            Some(difference @ Difference::Bytes { index, sha256, .. }) => {
                map.serialize_entry("first_difference", index)?;
                if let Some((_, found, expected)) = numbers(&tensor.dtype, difference) {
                    map.serialize_entry("found", &Json(found, Extent::Brief))?;
                    map.serialize_entry("expected", &Json(expected, Extent::Brief))?;
                }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_dtype() {
        for (dtype, bytes, shown) in [
            ("F64", &1e300_f64.to_le_bytes()[..], "1e300"),
            ("F32", &0.1_f32.to_le_bytes(), "0.1"),
            ("F16", &[0, 0xc0], "-2.0"),
            ("BF16", &[0x80, 0x3f], "1.0"),
            ("I64", &i64::MIN.to_le_bytes(), "-9223372036854775808"),
            ("I32", &[1, 0, 0, 0x80], "-2147483647"),
            ("I16", &[0xfe, 0xff], "-2"),
            ("I8", &[0xff], "-1"),
            ("U8", &[0xff], "255"),
        ] {
            assert_eq!(number(dtype, bytes).unwrap().to_string(), shown, "{dtype}");
        }
        assert_eq!(number("F8_E4M3", &[1]), None);
        assert_eq!(number("F32", &[1]), None);
    }
}
