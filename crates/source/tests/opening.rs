//! What can be opened, and what is said about the rest.
#![cfg(unix)]
#![allow(clippy::unwrap_used)] // a test may panic
#![allow(clippy::print_stderr)] // and must say what it cannot do here

use std::ffi::{CString, OsStr};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use gguf2st_source::{FileSource, MmapSource, Source, SourceError};

/// Opens with both kinds, and fails if that takes long.
fn open(path: impl Into<PathBuf>) -> [Result<Box<dyn Source>, SourceError>; 2] {
    let path = path.into();
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let file = FileSource::open(&path).map(|it| Box::new(it) as Box<dyn Source>);
        let mmap = MmapSource::open(&path).map(|it| Box::new(it) as Box<dyn Source>);
        let _ = send.send([file, mmap]);
    });
    receive.recv_timeout(Duration::from_secs(10)).expect("opening hangs")
}

fn refused(path: impl AsRef<Path>, expected: &str) {
    let path = path.as_ref();
    for result in open(path) {
        match result.unwrap_err() {
            SourceError::NotAFile { path: of, what } => assert_eq!((of.as_path(), what), (path, expected)),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn what_is_no_file_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    refused(folder.path(), "a folder");
    refused("/dev/null", "a character device");
    refused("/dev/zero", "a character device");

    let fifo = folder.path().join("fifo");
    let name = CString::new(fifo.as_os_str().as_bytes()).unwrap();
    // SAFETY: `name` is a string that ends in NUL.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    refused(&fifo, "a pipe");

    let socket = folder.path().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    refused(&socket, "a socket");

    let link = folder.path().join("link");
    symlink(&fifo, &link).unwrap();
    refused(&link, "a pipe");
}

#[test]
fn links_are_followed() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("model.gguf"), b"GGUF").unwrap();
    let link = folder.path().join("link");
    symlink("model.gguf", &link).unwrap();
    for source in open(&link) {
        let source = source.unwrap();
        assert_eq!(source.read(0..4).unwrap(), b"GGUF"[..]);
        assert_eq!(source.name(), link); // as the user called it
    }
}

#[test]
fn what_cannot_be_opened_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let dangling = folder.path().join("dangling");
    symlink("nowhere", &dangling).unwrap();
    let looping = folder.path().join("looping");
    symlink("looping", &looping).unwrap();
    for (path, code) in [
        (folder.path().join("missing"), libc::ENOENT),
        (dangling, libc::ENOENT),
        (looping, libc::ELOOP),
        (folder.path().join("x".repeat(300)), libc::ENAMETOOLONG),
        (PathBuf::new(), libc::ENOENT),
    ] {
        for result in open(&path) {
            let error = result.unwrap_err();
            let text = error.to_string();
            assert!(text.starts_with(path.to_str().unwrap()), "{text}");
            assert!(text.contains(": cannot be opened: "), "{text}");
            match error {
                SourceError::Open { path: of, error } => {
                    assert_eq!((of, error.raw_os_error()), (path.clone(), Some(code)));
                }
                other => panic!("{other}"),
            }
        }
    }
    for result in open("no\0name") {
        assert!(result.unwrap_err().to_string().starts_with("no\\0name: "));
    }
}

#[test]
fn names_are_bytes_and_messages_are_harmless() {
    let folder = tempfile::tempdir().unwrap();
    let name = b"\x1b[31mred\n\xe2\x80\xaegguf\xe2\x81\xa6\\\xc2\x9b\xff";
    let path = folder.path().join(OsStr::from_bytes(name));
    if let Err(error) = fs::write(&path, b"GGUF") {
        eprintln!("not run: the file system refuses such names: {error}");
        return;
    }
    for source in open(&path) {
        let source = source.unwrap();
        assert_eq!(source.name(), path);
        let text = source.read(3..5).unwrap_err().to_string();
        let shown = r"/\u{1b}[31mred\n\u{202e}gguf\u{2066}\\\u{9b}\xff: bytes 3 to 5 were asked for, but it has 4";
        assert!(text.ends_with(shown), "{text}");
    }
}

#[test]
fn a_file_that_says_a_wrong_length() {
    // The kernel's own files may give a length in pages, hold less, and refuse to be mapped.
    let Some(path) = ["/sys/kernel/mm/transparent_hugepage/enabled", "/sys/kernel/uevent_seqnum"]
        .into_iter()
        .find(|path| fs::metadata(path).is_ok_and(|it| it.len() > 1000))
    else {
        eprintln!("not run: there is no such file here");
        return;
    };
    let source = FileSource::open(path).unwrap();
    let error = source.read(0..source.len()).unwrap_err();
    assert!(
        matches!(error, SourceError::CutShort { found, offset, .. } if found == offset && found < source.len()),
        "{error}"
    );
    let error = MmapSource::open(path).unwrap_err();
    assert!(matches!(error, SourceError::Map { .. }), "{error}");
}
