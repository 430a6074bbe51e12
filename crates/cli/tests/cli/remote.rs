//! Models behind addresses.

use std::fs;

use crate::server::Server;
use crate::util::{Folder, Said, corpus, testdata, tiny};

/// A folder with the small model and the names of its parts of a set, and a server of it.
fn served() -> (Folder, Server) {
    let folder = Folder::with("model.gguf", &fs::read(tiny()).unwrap());
    for entry in fs::read_dir(corpus("split-ok-3")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.path(entry.file_name())).unwrap();
    }
    let server = Server::of(&folder.path(""));
    (folder, server)
}

const FIRST: &str = "model-00001-of-00003.gguf";
const SECOND: &str = "model-00002-of-00003.gguf";

/// Nothing of what only the server should know.
fn without_secrets(said: &Said) {
    for text in [&said.out, &said.err] {
        assert!(!text.contains("s3cret") && !text.contains("someone") && !text.contains('?'), "{said:?}");
    }
}

#[test]
fn what_is_shown_is_what_is_shown_of_a_file() {
    let (folder, server) = served();
    let url = format!("http://someone:s3cret@{}/a/model.gguf?Signature=s3cret#s3cret", server.host());
    let shown = server.url("a/model.gguf");
    for args in [&["-t"][..], &["--json", "--full"], &["--stats"], &["--values", "token_embd.weight"], &["check"]] {
        let with = |model: &str| {
            let mut line = args.to_vec();
            line.push(model);
            folder.run(line)
        };
        let (local, remote) = (with("model.gguf"), with(&url));
        without_secrets(&remote);
        assert_eq!(
            remote.done(),
            local.done().replace("model.gguf", &shown).replace(&format!("[{shown}"), "["),
            "{args:?}"
        );
        server.asked();
    }
}

#[test]
fn a_head_takes_few_requests_and_bytes() {
    let (folder, server) = served();
    fs::copy(testdata("models/ggml-vocab-llama-spm.gguf"), folder.path("vocabulary.gguf")).unwrap();
    for model in ["model.gguf", "vocabulary.gguf"] {
        for command in ["inspect", "check"] {
            folder.run([command, &server.url(model)]).done();
            let asked = server.asked();
            assert!((1..=3).contains(&asked.len()), "{asked:?}");
            assert!(asked.iter().all(|line| line.starts_with("GET ") && line.contains("Some(")), "{asked:?}");
        }
    }
}

#[test]
fn conversions_are_the_same_to_the_byte() {
    let (folder, server) = served();
    let url = format!("{}?Signature=s3cret", server.url("model.gguf"));
    folder.run(["convert", "model.gguf", "local"]).done();
    let said = folder.run(["convert", &url, "remote", "--progress", "json"]);
    without_secrets(&said);
    assert_eq!(said.status, 0);
    let last: serde_json::Value = serde_json::from_str(said.err.lines().last().unwrap()).unwrap();
    assert_eq!(last["done"], last["total"]);
    folder.run(["convert", "model.gguf", "mapped", "--source", "mmap", "--prefetch", "1", "--memory", "1KB"]).done();
    let expected = fs::read(folder.path("local")).unwrap();
    for other in ["remote", "mapped"] {
        assert!(fs::read(folder.path(other)).unwrap() == expected, "{other}");
    }
    let said = folder.run(["verify", "local", "--against", &url, "--json"]);
    without_secrets(&said);
    assert!(said.done().contains("\"equal\":true"));
    let plan = |model: &str| folder.run(["convert", model, "out", "--dry-run", "--json", "--shard-size", "1MB"]);
    let remote = plan(&url);
    without_secrets(&remote);
    assert_eq!(remote.done(), plan("model.gguf").done());
}

#[test]
fn sets() {
    let (folder, server) = served();
    let local = folder.run([SECOND, "--json"]).done();
    let remote = folder.run([&server.url(SECOND), "--json"]).done();
    assert_eq!(remote, local.replace("\"model-", &format!("\"{}", server.url("model-"))));
    folder.run(["convert", &server.url(FIRST), "raw", "--dtype", "raw"]).done();
    folder.run(["restore", "raw", "back"]).done();
    for part in [FIRST, SECOND] {
        assert!(fs::read(folder.path(part)).unwrap() == fs::read(folder.path("back").join(part)).unwrap());
    }
    // A signature is for one file: its siblings can't be known.
    let signed = format!("{}?Signature=s3cret", server.url(FIRST));
    let said = folder.run(["check", &signed]);
    without_secrets(&said);
    assert!(said.found().contains("split_set       bad split: part \"model-00002-of-00003.gguf\": "));
    fs::remove_file(folder.path(SECOND)).unwrap();
    assert!(folder.run(["check", &server.url(FIRST)]).found().contains("404"));
}

#[test]
fn sets_whose_names_have_escapes() {
    let server = Server::of(&corpus("split-name-format"));
    let url = server.url("100%25s%20%25n%20m-00002-of-00002.gguf");
    let shown = Folder::new().run([&url, "--json"]).done();
    assert!(shown.contains("\"part\":2") && shown.contains("100%25s%20%25n%20m-00001-of-00002.gguf"), "{shown}");
}

#[test]
fn the_hub() {
    let (folder, server) = served();
    let run = |line: &[&str]| {
        let mut command = folder.command(line);
        command.env("HF_ENDPOINT", server.url("")).env("HF_TOKEN", "s3cret").env("HF_HUB_CACHE", folder.path("none"));
        let said = Said::of(command.output().unwrap());
        without_secrets(&said);
        said
    };
    run(&["convert", "hf://owner/repo/sub/model.gguf@v1", "out"]).done();
    assert!(server.asked()[0].starts_with("GET /owner/repo/resolve/v1/sub/model.gguf "));
    folder.run(["verify", "out", "--against", "model.gguf"]).done();
    assert!(run(&["hf://owner/repo/model-00001-of-00003.gguf"]).done().contains("  parts "));
    let error = run(&["hf://owner/repo/none.gguf"]).refused();
    assert!(error.starts_with("gguf2st: hf://owner/repo/none.gguf: ") && error.contains("404"), "{error}");
}

#[test]
fn addresses_that_lead_nowhere() {
    let (folder, server) = served();
    for command in ["inspect", "check"] {
        for (url, reason) in [
            (format!("http://someone:s3cret@{}/none.gguf?s3cret", server.host()), "404"),
            ("http://someone:s3cret/none.gguf".to_owned(), "there is no port number"),
            ("ollama://a:b:c".to_owned(), "it should be ollama://MODEL"),
        ] {
            let said = folder.run([command, &url]);
            without_secrets(&said);
            let error = said.refused();
            assert!(error.contains(reason), "{error}");
        }
    }
}
