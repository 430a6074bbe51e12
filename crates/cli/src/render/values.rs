//! What `inspect --values` prints.

use std::io::{self, Write};
use std::path::Path;

use gguf2st_convert::Number;
use gguf2st_gguf::{TensorInfo, Value};
use serde::ser::{Serialize, SerializeStruct as _, Serializer};

use super::json::{Json, Text};
use super::text::{Extent, Name};
use super::units;

/// A tensor and its first values, in row-major order.
pub(crate) struct First<'a> {
    pub(crate) path: &'a Path,
    pub(crate) tensor: TensorInfo<'a>,
    pub(crate) values: &'a [Number],
}

/// The tensor's line, then a line a value with its place, counted from 0 in row-major order.
pub(crate) fn write_text(out: &mut impl Write, first: &First<'_>) -> io::Result<()> {
    let First { tensor, values, .. } = first;
    let name = Name(tensor.name, Extent::Full);
    writeln!(out, "{name}  {}  {:?}", tensor.ggml_type, tensor.shape())?;
    let width = values.len().saturating_sub(1).to_string().len();
    for (place, number) in values.iter().enumerate() {
        writeln!(out, "{place:>width$}  {}", value(*number))?;
    }
    match tensor.dims.values().unwrap_or(u64::MAX).saturating_sub(values.len() as u64) {
        0 => Ok(()),
        left => writeln!(out, "… +{} more", units::grouped(left)),
    }
}

/// `{"path","name","ggml_type","shape","values"}`
pub(crate) fn write_json(out: &mut impl Write, first: &First<'_>) -> io::Result<()> {
    super::write_json(out, first)
}

impl Serialize for First<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { path, tensor, values } = self;
        let mut document = serializer.serialize_struct("First", 5)?;
        document.serialize_field("path", &Text(path.as_os_str().as_encoded_bytes()))?;
        document.serialize_field("name", &Text(tensor.name))?;
        document.serialize_field("ggml_type", &tensor.ggml_type.to_string())?;
        document.serialize_field("shape", &tensor.shape())?;
        let values: Vec<_> = values.iter().map(|number| Json(value(*number), Extent::Brief)).collect();
        document.serialize_field("values", &values)?;
        document.end()
    }
}

/// A tensor's value, shown like one of metadata.
fn value(number: Number) -> Value<'static> {
    match number {
        Number::Integer(value) => Value::I64(value),
        Number::Float(value) => Value::F32(value),
        Number::Double(value) => Value::F64(value),
        // `Number` may grow.
        _ => Value::String("unknown".into()),
    }
}
