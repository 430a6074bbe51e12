//! JSON, streamed: nothing is collected, and no character gets out that a terminal would obey or that would
//! mislead a reader.

use std::fmt;
use std::io::{self, Write};

use gguf2st_convert::{Model, Part, Stats};
use gguf2st_gguf::{Array, Metadata, SHOWN_ELEMENTS, TensorInfo, Value, is_deceptive};
use serde::ser::{Serialize, SerializeMap as _, SerializeStruct as _, Serializer};
use serde_json::ser::Formatter;

use super::text::Extent;
use crate::query::Query;

/// Writes `document` on a line of its own.
pub(crate) fn write_json(out: &mut impl Write, document: &impl Serialize) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(&mut *out, Escaping);
    document.serialize(&mut serializer)?;
    out.write_all(b"\n")
}

/// Compact JSON with all that [`is_deceptive`] names as `\u` escapes. (C0 controls are escaped by JSON's own
/// rules before they come here.)
struct Escaping;

impl Formatter for Escaping {
    fn write_string_fragment<W: Write + ?Sized>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut start = 0;
        for (at, c) in fragment.char_indices().filter(|(_, c)| is_deceptive(*c)) {
            writer.write_all(&fragment.as_bytes()[start..at])?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            start = at + c.len_utf8();
        }
        writer.write_all(&fragment.as_bytes()[start..])
    }
}

/// Bytes as a string, or as `{"bytes":"<hex>"}` where they are no UTF-8.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'a>(pub(crate) &'a [u8]);

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match str::from_utf8(self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => one_field(serializer, "bytes", &Hex(self.0)),
        }
    }
}

struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for Hex<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn one_field<S: Serializer>(serializer: S, key: &str, value: &impl Serialize) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry(key, value)?;
    map.end()
}

/// A value, of metadata or of a tensor.
pub(crate) struct Json<'a>(pub(crate) Value<'a>, pub(crate) Extent);

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::U8(value) => serializer.serialize_u8(value),
            Value::I8(value) => serializer.serialize_i8(value),
            Value::U16(value) => serializer.serialize_u16(value),
            Value::I16(value) => serializer.serialize_i16(value),
            Value::U32(value) => serializer.serialize_u32(value),
            Value::I32(value) => serializer.serialize_i32(value),
            Value::U64(value) => serializer.serialize_u64(value),
            Value::I64(value) => serializer.serialize_i64(value),
            Value::Bool(value) => serializer.serialize_bool(value),
            Value::F32(value) if value.is_finite() => serializer.serialize_f32(value),
            Value::F64(value) if value.is_finite() => serializer.serialize_f64(value),
            Value::F32(value) => one_field(serializer, "float", &not_finite(value.into())),
            Value::F64(value) => one_field(serializer, "float", &not_finite(value)),
            Value::String(text) => Text(text).serialize(serializer),
            Value::Array(array) => serialize_array(serializer, array, self.1),
            // `Value` may grow; what this version can't write as JSON it writes as people see it.
            other => serializer.collect_str(&other),
        }
    }
}

/// JSON has no number for these.
fn not_finite(value: f64) -> &'static str {
    if value.is_nan() {
        "nan"
    } else if value > 0.0 {
        "inf"
    } else {
        "-inf"
    }
}

fn serialize_array<S: Serializer>(serializer: S, array: Array<'_>, extent: Extent) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(3))?;
    map.serialize_entry("element_type", array.element_type().name())?;
    map.serialize_entry("length", &array.len())?;
    let field = match extent {
        Extent::Brief => "head",
        Extent::Full => "elements",
    };
    map.serialize_entry(field, &Elements(array, extent))?;
    map.end()
}

struct Elements<'a>(Array<'a>, Extent);

impl Serialize for Elements<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(array, extent) = *self;
        let most = match extent {
            Extent::Brief => SHOWN_ELEMENTS,
            Extent::Full => u64::MAX,
        };
        serializer.collect_seq((0..most).zip(array.iter()).map(|(_, value)| Json(value, extent)))
    }
}

/// What `inspect --json` prints. The names and the order of its fields are a promise.
pub(crate) struct Inspected<'a> {
    pub(crate) path: &'a [u8],
    pub(crate) model: &'a Model,
    pub(crate) parameters: Option<u64>,
    pub(crate) stats: Option<&'a [Option<Stats>]>,
    pub(crate) query: Option<&'a Query>,
    pub(crate) extent: Extent,
}

impl Serialize for Inspected<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { path, model, parameters, stats, query, extent } = *self;
        let (file, parts) = (model.file(), model.parts());
        let sum = |figure: fn(&Part) -> u64| parts.iter().map(figure).fold(0, u64::saturating_add);
        let metadata = file.metadata();
        let mut document = serializer.serialize_struct("Inspected", 12)?;
        document.serialize_field("path", &Text(path))?;
        document.serialize_field("version", &file.version())?;
        document.serialize_field("byte_order", file.byte_order().name())?;
        document.serialize_field("alignment", &file.alignment())?;
        document.serialize_field("tensor_count", &sum(|part| part.file().tensors().len() as u64))?;
        document.serialize_field("metadata_count", &metadata.len())?;
        document.serialize_field("data_offset", &file.data_offset())?;
        document.serialize_field("file_size", &sum(|part| part.file().container_len()))?;
        document.serialize_field("parameters", &parameters)?;
        document.serialize_field("metadata", &Entries { metadata, query, extent })?;
        document.serialize_field("tensors", &Listing { model, stats, query })?;
        if parts.len() > 1 {
            document.serialize_field("parts", &parts.iter().map(Listed).collect::<Vec<_>>())?;
        }
        document.end()
    }
}

struct Listed<'a>(&'a Part);

impl Serialize for Listed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(part) = self;
        let mut map = serializer.serialize_struct("Part", 3)?;
        map.serialize_field("path", &Text(part.source().name().as_os_str().as_encoded_bytes()))?;
        map.serialize_field("size", &part.file().container_len())?;
        map.serialize_field("data_offset", &part.file().data_offset())?;
        map.end()
    }
}

struct Entries<'a> {
    metadata: Metadata<'a>,
    query: Option<&'a Query>,
    extent: Extent,
}

impl Serialize for Entries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let kept = self.metadata.iter().filter(|(key, _)| self.query.is_none_or(|query| query.matches(key)));
        serializer.collect_seq(kept.map(|(key, value)| Entry { key, value, extent: self.extent }))
    }
}

struct Entry<'a> {
    key: &'a [u8],
    value: Value<'a>,
    extent: Extent,
}

impl Serialize for Entry<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut entry = serializer.serialize_struct("Entry", 3)?;
        entry.serialize_field("key", &Text(self.key))?;
        entry.serialize_field("type", &self.value.type_name())?;
        entry.serialize_field("value", &Json(self.value, self.extent))?;
        entry.end()
    }
}

struct Listing<'a> {
    model: &'a Model,
    /// One a tensor, where wanted.
    stats: Option<&'a [Option<Stats>]>,
    query: Option<&'a Query>,
}

impl Serialize for Listing<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parts = self.model.parts();
        // Rooms take a pass over all offsets, so only where a tensor needs one.
        let rooms: Vec<_> = parts
            .iter()
            .map(|part| {
                let unknown = part.file().tensors().iter().any(|tensor| tensor.byte_size().is_err());
                if unknown { part.file().rooms() } else { Vec::new() }
            })
            .collect();
        let first: Vec<_> = first_positions(self.model).collect();
        let kept = self.model.tensors().enumerate();
        let kept = kept.filter(|(_, (_, tensor))| self.query.is_none_or(|query| query.matches(tensor.name)));
        serializer.collect_seq(kept.map(|(position, (part, tensor))| ListedTensor {
            tensor,
            data_offset: parts[part].file().data_offset(),
            room: rooms[part].get(position - first[part]).copied(),
            stats: self.stats.map(|stats| stats.get(position).and_then(Option::as_ref).map(Figures)),
            part: (parts.len() > 1).then_some(part + 1),
        }))
    }
}

/// The position of each part's first tensor among those of all parts.
pub(super) fn first_positions(model: &Model) -> impl Iterator<Item = usize> {
    model.parts().iter().scan(0, |position, part| {
        let first = *position;
        *position += part.file().tensors().len();
        Some(first)
    })
}

struct ListedTensor<'a> {
    tensor: TensorInfo<'a>,
    data_offset: u64,
    room: Option<u64>,
    /// `None` where they are not wanted, `Some(None)` where they can't be had.
    stats: Option<Option<Figures<'a>>>,
    /// Of a set, from one.
    part: Option<usize>,
}

impl Serialize for ListedTensor<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { tensor, data_offset, room, stats, part } = self;
        let bytes = tensor.byte_size().ok();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &Text(tensor.name))?;
        map.serialize_entry("ggml_type", &tensor.ggml_type.to_string())?;
        if tensor.ggml_type.type_size().is_none() {
            map.serialize_entry("ggml_type_id", &tensor.ggml_type.0)?;
        }
        map.serialize_entry("dims", &tensor.dims[..])?;
        map.serialize_entry("shape", &tensor.shape())?;
        // Wider than 64 bits, since a hostile offset makes the sum so.
        map.serialize_entry("offset", &(u128::from(*data_offset) + u128::from(tensor.offset)))?;
        map.serialize_entry("bytes", &bytes)?;
        if bytes.is_none() {
            map.serialize_entry("room", room)?;
        }
        if let Some(stats) = stats {
            map.serialize_entry("stats", stats)?;
        }
        if let Some(part) = part {
            map.serialize_entry("part", part)?;
        }
        map.end()
    }
}

/// The statistics of a tensor.
struct Figures<'a>(&'a Stats);

impl Serialize for Figures<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(stats) = self;
        // A deviation of huge values may be infinite.
        let float = |value: Option<f64>| value.map(|value| Json(Value::F64(value), Extent::Brief));
        let mut map = serializer.serialize_struct("Stats", 8)?;
        map.serialize_field("values", &stats.values)?;
        map.serialize_field("min", &float(stats.min))?;
        map.serialize_field("max", &float(stats.max))?;
        map.serialize_field("mean", &float(stats.mean))?;
        map.serialize_field("std", &float(stats.std))?;
        map.serialize_field("nan", &stats.nan)?;
        map.serialize_field("inf", &stats.infinite)?;
        map.serialize_field("zeros", &stats.zeros)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(value: &impl Serialize) -> String {
        let mut out = Vec::new();
        write_json(&mut out, value).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn nothing_hidden_gets_out_and_everything_comes_back() {
        let hidden: String =
            ('\0'..='\u{ffff}').chain(['\u{e0001}', '😀']).filter(|c| is_deceptive(*c) || *c > '\u{ffff}').collect();
        let shown = json(&Text(hidden.as_bytes()));
        assert!(shown.trim_end().chars().all(|c| !is_deceptive(c)), "{shown}");
        assert!(shown.contains(r"\u0085") && shown.contains(r"\u202e") && shown.contains(r"\udb40\udc01"), "{shown}");
        assert!(shown.contains("😀"));
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), hidden);
    }

    #[test]
    fn numbers_are_exact() {
        let shown = |value| json(&Json(value, Extent::Brief));
        assert_eq!(shown(Value::U64(u64::MAX)), "18446744073709551615\n");
        assert_eq!(shown(Value::I64(i64::MIN)), "-9223372036854775808\n");
        assert_eq!(shown(Value::F32(0.1)), "0.1\n");
        assert_eq!(shown(Value::F64(0.1_f32.into())), "0.10000000149011612\n");
        for bits in [0x0000_0001, 0x0080_0000, 0x3727_c5ac, 0x7f7f_ffff] {
            let text = shown(Value::F32(f32::from_bits(bits)));
            assert_eq!(text.trim().parse::<f32>().unwrap().to_bits(), bits, "{text}");
        }
        assert_eq!(shown(Value::F32(-0.0)), "-0.0\n");
        assert_eq!(shown(Value::F32(f32::NAN)), "{\"float\":\"nan\"}\n");
        assert_eq!(shown(Value::F64(f64::NEG_INFINITY)), "{\"float\":\"-inf\"}\n");
        assert_eq!(shown(Value::F32(f32::INFINITY)), "{\"float\":\"inf\"}\n");
    }

    #[test]
    fn bytes_that_are_no_text() {
        assert_eq!(json(&Text(b"a\xff")), "{\"bytes\":\"61ff\"}\n");
        assert_eq!(json(&Text("ä".as_bytes())), "\"ä\"\n");
    }
}
