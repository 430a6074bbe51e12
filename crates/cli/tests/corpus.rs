//! The corpus of hostile, odd and ordinary containers given to the program: what it answers, within which time and
//! memory, and what it leaves behind. Of a split set the part is given that its entry names.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use gguf2st_gguf::is_deceptive;
use serde_json::Value as Json;

const TIME: Duration = Duration::from_secs(10);
const MEMORY_MIB: u64 = 256;

/// What the message of each class of the manifest has to say, one of.
fn phrases(class: &str) -> &'static [&'static str] {
    match class {
        "bad_alignment" => &["bad alignment"],
        "bad_bool" => &["bool"],
        "bad_key" => &["bad key"],
        "bad_metadata" => &["general.architecture", "tokenizer", "attention"],
        "bad_offset" => &["bad offset"],
        "bad_split" => &["bad split"],
        "bad_shape" => &["bad shape"],
        "bad_tensor_name" => &["bad tensor name"],
        "bad_tensor_type" => &["unknown tensor type"],
        "bad_value_type" => &["unknown value type"],
        "duplicate_key" => &["duplicate key"],
        "duplicate_tensor" => &["duplicate tensor"],
        "io" => &["folder", "pipe", "device", "No such file", "no such file", "symbolic link", "not a file"],
        "limit" => &["limit"],
        "no_tensors" => &["no tensors"],
        "not_gguf" => &["not a GGUF file"],
        "not_utf8" => &["UTF-8"],
        "out_of_bounds" => &["out of bounds"],
        "overflow" => &["overflow"],
        "overlap" => &["overlap"],
        "reserved_name" => &["reserved"],
        "truncated" => &["truncated"],
        "unsupported" => &["unsupported", "not supported"],
        "unsupported_version" => &["unsupported version"],
        other => panic!("no phrase for the class {other}"),
    }
}

/// Classes that are at fault only in the tensors' data: such a file may be looked at.
const OF_DATA: [&str; 7] =
    ["bad_offset", "bad_shape", "bad_tensor_type", "out_of_bounds", "overflow", "overlap", "truncated"];

/// One run of the program.
struct Run {
    what: String,
    status: i32,
    stdout: String,
    stderr: String,
}

impl Run {
    fn names(&self, classes: &[&str]) {
        let said = format!("{}{}", self.stdout, self.stderr);
        let named = classes.iter().any(|class| phrases(class).iter().any(|phrase| said.contains(phrase)));
        assert!(named, "{}: none of {classes:?} in {said}", self.what);
    }

    fn is(&self, status: i32) {
        assert_eq!(self.status, status, "{}: {}{}", self.what, self.stdout, self.stderr);
    }

    /// Could not be done: status 2 and one message that names the cause.
    fn refuses(&self, classes: &[&str]) {
        self.is(2);
        self.names(classes);
        let errors = self.stderr.lines().filter(|line| line.starts_with("gguf2st: ") && !line.contains("warning:"));
        assert_eq!(errors.count(), 1, "{}: one message, not {}", self.what, self.stderr);
    }
}

/// Where the program's output goes, a folder for each container.
struct Place {
    folder: tempfile::TempDir,
    limit_mib: u64,
}

impl Place {
    fn new(limit_mib: u64) -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap(), limit_mib };
        fs::create_dir(place.out("")).unwrap();
        place
    }

    /// A file of the program's own output folder.
    fn out(&self, name: &str) -> PathBuf {
        self.folder.path().join("out").join(name)
    }

    fn left_behind(&self) -> Vec<OsString> {
        fs::read_dir(self.out("")).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    /// Runs the program; whatever it is given, it ends in time and by itself, within its memory, and prints nothing
    /// that a terminal would obey.
    fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Run {
        let what = arguments.iter().map(|word| word.as_ref().to_string_lossy()).collect::<Vec<_>>().join(" ");
        let (stdout, stderr) = (self.folder.path().join("stdout"), self.folder.path().join("stderr"));
        // A bound on addresses bounds the memory in use too. Each of malloc's arenas would take 64 MiB of them.
        let limited = format!("ulimit -v {} && exec \"$0\" \"$@\"", self.limit_mib << 10);
        let mut command = Command::new("sh");
        command.args(["-c", if cfg!(target_os = "linux") { &limited } else { "exec \"$0\" \"$@\"" }]);
        command.arg(env!("CARGO_BIN_EXE_gguf2st")).args(arguments).env("MALLOC_ARENA_MAX", "1");
        command.stdin(Stdio::null());
        command.stdout(File::create(&stdout).unwrap()).stderr(File::create(&stderr).unwrap());
        let start = Instant::now();
        let mut child = command.spawn().unwrap();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if start.elapsed() > TIME {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("{what}: still running after {TIME:?}");
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let text = |path: &Path| {
            let bytes = fs::read(path).unwrap();
            let text = String::from_utf8(bytes).unwrap_or_else(|error| panic!("{what}: prints {error}"));
            let obeyed = text.chars().find(|c| is_deceptive(*c) && *c != '\n');
            assert_eq!(obeyed, None, "{what}: prints what a terminal obeys");
            text
        };
        let (stdout, stderr) = (text(&stdout), text(&stderr));
        let status = status.code().unwrap_or_else(|| panic!("{what}: {status}: {stderr}"));
        assert!((0..=2).contains(&status), "{what}: ends with {status}: {stderr}");
        Run { what, status, stdout, stderr }
    }
}

fn text(json: &Json) -> &str {
    json.as_str().unwrap_or_else(|| panic!("a string is expected, not {json}"))
}

fn accepted(verdict: &Json) -> Vec<&str> {
    verdict["accept"].as_array().map(|list| list.iter().map(text).collect()).unwrap_or_default()
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/corpus")
}

/// Gives every container of the corpus to `check`, on all cores: programs start and sync files, which waits.
fn each_container(check: impl Fn(&Json, &Path, &Place) + Sync) {
    let manifest: Json = serde_json::from_slice(&fs::read(corpus().join("manifest.json")).unwrap()).unwrap();
    let entries: Vec<&Json> = manifest["entries"].as_array().unwrap().iter().collect();
    let sets = entries.iter().filter(|entry| !entry["files"].is_null()).count();
    assert!(entries.len() > 400 && sets > 20, "only {} entries, {sets} of them sets", entries.len());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let (entries, check) = (&entries, &check);
            scope.spawn(move || {
                for entry in entries.iter().skip(worker).step_by(workers) {
                    let limit = entry["limits"]["max_rss_mib"].as_u64().unwrap_or(MEMORY_MIB);
                    check(entry, &corpus().join(text(&entry["file"])), &Place::new(limit));
                }
            });
        }
    });
}

/// The bytes of what was shown: a container, a whole set, or of a broken set the part named.
fn size_of(entry: &Json, shown: &Json) -> Json {
    let Some(files) = entry["files"].as_array() else { return entry["size"].clone() };
    let name = |path: &Json| text(path).rsplit('/').next().unwrap_or_default().to_owned();
    let named = vec![entry["file"].clone()];
    let parts = shown["parts"].as_array().map(|parts| parts.iter().map(|part| part["path"].clone()).collect());
    let parts: Vec<_> = parts.unwrap_or(named).iter().map(name).collect();
    let shown = files.iter().filter(|file| parts.contains(&name(&file["file"])));
    shown.map(|file| file["size"].as_u64().unwrap()).sum::<u64>().into()
}

#[test]
fn inspect() {
    each_container(|entry, path, place| {
        let parse = &entry["parse"];
        let shown = place.run(&[OsStr::new("inspect"), path.as_ref(), "--tensors".as_ref(), "--full".as_ref()]);
        let json = place.run(&[OsStr::new("inspect"), path.as_ref(), "--json".as_ref()]);
        assert_eq!(shown.status, json.status, "{}", json.what);
        if json.status == 0 {
            let object: Json = serde_json::from_str(&json.stdout).unwrap();
            assert_eq!(object["file_size"], size_of(entry, &object), "{}", json.what);
        }
        match text(&parse["verdict"]) {
            "ok" => shown.is(0),
            "error" if shown.status == 0 => {
                let of_data: Vec<_> = accepted(parse).into_iter().filter(|class| OF_DATA.contains(class)).collect();
                shown.names(&of_data);
            }
            "error" => shown.refuses(&accepted(parse)),
            "either" if shown.status == 0 => {}
            "either" => shown.refuses(&accepted(parse)),
            other => panic!("no such verdict: {other}"),
        }
    });
}

#[test]
fn check() {
    each_container(|entry, path, place| {
        let parse = &entry["parse"];
        let checked = place.run(&[OsStr::new("check"), path.as_ref()]);
        let json = place.run(&[OsStr::new("check"), path.as_ref(), "--json".as_ref()]);
        assert_eq!(checked.status, json.status, "{}", json.what);
        if text(&parse["verdict"]) == "error" {
            assert_ne!(checked.status, 0, "{}: {}", checked.what, checked.stdout);
            checked.names(&accepted(parse));
        } else if entry["convert"]["verdict"] == "ok" {
            checked.is(0);
        }
    });
}

#[test]
fn convert_and_restore() {
    each_container(|entry, path, place| {
        let convert = &entry["convert"];
        let (output, back) = (place.out("model.safetensors"), place.out("back"));
        let raw = [OsStr::new("--dtype"), "raw".as_ref()];
        let converted = place.run(&[&[OsStr::new("convert"), path.as_ref(), output.as_ref()], &raw[..]].concat());
        let verdict = text(&convert["verdict"]);
        if verdict == "ok" || verdict == "either" && converted.status == 0 {
            converted.is(0);
            let checked = place.run(&[OsStr::new("check"), path.as_ref()]);
            assert_eq!(checked.status, 0, "{}: converts, and fails a check: {}", checked.what, checked.stdout);
            place.run(&[OsStr::new("verify"), output.as_ref(), "--against".as_ref(), path.as_ref()]).is(0);
            place.run(&[OsStr::new("restore"), output.as_ref(), back.as_ref()]).is(0);
            let same = |path: &Path, back: &Path| fs::read(path).unwrap() == fs::read(back).unwrap();
            if entry["files"].is_null() {
                assert!(same(path, &back), "{}: restored otherwise", converted.what);
            } else {
                let parts: Vec<_> = fs::read_dir(&back).unwrap().map(|part| part.unwrap().path()).collect();
                assert!(parts.len() > 1, "{}: a set is restored to its parts", converted.what);
                for part in parts {
                    let original = path.with_file_name(part.file_name().unwrap());
                    assert!(same(&original, &part), "{}: {part:?} restored otherwise", converted.what);
                }
            }
            let mut left = place.left_behind();
            left.sort();
            assert_eq!(left, ["back", "model.safetensors"], "{}", converted.what);
        } else {
            converted.refuses(&accepted(convert));
            assert_eq!(place.left_behind(), [""; 0], "{}", converted.what);
            let checked = place.run(&[OsStr::new("check"), path.as_ref()]);
            assert_ne!(checked.status, 0, "{}: does not convert, and fails no check", checked.what);
        }
    });
}

/// The manifest's environment cases, for every command that opens a model: what a path can be besides a container.
mod environment {
    use super::*;

    fn sound() -> PathBuf {
        corpus().join("files/basic-v3.gguf")
    }

    fn every_command(model: &Path) -> Vec<Run> {
        let place = Place::new(MEMORY_MIB);
        let output = place.out("model.safetensors");
        let runs = vec![
            place.run(&[OsStr::new("inspect"), model.as_ref()]),
            place.run(&[OsStr::new("check"), model.as_ref()]),
            place.run(&[OsStr::new("convert"), model.as_ref(), output.as_ref(), "--dtype".as_ref(), "raw".as_ref()]),
        ];
        if runs.iter().any(|run| run.status != 0) {
            assert_eq!(place.left_behind(), [""; 0]);
        }
        runs
    }

    fn refused(model: &Path, classes: &[&str]) {
        for run in every_command(model) {
            // What is there and is no container fails a check; what is not there can't be looked at.
            assert_ne!(run.status, 0, "{}", run.what);
            run.names(classes);
        }
    }

    fn read(model: &Path) {
        for run in every_command(model) {
            run.is(0);
        }
    }

    #[test]
    fn a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("folder.gguf");
        fs::create_dir(&path).unwrap();
        refused(&path, &["io"]);
    }

    #[test]
    fn a_pipe_that_nobody_writes_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe.gguf");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        refused(&path, &["io"]);
    }

    #[test]
    fn links() {
        let folder = tempfile::tempdir().unwrap();
        let link = |name: &str, to: &Path| {
            let path = folder.path().join(name);
            std::os::unix::fs::symlink(to, &path).unwrap();
            path
        };
        read(&link("link.gguf", &fs::canonicalize(sound()).unwrap()));
        refused(&link("dangling.gguf", Path::new("nowhere")), &["io"]);
        refused(&link("loop.gguf", Path::new("loop.gguf")), &["io"]);
    }

    #[test]
    fn devices() {
        refused(Path::new("/dev/null"), &["io", "not_gguf", "truncated"]);
        refused(Path::new("/dev/zero"), &["io", "not_gguf"]);
    }

    #[test]
    fn odd_file_names() {
        let folder = tempfile::tempdir().unwrap();
        let long = format!("{}.gguf", "n".repeat(246 - 1));
        for name in [OsString::from_vec(b"\xff\xfe.gguf".to_vec()), long.into(), "a\x1b[2Jb.gguf".into()] {
            let path = folder.path().join(name);
            fs::copy(sound(), &path).unwrap();
            read(&path);
        }
        let dash = folder.path().join("--help.gguf");
        fs::copy(sound(), &dash).unwrap();
        let program = || {
            let mut program = Command::new(env!("CARGO_BIN_EXE_gguf2st"));
            program.current_dir(&folder);
            program
        };
        assert!(program().args(["inspect", "--", "--help.gguf"]).output().unwrap().status.success());
        assert!(program().args(["inspect", "./--help.gguf"]).output().unwrap().status.success());
    }

    #[test]
    fn an_output_that_exists_stays_as_it_was() {
        let place = Place::new(MEMORY_MIB);
        let output = place.out("model.safetensors");
        fs::write(&output, "mine").unwrap();
        let (model, output) = (sound(), output.as_os_str());
        let mut arguments = vec![OsStr::new("convert"), model.as_ref(), output, "--dtype".as_ref(), "raw".as_ref()];
        let refused = place.run(&arguments);
        refused.is(2);
        assert!(refused.stderr.contains("--force"), "{}", refused.stderr);
        assert_eq!(fs::read(output).unwrap(), b"mine");
        arguments.push("--force".as_ref());
        place.run(&arguments).is(0);
        assert_ne!(fs::read(output).unwrap(), b"mine");
        assert_eq!(place.left_behind(), ["model.safetensors"]);
    }

    #[test]
    fn outputs_that_cannot_be() {
        let place = Place::new(MEMORY_MIB);
        let convert = |output: &Path| {
            let model = sound();
            place.run(&[OsStr::new("convert"), model.as_ref(), output.as_ref(), "--dtype".as_ref(), "raw".as_ref()])
        };
        convert(&place.out("no/such/folder/model.safetensors")).is(2);
        convert(&place.out("")).is(2);
        #[cfg(target_os = "linux")]
        convert(Path::new("/dev/full")).is(2);
        assert_eq!(place.left_behind(), [""; 0]);
    }

    #[test]
    fn the_input_is_never_the_output() {
        let place = Place::new(MEMORY_MIB);
        let (model, link) = (place.out("model.gguf"), place.out("link.safetensors"));
        fs::copy(sound(), &model).unwrap();
        std::os::unix::fs::symlink(&model, &link).unwrap();
        for output in [&model, &link] {
            let words = [OsStr::new("convert"), model.as_ref(), output.as_ref()];
            let run = place.run(&[&words[..], &["--dtype".as_ref(), "raw".as_ref(), "--force".as_ref()]].concat());
            run.is(2);
            assert_eq!(fs::read(&model).unwrap(), fs::read(sound()).unwrap(), "{}", run.what);
        }
    }
}
