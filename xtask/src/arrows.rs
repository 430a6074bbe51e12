//! Which crate may know which, and where unsafe code may stand: the design, held against the manifests and
//! the sources.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use crate::Result;
use crate::project::{cargo, output, root};

/// What a crate's manifest may name of the project. A new crate is one more row.
const ARROWS: &[(&str, &[&str])] = &[
    ("gguf2st-gguf", &[]),
    ("gguf2st-source", &[]),
    ("gguf2st-quants", &["gguf2st-gguf"]),
    ("gguf2st-convert", &["gguf2st-gguf", "gguf2st-quants", "gguf2st-source"]),
    ("gguf2st-registry", &["gguf2st-gguf", "gguf2st-source", "gguf2st-convert"]),
    ("gguf2st-server", &["gguf2st-gguf", "gguf2st-quants", "gguf2st-source", "gguf2st-convert", "gguf2st-registry"]),
    (
        "gguf2st-cli",
        &["gguf2st-gguf", "gguf2st-quants", "gguf2st-source", "gguf2st-convert", "gguf2st-registry", "gguf2st-server"],
    ),
    ("xtask", &["gguf2st-gguf"]),
];

/// What a crate that is light may use of other people's.
const LIGHT: &[(&str, &[&str])] = &[
    ("gguf2st-gguf", &["bstr", "bytemuck", "bytes", "thiserror"]),
    ("gguf2st-quants", &["bytemuck", "half", "thiserror"]),
];

/// Files and folders that may hold unsafe code.
const UNSAFE: &[&str] = &[
    "crates/quants/src/arch",         // the instructions themselves
    "crates/quants/src/block/mod.rs", // bytes seen as blocks
    "crates/source/src/mmap.rs",      // the mapping …
    "crates/source/src/sigbus.rs",    // … the signal of one cut short
    "crates/source/src/os.rs",        // … and its pages given back
];

/// Checks all of it; gives a line for each thing checked.
pub(crate) fn check() -> Result<Vec<String>> {
    let metadata: Json =
        serde_json::from_str(&output(&mut cargo(&["metadata", "--no-deps", "--format-version", "1"]))?)?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    let mut faults = Vec::new();
    let mut lines = Vec::new();
    let own: BTreeSet<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    for package in packages {
        let name = package["name"].as_str().ok_or("a package without a name")?;
        let Some((_, allowed)) = ARROWS.iter().find(|(from, _)| *from == name) else {
            faults.push(format!("no arrows are stated for {name}"));
            continue;
        };
        let named: BTreeSet<&str> = dependencies(package, true).filter(|to| own.contains(to)).collect();
        for to in named.iter().filter(|to| !allowed.contains(to)) {
            faults.push(format!("{name} must not know {to}"));
        }
        lines.push(format!("{name} -> {}", if named.is_empty() { "none".into() } else { join(&named) }));
        if let Some((_, allowed)) = LIGHT.iter().find(|(light, _)| *light == name) {
            let used = dependencies(package, false).filter(|used| !own.contains(used));
            faults
                .extend(used.filter(|used| !allowed.contains(used)).map(|used| format!("{name} must not use {used}")));
        }
    }

    let mut sources = Vec::new();
    for folder in fs::read_dir(root().join("crates"))? {
        rust_files(&folder?.path().join("src"), &mut sources)?;
    }
    let mut doors = BTreeSet::new();
    for path in &sources {
        let relative = path.strip_prefix(root())?;
        for number in unsafe_lines(&fs::read_to_string(path)?) {
            match UNSAFE.iter().find(|door| relative.starts_with(door)) {
                Some(door) => _ = doors.insert(*door),
                None => faults.push(format!("unsafe code in {}:{number}", relative.display())),
            }
        }
    }
    lines.push(format!("unsafe code, of {} files, only in {}", sources.len(), join(&doors)));
    if faults.is_empty() { Ok(lines) } else { Err(faults.join("; ").into()) }
}

fn join(names: &BTreeSet<&str>) -> String {
    names.iter().copied().collect::<Vec<_>>().join(", ")
}

/// What a manifest names; those of tests only where `all`.
fn dependencies(package: &Json, all: bool) -> impl Iterator<Item = &str> {
    let listed = package["dependencies"].as_array().into_iter().flatten();
    listed
        .filter(move |dependency| all || dependency["kind"].is_null())
        .filter_map(|dependency| dependency["name"].as_str())
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            rust_files(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// Numbers of the lines with the keyword outside of comments and of tests, which stand last in a file.
fn unsafe_lines(source: &str) -> impl Iterator<Item = usize> {
    let has = |line: &str| {
        let code = line.split("//").next().unwrap_or_default();
        code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe")
    };
    source
        .lines()
        .take_while(|line| *line != "#[cfg(test)]")
        .enumerate()
        .filter(move |(_, line)| has(line))
        .map(|(index, _)| index + 1)
}

#[cfg(test)]
mod tests {
    #[test]
    fn unsafe_code_is_found_and_talk_of_it_is_not() {
        let found = |source| super::unsafe_lines(source).collect::<Vec<_>>();
        assert_eq!(found("fn a() {}\nunsafe fn b() {}\nlet c = unsafe{ d() };"), [2, 3]);
        assert_eq!(found("#![forbid(unsafe_code)]\n// unsafe here\nlet x = 1; /// unsafe"), [0; 0]);
        assert_eq!(found("fn a() {}\n#[cfg(test)]\nmod tests { unsafe {} }"), [0; 0]);
    }

    #[test]
    fn the_project_keeps_to_its_design() {
        super::check().map(|lines| assert!(!lines.is_empty())).expect("the arrows");
    }
}
