//! The Hugging Face Hub, as its servers answer and as its cache lies on disk.
#![allow(clippy::unwrap_used)] // a test may panic

mod support;

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use gguf2st_source::{Environment, Location, OpenOptions, Source, SourceError};
use support::{Reply, Server, noise, options};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// A hub that redirects to the storage of large files, as the real one does, and wants a token.
fn hub(data: &[u8]) -> (Server, Server) {
    let storage = Server::of(data);
    let to = format!("http://localhost:{}/repos/blob?Policy=p&Signature=s", storage.port());
    let hub = Server::new(move |request| match (request.path.as_str(), request.header("authorization")) {
        (
            "/hub/owner/repo/resolve/main/sub/m%201.gguf" | "/hub/owner/repo/resolve/refs%2Fpr%2F1/m.gguf",
            Some("Bearer hf_abc"),
        ) => Reply::redirect(&to).with("X-Repo-Commit", COMMIT).with("X-Linked-ETag", "\"sha\""),
        (_, Some("Bearer hf_abc")) => Reply::new(404),
        _ => Reply::new(401),
    });
    (hub, storage)
}

fn open(typed: &str, variables: &[(&str, OsString)]) -> Result<Arc<dyn Source>, SourceError> {
    let environment = Environment::only(variables.iter().cloned());
    Location::parse(typed).unwrap().open(&OpenOptions { environment, ..options() })
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn files_come_from_the_storage_and_the_token_stays_at_the_hub() {
    let data = noise(1_000_000);
    let (hub, storage) = hub(&data);
    let endpoint = ("HF_ENDPOINT", OsString::from(hub.url("/hub/")));
    let source = open("hf://owner/repo/sub/m 1.gguf", &[endpoint.clone(), ("HF_TOKEN", "hf_abc".into())]).unwrap();
    assert_eq!(source.name(), Path::new("hf://owner/repo/sub/m 1.gguf"));
    assert_eq!(source.read(0..1_000_000).unwrap(), data);
    assert_eq!(hub.asked(), ["GET /hub/owner/repo/resolve/main/sub/m%201.gguf bytes=0-262143"]);
    assert_eq!(storage.requests().len(), 2);
    assert!(storage.requests().iter().all(|request| request.header("authorization").is_none()));
    assert!(!format!("{source:?}").contains("hf_abc"));

    open("hf://owner/repo/m.gguf@refs/pr/1", &[endpoint.clone(), ("HUGGING_FACE_HUB_TOKEN", "hf_abc".into())]).unwrap();

    let error = open("hf://owner/repo/other.gguf", &[endpoint.clone(), ("HF_TOKEN", "hf_abc".into())]).unwrap_err();
    assert!(matches!(error, SourceError::Refused { status: 404, .. }), "{error}");
    let error = open("hf://owner/repo/m.gguf", &[endpoint.clone(), ("HF_TOKEN", "hf_wrong".into())]).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, SourceError::Refused { status: 401, .. }), "{text}");
    assert!(text.contains("HF_TOKEN") && !text.contains("hf_wrong"), "{text}");
    let error = open("hf://owner/repo/m.gguf", &[endpoint, ("HF_TOKEN", "a\nsecret".into())]).unwrap_err();
    assert!(matches!(error, SourceError::Setup { .. }) && !error.to_string().contains("secret"), "{error}");
}

#[test]
fn tokens_are_found_where_the_hubs_tools_keep_them() {
    let data = noise(1000);
    let (hub, _storage) = hub(&data);
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| OsString::from(folder.path().join(path));
    for path in ["elsewhere/my-token", "hf/token", "home/.cache/huggingface/token", "cache/huggingface/token"] {
        write(&folder.path().join(path), "hf_abc\n");
    }
    for (name, value) in [
        ("HF_TOKEN_PATH", at("elsewhere/my-token")),
        ("HF_HOME", at("hf")),
        ("HOME", at("home")),
        ("XDG_CACHE_HOME", at("cache")),
    ] {
        open("hf://owner/repo/sub/m 1.gguf", &[("HF_ENDPOINT", hub.url("/hub").into()), (name, value)]).unwrap();
    }
    // What is no token is not sent, and without any the hub is asked as by anybody.
    write(&folder.path().join("hf/token"), vec![b'x'; 5000]);
    let error = open("hf://owner/repo/m.gguf", &[("HF_ENDPOINT", hub.url("/hub").into()), ("HF_HOME", at("hf"))]);
    assert!(matches!(error.unwrap_err(), SourceError::Refused { status: 401, .. }));
    assert_eq!(hub.requests().last().unwrap().header("authorization"), None);
}

#[test]
fn endpoints_that_are_none() {
    for wrong in ["huggingface", "ftp://host", "/folder", "https://host/?secret", "https://u:secret@ho st"] {
        let error = open("hf://o/r/m.gguf", &[("HF_ENDPOINT", wrong.into())]).unwrap_err();
        assert!(matches!(error, SourceError::Setup { .. }), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}

#[test]
fn what_is_in_the_cache_needs_no_network() {
    let folder = tempfile::tempdir().unwrap();
    let repo = folder.path().join("hub/models--owner--repo");
    write(&repo.join("snapshots").join(COMMIT).join("sub/m.gguf"), b"GGUF");
    write(&repo.join("refs/main"), COMMIT);
    write(&repo.join("refs/refs/pr/1"), COMMIT);
    write(&repo.join("refs/evil"), "../../../..");
    let nowhere = ("HF_ENDPOINT", OsString::from("http://name.invalid"));
    let offline = ("HF_HUB_OFFLINE", OsString::from("1"));
    for cache in [
        ("HF_HOME", OsString::from(folder.path())),
        ("HF_HUB_CACHE", OsString::from(folder.path().join("hub"))),
        ("HUGGINGFACE_HUB_CACHE", OsString::from(folder.path().join("hub"))),
    ] {
        for typed in [
            "hf://owner/repo/sub/m.gguf",
            "hf://owner/repo/sub/m.gguf@refs/pr/1",
            &format!("hf://owner/repo/sub/m.gguf@{COMMIT}"),
        ] {
            let source = open(typed, &[cache.clone(), nowhere.clone()]).unwrap();
            assert_eq!(source.read(0..4).unwrap(), b"GGUF"[..]);
            assert!(!source.is_remote());
        }
        for typed in ["hf://owner/repo/other.gguf", "hf://owner/repo/sub/m.gguf@v1", "hf://owner/repo/sub/m.gguf@evil"]
        {
            let error = open(typed, &[cache.clone(), offline.clone()]).unwrap_err();
            assert!(matches!(error, SourceError::Setup { .. }), "{error}");
            assert!(error.to_string().contains("HF_HUB_OFFLINE"), "{error}");
        }
    }
}
