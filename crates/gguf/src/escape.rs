//! Text from a file, made safe to show.
//!
//! Keys, names and values are bytes that anyone may have chosen. Whatever shows them goes through
//! [`Escaped`], so that no terminal obeys them and no reader is misled by what can't be seen.

use core::fmt::{self, Write as _};

/// Shows bytes as text: printable UTF-8 as it is; control characters, bidirectional controls and
/// invisible ones as `\u{…}` (or `\n`, `\t`, `\r`); bytes that are not UTF-8 as `\x…`; a backslash doubled.
///
/// ```
/// use gguf2st_gguf::Escaped;
///
/// assert_eq!(Escaped(b"blk.0.attn_q.weight").to_string(), "blk.0.attn_q.weight");
/// assert_eq!(Escaped(b"\x1b[2J\xff\n").to_string(), r"\u{1b}[2J\xff\n");
/// assert_eq!(Escaped("a\u{202e}b".as_bytes()).to_string(), r"a\u{202e}b");
/// assert_eq!(format!("{:?}", Escaped(b"say \"hi\"")), r#""say \"hi\"""#);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Escaped<'a>(pub &'a [u8]);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '\n' => f.write_str("\\n")?,
                    '\r' => f.write_str("\\r")?,
                    '\t' => f.write_str("\\t")?,
                    '\\' => f.write_str("\\\\")?,
                    c if is_deceptive(c) => write!(f, "\\u{{{:x}}}", u32::from(c))?,
                    c => f.write_char(c)?,
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// In quotes, and quotes escaped too: where the text ends can be seen.
impl fmt::Debug for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for (index, part) in self.0.split(|byte| *byte == b'"').enumerate() {
            if index > 0 {
                f.write_str("\\\"")?;
            }
            fmt::Display::fmt(&Escaped(part), f)?;
        }
        f.write_char('"')
    }
}

/// Whether a character acts on a terminal or changes how its neighbours are seen without being seen
/// itself: C0 and C1 controls, DEL, line and paragraph separators, and Unicode's default-ignorable and
/// bidirectional format characters. The joiners U+200C and U+200D, which scripts and emoji need, count too: a
/// name that holds them is still shown whole, only escaped.
#[must_use]
pub fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
