//! A store as Ollama keeps it.
#![allow(clippy::unwrap_used)] // a test may panic

use std::fs;
use std::path::Path;
use std::sync::Arc;

use gguf2st_source::{Environment, Local, Location, OpenOptions, Source, SourceError};

const DIGEST: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// A manifest as `ollama pull` writes it.
fn manifest(digest: &str) -> String {
    format!(
        r#"{{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json",
        "config":{{"mediaType":"application/vnd.docker.container.image.v1+json","digest":"sha256:00","size":485}},
        "layers":[{{"mediaType":"application/vnd.ollama.image.model","digest":"{digest}","size":4}},
        {{"mediaType":"application/vnd.ollama.image.license","digest":"sha256:01","size":12403}}]}}"#
    )
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn open(typed: &str, name: &str, value: &Path) -> Result<Arc<dyn Source>, SourceError> {
    let environment = Environment::only([(name, value)]);
    let options = OpenOptions { environment, local: Local::Mmap, ..OpenOptions::default() };
    Location::parse(typed).unwrap().open(&options)
}

#[test]
fn names_lead_to_blobs() {
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join(".ollama/models");
    write(&store.join("blobs").join(format!("sha256-{DIGEST}")), b"GGUF");
    for (typed, path) in [
        ("ollama://llama3:8b", "registry.ollama.ai/library/llama3/8b"),
        ("ollama://llama3", "registry.ollama.ai/library/llama3/latest"),
        ("ollama://me/model:q4_K_M", "registry.ollama.ai/me/model/q4_K_M"),
        ("ollama://hf.co/owner/repo:Q8_0", "hf.co/owner/repo/Q8_0"),
    ] {
        let missing = open(typed, "OLLAMA_MODELS", &store).unwrap_err();
        assert!(matches!(missing, SourceError::Setup { .. }), "{missing}");
        assert!(missing.to_string().starts_with(&format!("{typed}: not in Ollama's store here: ")), "{missing}");
        write(&store.join("manifests").join(path), manifest(&format!("sha256:{DIGEST}")));
        for (name, value) in [("OLLAMA_MODELS", store.as_path()), ("HOME", home.path())] {
            let source = open(typed, name, value).unwrap();
            assert_eq!(source.read(0..4).unwrap(), b"GGUF"[..]);
            assert!(!source.is_remote() && source.hands_out_views());
        }
    }
}

#[test]
fn manifests_that_are_none() {
    let store = tempfile::tempdir().unwrap();
    let at = store.path().join("manifests/registry.ollama.ai/library/m/latest");
    let two = manifest(&format!("sha256:{DIGEST}")).replace("image.license", "image.model");
    for (text, reason) in [
        ("", "not a manifest"),
        ("[]", "lists no layers"),
        (r#"{"layers":3}"#, "lists no layers"),
        (r#"{"layers":[]}"#, "none of its layers is a model"),
        (two.as_str(), "in several layers"),
        (&manifest("sha256:../../../../etc/passwd"), "digest"),
        (&manifest(&format!("sha512:{DIGEST}")), "digest"),
        (&manifest(&format!("sha256:{DIGEST}0")), "digest"),
        (&" ".repeat(5 << 20), "is no manifest"),
    ] {
        write(&at, text);
        let error = open("ollama://m", "OLLAMA_MODELS", store.path()).unwrap_err().to_string();
        assert!(error.starts_with("ollama://m: ") && error.contains(reason), "{error}");
    }
    // A blob that was removed.
    write(&at, manifest(&format!("sha256:{DIGEST}")));
    let error = open("ollama://m", "OLLAMA_MODELS", store.path()).unwrap_err();
    assert!(matches!(error, SourceError::Open { .. }), "{error}");
}
