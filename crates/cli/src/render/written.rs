//! What is said of what was written.

use std::io::{self, Write};
use std::path::Path;

use gguf2st_source::EscapedPath;

use super::units;

/// A file or a folder of files that was written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wrote<'a> {
    pub(crate) path: &'a Path,
    /// How many were written, of a folder.
    pub(crate) files: Option<usize>,
    /// How many were there already.
    pub(crate) kept: usize,
    pub(crate) tensors: Option<usize>,
    /// Bytes that were written.
    pub(crate) bytes: u64,
    pub(crate) seconds: f64,
}

/// One line.
pub(crate) fn wrote(out: &mut impl Write, wrote: &Wrote<'_>) -> io::Result<()> {
    let Wrote { path, files, kept, tensors, bytes, seconds } = *wrote;
    write!(out, "wrote {}: ", EscapedPath(path))?;
    if let Some(files) = files {
        write!(out, "{}, ", units::plural(files, "file"))?;
    }
    if let Some(tensors) = tensors {
        write!(out, "{}, ", units::plural(tensors, "tensor"))?;
    }
    write!(out, "{} in {seconds:.2} s ({})", units::bytes(bytes), units::rate(bytes as f64 / seconds.max(1e-9)))?;
    if kept > 0 {
        write!(out, "; kept {} that {} whole", units::plural(kept, "file"), if kept == 1 { "was" } else { "were" })?;
    }
    writeln!(out)
}

/// One line, where all was there already.
pub(crate) fn write_complete(out: &mut impl Write, path: &Path, files: usize) -> io::Result<()> {
    let verb = if files == 1 { "is" } else { "are" };
    writeln!(out, "{}: nothing to do: {} {verb} there and whole", EscapedPath(path), units::plural(files, "file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written() {
        let file = Wrote {
            path: Path::new("a\n\u{202e}\u{1b}[2J"),
            files: None,
            kept: 0,
            tensors: Some(1),
            bytes: 1 << 20,
            seconds: 0.5,
        };
        let folder = Wrote { path: Path::new("b"), files: Some(1), kept: 2, bytes: 5, seconds: 0.0, ..file };
        let mut out = Vec::new();
        wrote(&mut out, &file).unwrap();
        wrote(&mut out, &Wrote { tensors: None, ..folder }).unwrap();
        write_complete(&mut out, Path::new("c"), 3).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "wrote a\\n\\u{202e}\\u{1b}[2J: 1 tensor, 1.00 MiB in 0.50 s (2.00 MiB/s)\n\
             wrote b: 1 file, 5 bytes in 0.00 s (4.66 GiB/s); kept 2 files that were whole\n\
             c: nothing to do: 3 files are there and whole\n"
        );
    }
}
