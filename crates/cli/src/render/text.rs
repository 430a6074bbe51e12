//! What a file contains, as text that is safe to show: whole, or its beginning and how much more there is.

use std::fmt::{self, Display as _, Write as _};

use gguf2st_gguf::{Array, Escaped, SHOWN_ELEMENTS, Value};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Columns of a string that are shown before it is shortened: two lines of an ordinary terminal.
const STRING_COLUMNS: usize = 120;
/// The same for a string inside an array, five of which stand on a line.
const ELEMENT_COLUMNS: usize = 40;
/// The same for a key or a name; none that is meant to be read is longer.
const NAME_COLUMNS: usize = 120;
/// Arrays inside arrays are shown so deep; of deeper ones, type and length.
const SHOWN_DEPTH: usize = 2;

/// How much of a value or name is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Five elements of an array, the beginning of a string.
    Brief,
    /// Everything.
    Full,
}

/// Columns that text takes on a terminal.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// A key or a name, without quotes unless it is empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name<'a>(pub(crate) &'a [u8], pub(crate) Extent);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(name, extent) = *self;
        match extent {
            _ if name.is_empty() => f.write_str("\"\""),
            Extent::Full => Escaped(name).fmt(f),
            Extent::Brief => match beginning(f, name, NAME_COLUMNS)? {
                0 => Ok(()),
                left => write!(f, "… +{}", bytes(left)),
            },
        }
    }
}

/// The type of a value with an array's length: `u32`, `array[string; 262144]`.
pub(crate) fn type_and_length(value: &Value<'_>) -> String {
    match value {
        Value::Array(array) => format!("array[{}; {}]", array.element_type(), array.len()),
        other => other.type_name(),
    }
}

/// A value: strings in quotes, arrays in brackets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown<'a>(pub(crate) Value<'a>, pub(crate) Extent);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(value, extent) = *self;
        write_value(f, &value, extent, STRING_COLUMNS, 0)
    }
}

fn write_value(
    f: &mut fmt::Formatter<'_>,
    value: &Value<'_>,
    extent: Extent,
    columns: usize,
    depth: usize,
) -> fmt::Result {
    match value {
        Value::Array(array) if extent == Extent::Brief && depth >= SHOWN_DEPTH => {
            write!(f, "array[{}; {}]", array.element_type(), array.len())
        }
        Value::Array(array) => write_array(f, array, extent, depth),
        Value::String(text) if extent == Extent::Brief => {
            f.write_char('"')?;
            match beginning(f, text, columns)? {
                0 => f.write_char('"'),
                left => write!(f, "…\" +{}", bytes(left)),
            }
        }
        other => other.fmt(f),
    }
}

fn write_array(f: &mut fmt::Formatter<'_>, array: &Array<'_>, extent: Extent, depth: usize) -> fmt::Result {
    let shown = match extent {
        Extent::Brief => array.len().min(SHOWN_ELEMENTS),
        Extent::Full => array.len(),
    };
    f.write_char('[')?;
    for (index, value) in (0..shown).zip(array.iter()) {
        f.write_str(if index == 0 { "" } else { ", " })?;
        write_value(f, &value, extent, ELEMENT_COLUMNS, depth + 1)?;
    }
    if array.len() > shown {
        write!(f, ", … +{} more", array.len() - shown)?;
    }
    f.write_char(']')
}

fn bytes(number: usize) -> String {
    super::units::plural(number, "byte")
}

/// Writes the beginning of `text`, escaped, as far as it fits into so many columns; gives the bytes that did
/// not.
fn beginning(f: &mut fmt::Formatter<'_>, text: &[u8], columns: usize) -> Result<usize, fmt::Error> {
    let mut written = 0;
    let mut left = text.len();
    for chunk in text.utf8_chunks() {
        let chars = chunk.valid().char_indices().map(|(at, c)| &chunk.valid().as_bytes()[at..at + c.len_utf8()]);
        for piece in chars.chain(chunk.invalid().chunks(1)) {
            let width = piece_columns(piece);
            if written + width > columns {
                return Ok(left);
            }
            Escaped(piece).fmt(f)?;
            written += width;
            left -= piece.len();
        }
    }
    Ok(0)
}

/// Columns of one character, or of one byte that is none, once escaped.
fn piece_columns(piece: &[u8]) -> usize {
    match piece {
        [b' '..=b'~'] if piece != b"\\" => 1,
        _ => {
            let escaped = Escaped(piece).to_string();
            escaped.chars().map(|c| c.width().unwrap_or(0)).sum()
        }
    }
}

/// Cuts a line into pieces of so many columns at the most, behind spaces where it has any.
pub(crate) fn wrap(mut text: &str, columns: usize) -> Vec<&str> {
    let mut lines = Vec::new();
    while text.width() > columns {
        let mut used = 0;
        let mut space = None;
        let mut end = 0;
        for (at, c) in text.char_indices() {
            used += c.width().unwrap_or(0);
            let over = used > columns;
            // A space that is over falls away with the line's end.
            if c == ' ' {
                space = Some(at + 1);
            }
            // At least one character a line, or this would never end.
            if over && at > 0 {
                break;
            }
            end = at + c.len_utf8();
        }
        let (line, rest) = text.split_at(space.unwrap_or(end));
        lines.push(line.trim_end_matches(' '));
        text = rest;
    }
    if lines.is_empty() || !text.is_empty() {
        lines.push(text);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brief(text: &str) -> String {
        Shown(Value::String(text.into()), Extent::Brief).to_string()
    }

    #[test]
    fn long_strings_are_shortened_and_say_so() {
        assert_eq!(brief("llama"), r#""llama""#);
        assert_eq!(brief(&"x".repeat(120)), format!("\"{}\"", "x".repeat(120)));
        assert_eq!(brief(&"x".repeat(1121)), format!("\"{}…\" +1,001 bytes", "x".repeat(120)));
        // Wide characters count twice, escapes as they are written.
        assert_eq!(brief(&"模".repeat(61)), format!("\"{}…\" +3 bytes", "模".repeat(60)));
        assert_eq!(brief(&"\n".repeat(61)), format!("\"{}…\" +1 byte", "\\n".repeat(60)));
    }

    #[test]
    fn names() {
        assert_eq!(Name(b"", Extent::Brief).to_string(), "\"\"");
        assert_eq!(Name(b"a\x1b\xff", Extent::Brief).to_string(), r"a\u{1b}\xff");
        assert_eq!(Name(&[b'k'; 200], Extent::Brief).to_string(), format!("{}… +80 bytes", "k".repeat(120)));
        assert_eq!(Name(&[b'k'; 200], Extent::Full).to_string(), "k".repeat(200));
    }

    #[test]
    fn lines_break_at_spaces() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("onetwothree", 4), ["onet", "woth", "ree"]);
        assert_eq!(wrap("模型模型", 5), ["模型", "模型"]);
        assert_eq!(wrap("模", 1), ["模"]);
        assert_eq!(wrap("", 4), [""]);
    }
}
