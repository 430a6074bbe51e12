//! Where files are not files and standard output is not there.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::util::{Folder, Said, corpus};

fn valid() -> Vec<u8> {
    fs::read(corpus("files/basic-v3.gguf")).expect("the corpus is there")
}

const COMMANDS: [&str; 2] = ["inspect", "check"];

#[test]
fn paths_that_lead_to_no_file() {
    let folder = Folder::new();
    fs::create_dir(folder.path("folder.gguf")).unwrap();
    for command in COMMANDS {
        assert!(folder.run([command, "folder.gguf"]).refused().contains("folder.gguf: not a file but a folder"));
        assert!(
            folder.run([command, "nowhere.gguf"]).refused().starts_with("gguf2st: nowhere.gguf: cannot be opened: ")
        );
        assert_eq!(folder.run([command, ""]).status, 2);
    }
}

#[cfg(target_os = "linux")] // elsewhere such names can't be made
#[test]
fn names_that_are_no_text_or_look_like_something_else() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let name = OsStr::from_bytes(b"\xff\x1b[2J.gguf");
    let folder = Folder::with(name, &valid());
    let args = |option: &'static str| [OsStr::new(option), OsStr::new("--full"), name];
    assert!(folder.run(args("-t")).done().starts_with("\\xff\\u{1b}[2J.gguf\n"));
    assert!(folder.run(args("--json")).done().starts_with(r#"{"path":{"bytes":"ff1b5b324a2e67677566"},"#));

    let folder = Folder::with("--help.gguf", &valid());
    folder.run(["--", "--help.gguf"]).done();
    folder.run(["./--help.gguf"]).done();
    let folder = Folder::with("check", &valid());
    folder.run(["./check"]).done();
    let said = folder.run(["inspect", "--\u{1b}[2J"]);
    assert_eq!(said.status, 2);
    assert!(said.err.starts_with("gguf2st: unexpected argument"), "{}", said.err);
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let folder = Folder::with("model.gguf", &fs::read(corpus("files/big-tensors-10000.gguf")).unwrap());
    for args in [&["model.gguf", "-t"][..], &["model.gguf", "--json"]] {
        let mut child =
            folder.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program runs");
        let mut first = String::new();
        // One line (of JSON, part of one) is read, then the pipe is closed: the rest does not fit into it.
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        if args.contains(&"-t") {
            stdout.read_line(&mut first).unwrap();
        } else {
            stdout.fill_buf().unwrap();
        }
        drop(stdout);
        let said = Said::of(child.wait_with_output().unwrap());
        assert_eq!((said.status, &*said.err), (0, ""), "{args:?}");
    }
}

#[test]
fn a_verdict_holds_though_nobody_reads_it() {
    let folder = Folder::with("model.gguf", b"no model");
    let mut child =
        folder.command(["check", "model.gguf"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let said = Said::of(child.wait_with_output().unwrap());
    assert_eq!((said.status, &*said.err), (1, ""));
}

#[test]
fn a_full_device_is_an_error() {
    let full = std::path::Path::new("/dev/full");
    if !full.exists() {
        println!("skipped: no /dev/full here");
        return;
    }
    let folder = Folder::with("model.gguf", &valid());
    for args in [
        &["model.gguf"][..],
        &["model.gguf", "--json"],
        &["check", "model.gguf"],
        &["completions", "bash"],
        &["man"],
        &["--help"],
    ] {
        let full = fs::File::options().write(true).open(full).unwrap();
        let output = folder.command(args).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let error = Said::of(output).refused();
        assert!(error.starts_with("gguf2st: standard output cannot be written: "), "{args:?}: {error}");
    }
}
