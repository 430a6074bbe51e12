//! What is understood as which kind of address, and what is shown of it.
#![allow(clippy::unwrap_used)] // a test may panic

use std::fs;
use std::path::Path;

use gguf2st_source::{Local, Location, OpenOptions, SourceError};

fn parse(typed: &str) -> Location {
    Location::parse(typed).unwrap()
}

#[test]
fn what_looks_like_no_address_is_a_path() {
    for path in
        ["", "m.gguf", "/a/b.gguf", "./http://x/y", "ftp://host/m.gguf", "https:/x", "C:\\m.gguf", "s3:x", "a://b"]
    {
        assert_eq!(parse(path).as_path(), Some(Path::new(path)), "{path}");
    }
    assert_eq!(Location::from(Path::new("http://x/y").to_owned()).as_path(), Some(Path::new("http://x/y")));
}

#[cfg(unix)]
#[test]
fn paths_are_bytes() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let odd = OsStr::from_bytes(b"a\xff\n.gguf");
    let location = Location::parse(odd).unwrap();
    assert_eq!(location.as_path(), Some(Path::new(odd)));
    assert_eq!(location.to_string(), r"a\xff\n.gguf");
    assert_eq!(location.file_name(), None);
    assert!(Location::parse(OsStr::from_bytes(b"https://x/\xff")).is_err());
}

#[test]
fn file_addresses_are_paths() {
    assert_eq!(parse("file:///a/b%20c.gguf").as_path(), Some(Path::new("/a/b c.gguf")));
    assert_eq!(parse("FILE://localhost/a").as_path(), Some(Path::new("/a")));
    for wrong in ["file://host/a", "file://a", "file:///a?b", "file:///a%zz", "file:///a%00"] {
        assert!(Location::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn what_is_shown_holds_no_secrets() {
    for (typed, shown) in [
        ("https://example.org/a/m.gguf", "https://example.org/a/m.gguf"),
        ("HTTPS://u:p@example.org:8443/m.gguf?Signature=s#s", "https://example.org:8443/m.gguf"),
        ("http://u@s@example.org/m.gguf", "http://example.org/m.gguf"),
        ("http://example.org?secret", "http://example.org"),
        ("http://[::1]:8000/m.gguf", "http://[::1]:8000/m.gguf"),
        ("http://[::1]/m@1.gguf#?", "http://[::1]/m@1.gguf"),
        ("https://example.org/a\u{202e}b.gguf", r"https://example.org/a\u{202e}b.gguf"),
        ("s3://bucket/a/m.gguf", "s3://bucket/a/m.gguf"),
        ("gs://bucket/m.gguf", "gs://bucket/m.gguf"),
        ("az://container/m.gguf", "az://container/m.gguf"),
        ("hf://owner/repo/m.gguf", "hf://owner/repo/m.gguf"),
        ("hf://owner/repo/q4/m.gguf@refs/pr/1", "hf://owner/repo/q4/m.gguf@refs/pr/1"),
        ("ollama://llama3:8b", "ollama://llama3:8b"),
        ("ollama://host:5000/me/model", "ollama://host:5000/me/model"),
    ] {
        let location = parse(typed);
        assert_eq!(location.to_string(), shown);
        assert_eq!(format!("{location:?}"), format!("Location({shown})"));
        assert_eq!(location.as_path(), None);
    }
}

#[test]
fn what_is_wrong_is_not_shown_either() {
    for wrong in [
        "https://",
        "https:///m.gguf",
        "https://secret:se/cret@host/m.gguf",
        "https://secret@/m.gguf",
        "http://a\\b:secret@c/",
        "https://se cret@host/",
        "https://u:secret@host:port/",
        "https://secret\n@host/",
        "http://a:b:c/secret",
        "http://se%63ret/",
        "s3://secret",
        "s3://secret/",
        "s3://secret/dir/",
        "s3://key:secret@bucket/m",
        "s3:///secret",
        "s3://b/m?secret",
        "hf://secret",
        "hf://secret/repo",
        "hf://secret/repo/",
        "hf://o/r@secret/m.gguf",
        "hf://o/r/secret@",
        "hf://o/r/../secret",
        "hf://o/r/m.gguf@../secret",
        "hf://o/../secret",
        "hf://o/r/m.gguf?secret",
        "ollama://",
        "ollama://../secret",
        "ollama://a/b/c/secret",
        "ollama://m:../secret",
        "ollama://secret:",
        "ollama://a b",
        "ollama:///secret",
    ] {
        let error = Location::parse(wrong).unwrap_err();
        assert!(matches!(error, SourceError::Address { .. }), "{wrong}");
        let text = format!("{error} {error:?}");
        assert!(!text.contains("secret") && text.contains("://…: not an address: "), "{text}");
    }
}

#[test]
fn names_and_siblings() {
    for (typed, name, sibling) in [
        ("a/m.gguf", "m.gguf", "a/n.gguf"),
        ("m.gguf", "m.gguf", "n.gguf"),
        ("file:///a/m.gguf", "m.gguf", "/a/n.gguf"),
        ("http://u:p@h/a/m%201.gguf", "m 1.gguf", "http://h/a/n.gguf"),
        ("http://h/m.gguf#x", "m.gguf", "http://h/n.gguf"),
        ("s3://b/m.gguf", "m.gguf", "s3://b/n.gguf"),
        ("gs://b/a/m.gguf", "m.gguf", "gs://b/a/n.gguf"),
        ("hf://o/r/m.gguf", "m.gguf", "hf://o/r/n.gguf"),
        ("hf://o/r/a/m.gguf@v1", "m.gguf", "hf://o/r/a/n.gguf@v1"),
    ] {
        let location = parse(typed);
        assert_eq!(location.file_name().as_deref(), Some(name));
        assert_eq!(location.sibling("n.gguf").unwrap().to_string(), sibling);
        assert_eq!(location.sibling(name), Some(location.clone()), "{typed}");
        for odd in ["", ".", "..", "a/b", "a\\b", "a\nb"] {
            assert_eq!(location.sibling(odd), None);
        }
    }
    let encoded = parse("http://h/m.gguf").sibling("n ?#%.gguf").unwrap();
    assert_eq!(encoded.to_string(), "http://h/n%20%3F%23%25.gguf");
    for alone in ["ollama://m", "http://h/m.gguf?X-Amz-Signature=1", "http://h/", "http://h", ".."] {
        assert_eq!(parse(alone).sibling("n.gguf"), None, "{alone}");
    }
}

#[test]
fn paths_open_by_reads_or_by_a_mapping() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    fs::write(&path, b"GGUF").unwrap();
    let location = Location::parse(&path).unwrap();
    for local in [Local::Read, Local::Mmap] {
        let source = location.open(&OpenOptions { local, ..OpenOptions::default() }).unwrap();
        assert_eq!(source.hands_out_views(), local == Local::Mmap);
        assert_eq!(source.read(0..4).unwrap(), b"GGUF"[..]);
        assert_eq!((source.name(), source.remote_stats()), (path.as_path(), None));
        assert!(source.fetch(0..4).is_none());
    }
    let missing = location.sibling("missing.gguf").unwrap().open(&OpenOptions::default()).unwrap_err();
    assert!(matches!(missing, SourceError::Open { .. }), "{missing}");
}

#[test]
fn kinds_that_are_not_built_in_say_so() {
    for (typed, feature, built) in [
        ("https://h/m?secret", "http", cfg!(feature = "http")),
        ("s3://b/m", "object-store", cfg!(feature = "object-store")),
        ("hf://o/r/m", "hub", cfg!(feature = "hub")),
        ("ollama://m", "ollama", cfg!(feature = "ollama")),
    ] {
        if !built {
            let error = parse(typed).open(&OpenOptions::default()).unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, SourceError::FeatureOff { feature: it, .. } if it == feature), "{text}");
            assert!(text.contains(feature) && !text.contains("secret"), "{text}");
        }
    }
}
