//! What a file that is no GGUF is instead, told from its first bytes.

use core::fmt;

/// A format that is met under a `.gguf` name or given to a GGUF reader by mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Foreign {
    /// The text that Git LFS leaves where the file itself was not fetched.
    GitLfsPointer,
    /// A web page: an error or login page saved in the model's place.
    Html,
    /// JSON: a server's error, or an index.
    Json,
    /// A zip archive, as PyTorch checkpoints are.
    Zip,
    /// A gzip stream.
    Gzip,
    /// A zstd stream.
    Zstd,
    /// A safetensors file.
    Safetensors,
    /// A container of the older GGML family, before GGUF; its name.
    OldGgml(&'static str),
    /// Zeros: a download that was preallocated and never filled.
    Zeros,
    /// `GGUF` in another case or behind something else.
    DisplacedMagic,
}

impl Foreign {
    /// Recognises a file by its first bytes; a few hundred are enough.
    #[must_use]
    pub fn sniff(head: &[u8]) -> Option<Self> {
        let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
        let starts = |prefix: &[u8]| text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
        // The old magics are 32-bit words, so their letters stand in the file the wrong way round.
        let old = [(b"lmgg", "ggml"), (b"fmgg", "ggmf"), (b"tjgg", "ggjt"), (b"algg", "ggla")];
        if let Some((_, name)) = old.iter().find(|(magic, _)| head.starts_with(*magic)) {
            Some(Self::OldGgml(name))
        } else if starts(b"version https://git-lfs") {
            Some(Self::GitLfsPointer)
        } else if head.starts_with(b"PK\x03\x04") {
            Some(Self::Zip)
        } else if head.starts_with(b"\x1f\x8b") {
            Some(Self::Gzip)
        } else if head.starts_with(b"\x28\xb5\x2f\xfd") {
            Some(Self::Zstd)
        } else if head.len() > 8 && head[8] == b'{' && head[4..8] == [0; 4] {
            Some(Self::Safetensors)
        } else if starts(b"<!doctype") || starts(b"<html") || starts(b"<?xml") || starts(b"<head") {
            Some(Self::Html)
        } else if starts(b"{") || starts(b"[") {
            Some(Self::Json)
        } else if head.len() >= 4 && head.iter().all(|byte| *byte == 0) {
            Some(Self::Zeros)
        } else if head
            .iter()
            .take(20)
            .collect::<Vec<_>>()
            .windows(4)
            .any(|window| window.iter().zip(b"GGUF").all(|(have, want)| have.eq_ignore_ascii_case(want)))
        {
            Some(Self::DisplacedMagic)
        } else {
            None
        }
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GitLfsPointer => f.write_str("a Git LFS pointer; fetch the file itself with `git lfs pull`"),
            Self::Html => f.write_str("an HTML page; the download may have saved an error or login page"),
            Self::Json => f.write_str("JSON; the download may have saved a server's error message"),
            Self::Zip => f.write_str("a zip archive (a PyTorch checkpoint?)"),
            Self::Gzip => f.write_str("a gzip stream; unpack it first"),
            Self::Zstd => f.write_str("a zstd stream; unpack it first"),
            Self::Safetensors => f.write_str("a safetensors file"),
            Self::OldGgml(name) => {
                write!(f, "a {name} file, older than GGUF; convert it with a llama.cpp of its time")
            }
            Self::Zeros => f.write_str("nothing but zeros; the download may never have been filled in"),
            Self::DisplacedMagic => f.write_str("a GGUF file with something before its magic, or another case"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_gguf_is_named() {
        for (head, expected) in [
            (&b"version https://git-lfs.github.com/spec/v1\n"[..], Foreign::GitLfsPointer),
            (b"\n <!DOCTYPE html><html>", Foreign::Html),
            (b"{\"error\":\"not found\"}", Foreign::Json),
            (b"PK\x03\x04\x14\0", Foreign::Zip),
            (b"\x1f\x8b\x08\0", Foreign::Gzip),
            (b"\x28\xb5\x2f\xfd\0", Foreign::Zstd),
            (b"\x40\0\0\0\0\0\0\0{\"a\":", Foreign::Safetensors),
            (b"tjgg\x03\0\0\0", Foreign::OldGgml("ggjt")),
            (b"lmgg", Foreign::OldGgml("ggml")),
            (&[0; 64], Foreign::Zeros),
            (b"\xef\xbb\xbfGGUF\x03\0\0\0", Foreign::DisplacedMagic),
            (b"gguf\x03\0\0\0", Foreign::DisplacedMagic),
        ] {
            assert_eq!(Foreign::sniff(head), Some(expected), "{}", crate::Escaped(head));
        }
        assert_eq!(Foreign::sniff(b"\x7fELF\x02\x01\x01\0"), None);
        assert_eq!(Foreign::sniff(b""), None);
    }
}
