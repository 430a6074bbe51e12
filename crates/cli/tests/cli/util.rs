//! Running the program in a folder of its own, and comparing what it says with files under `snapshots/`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use gguf2st_gguf::is_deceptive;
use gguf2st_gguf::write::Builder;
use serde_json::Value;
use tempfile::TempDir;

/// A folder in which the program is run, so that the paths it prints are the same everywhere.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    /// A folder with one file in it.
    pub(crate) fn with(name: impl AsRef<Path>, bytes: &[u8]) -> Self {
        let folder = Self::new();
        fs::write(folder.path(name), bytes).expect("a file in it");
        folder
    }

    /// A folder with `model.gguf`, whose tensors are zeros.
    pub(crate) fn with_model(builder: &Builder) -> Self {
        Self::with("model.gguf", &builder.container(|_, _| ()).expect("a container"))
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    /// The names in it, sorted: hidden files too.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("the folder can be read");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    pub(crate) fn command(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gguf2st"));
        command.current_dir(&self.0).args(args).stdin(Stdio::null());
        command.env_remove("NO_COLOR").env("TERM", "xterm");
        // Servers of tests are on this machine.
        command.env("NO_PROXY", "*").env("no_proxy", "*");
        command
    }

    pub(crate) fn run(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Said {
        Said::of(self.command(args).output().expect("the program runs"))
    }
}

/// What the program said. Both streams are checked for what no terminal may be sent.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) status: i32,
}

impl Said {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8 out");
        let said = Self {
            out: text(output.stdout),
            err: text(output.stderr),
            status: output.status.code().expect("an exit status, not a signal"),
        };
        for stream in [&said.out, &said.err] {
            let hidden = stream.chars().find(|c| is_deceptive(*c) && *c != '\n');
            assert_eq!(hidden, None, "in {stream:?}");
        }
        assert!(!said.err.contains("panicked"), "{}", said.err);
        said
    }

    /// What it printed, where it was done and had nothing to remark.
    pub(crate) fn done(self) -> String {
        assert_eq!((self.status, &*self.err), (0, ""));
        self.out
    }

    /// What it printed where it found something to object to.
    pub(crate) fn found(self) -> String {
        assert_eq!((self.status, &*self.err), (1, ""), "{}", self.out);
        self.out
    }

    /// What it complained of, where it could not be done.
    pub(crate) fn refused(self) -> String {
        assert_eq!(self.status, 2, "{self:?}");
        assert_eq!(self.err.matches('\n').count(), 1, "one line: {:?}", self.err);
        self.err
    }
}

/// The small model that lies in the repository: tensors of six types.
pub(crate) fn tiny() -> PathBuf {
    testdata("tiny-llama.gguf")
}

/// The header of a safetensors file: its tensors by name, without `__metadata__`.
pub(crate) fn safetensors(file: &[u8]) -> serde_json::Map<String, Value> {
    let (length, rest) = file.split_first_chunk().expect("a length");
    let length = usize::try_from(u64::from_le_bytes(*length)).expect("a length");
    let mut header: serde_json::Map<_, _> = serde_json::from_slice(&rest[..length]).expect("a header of JSON");
    header.remove("__metadata__").expect("a string map");
    header
}

/// A file of the corpus.
pub(crate) fn corpus(name: &str) -> PathBuf {
    testdata("corpus").join(name)
}

/// A file or folder of the test data.
pub(crate) fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

/// Compares text with a file under `snapshots/`; with `UPDATE_SNAPSHOTS` set, writes the file instead.
#[track_caller]
pub(crate) fn assert_snapshot(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/snapshots").join(name);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(&path, actual).expect("the snapshot can be written");
        return;
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        expected == actual,
        "{} differs; if the new text is right, run with UPDATE_SNAPSHOTS=1.\n--- expected\n{expected}\n--- actual\n{actual}",
        path.display()
    );
}
