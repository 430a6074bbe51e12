//! `gguf2st man`, `gguf2st completions`, `--help` and `--version`.

use std::fs;

use crate::util::Folder;

#[test]
fn pages() {
    let folder = Folder::new();
    fs::create_dir(folder.path("man1")).unwrap();
    assert_eq!(folder.run(["man", "man1"]).done(), "");
    for page in ["", "-inspect", "-check", "-convert", "-assemble", "-restore", "-verify", "-completions", "-man"] {
        let page = format!("gguf2st{page}.1");
        let text = fs::read_to_string(folder.path("man1").join(&page)).expect(&page);
        assert!(text.contains("Examples:"), "{page}");
    }
    assert!(folder.run(["man"]).done().contains(".TH gguf2st 1"));
    assert!(folder.run(["man", "nowhere"]).refused().contains("nowhere/gguf2st.1: cannot be written: "));
}

#[test]
fn completions() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = folder.run(["completions", shell]).done();
        assert!(script.contains("inspect") && script.contains("tensors"), "{shell}");
    }
}

#[test]
fn help_and_version() {
    let folder = Folder::new();
    assert!(folder.run(["--help"]).done().contains("gguf2st <COMMAND>"));
    assert!(folder.run(["check", "--help"]).done().contains("Exit status: "));
    assert_eq!(folder.run(["--version"]).done(), format!("gguf2st {}\n", env!("CARGO_PKG_VERSION")));
    let said = folder.run([] as [&str; 0]);
    assert_eq!((said.status, &*said.out), (2, ""));
    assert!(said.err.contains("Usage:"));
}
