//! Paths as text that a terminal can be shown.

use std::fmt::{self, Write};
use std::path::{self, Path};

/// Shows a path so that nothing in its name acts on the terminal or on the line around it.
///
/// Control characters, characters that are invisible or turn the direction of text, and bytes that
/// are not UTF-8 come out as escapes (`\n`, `\u{202e}`, `\xff`); so does the backslash, except where
/// it separates folders. All else, blanks included, is left as it is; there are no quotes around it.
///
/// ```
/// use std::path::Path;
/// use gguf2st_source::EscapedPath;
///
/// let path = Path::new("models/\u{1b}[2Jmodèle\u{202e}.gguf");
/// assert_eq!(EscapedPath(path).to_string(), r"models/\u{1b}[2Jmodèle\u{202e}.gguf");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct EscapedPath<'a>(pub &'a Path);

impl fmt::Display for EscapedPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.as_os_str().as_encoded_bytes().utf8_chunks() {
            for c in chunk.valid().chars() {
                if hidden(c) || (c == '\\' && path::MAIN_SEPARATOR != '\\') {
                    write!(f, "{}", c.escape_debug())?;
                } else {
                    f.write_char(c)?;
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// Control characters, and those of Unicode's format characters that hide or reorder text.
fn hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hidden_gets_through() {
        let raw: String = ('\0'..='\u{9f}')
            .chain('\u{202a}'..='\u{202e}')
            .chain('\u{2066}'..='\u{2069}')
            .chain(['\u{61c}', '\u{200e}', '\u{200f}', '\u{2028}', '\u{feff}'])
            .collect();
        let shown = EscapedPath(Path::new(&raw)).to_string();
        assert!(shown.chars().all(|c| (' '..='~').contains(&c)), "{shown}");
    }

    #[test]
    fn ordinary_names_are_left_alone() {
        let name = "a b/e\u{301}tude 模型 \"x\" 'y'.gguf"; // a combining accent is no format character
        assert_eq!(EscapedPath(Path::new(name)).to_string(), name);
    }

    #[cfg(unix)]
    #[test]
    fn bytes_and_backslashes() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;

        let name = OsStr::from_bytes(b"\xffa\\n\n\xe2\x80");
        assert_eq!(EscapedPath(Path::new(name)).to_string(), r"\xffa\\n\n\xe2\x80");
    }
}
