//! Conversions that are ended early: by Ctrl-C, by SIGTERM, by SIGKILL.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use gguf2st_gguf::GgmlType;
use gguf2st_gguf::write::Builder;

use crate::util::{Folder, Said};

/// 64 MiB of halves without a pattern.
fn folder() -> Folder {
    let tensors = (0..16).map(|tensor| format!("blk.{tensor}.attn_q.weight"));
    let builder = Builder::new().metadata("general.architecture", "llama");
    let builder = tensors.fold(builder, |builder, name| builder.tensor(name, &[1024, 2048], GgmlType::F16));
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let container = builder.container(|_, bytes| {
        for chunk in bytes.chunks_mut(8) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            chunk.copy_from_slice(&state.to_le_bytes());
        }
    });
    Folder::with("model.gguf", &container.expect("a container"))
}

/// Shards of two tensors, 16 MiB each.
const LINE: [&str; 7] = ["convert", "model.gguf", "out", "--shard-size", "16MiB", "--dtype", "f32"];

fn spawn(folder: &Folder, more: &[&str]) -> Child {
    let line = LINE.iter().chain(more);
    folder.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program runs")
}

fn names(folder: &Folder) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder.path("out")) else { return Vec::new() };
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn is_temporary(name: &str) -> bool {
    name.ends_with(".part")
}

/// Nothing under a final name is anything but whole.
fn all_whole(folder: &Folder) {
    for name in names(folder).iter().filter(|name| name.starts_with("model")) {
        let (found, expected) = (folder.path("out").join(name), folder.path("whole").join(name));
        assert!(fs::read(found).unwrap() == fs::read(expected).unwrap(), "{name}");
    }
}

#[test]
fn killed_runs_are_gone_on_with() {
    let folder = folder();
    let whole = LINE.map(|word| if word == "out" { "whole" } else { word });
    let start = Instant::now();
    folder.run(whole).done();
    let once = start.elapsed();
    let mut cut = 0;
    for moment in 0..6 {
        let mut child = spawn(&folder, &[]);
        sleep(once.min(Duration::from_secs(2)) * moment / 6);
        child.kill().unwrap();
        cut += usize::from(!child.wait().unwrap().success());
        all_whole(&folder);
    }
    assert!(cut > 2, "most were killed while they ran");
    let said = folder.run(LINE);
    assert_eq!((said.status, &*said.err), (0, ""), "{said:?}");
    all_whole(&folder);
    let mut made: Vec<_> =
        fs::read_dir(folder.path("whole")).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    made.sort();
    assert_eq!(names(&folder), made);
}

/// Sends a signal while a file is being made; gives what was said, and how long it took to end.
fn signalled(folder: &Folder, signal: &str, more: &[&str]) -> Option<(Said, Duration)> {
    // A load at a time by one thread: slow enough to be caught at it.
    let mut child = spawn(folder, &[&["--threads", "1", "--prefetch", "1", "--memory", "1B"], more].concat());
    let start = Instant::now();
    while !names(folder).iter().any(|name| is_temporary(name)) {
        assert!(start.elapsed() < Duration::from_secs(10), "it never begins");
        if child.try_wait().unwrap().is_some() {
            return None;
        }
        sleep(Duration::from_millis(1));
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args([&format!("-{signal}"), &pid]).status().unwrap().success());
    let start = Instant::now();
    let said = Said::of(child.wait_with_output().unwrap());
    Some((said, start.elapsed()))
}

#[test]
fn signals_end_a_run_cleanly() {
    let folder = folder();
    for (signal, status) in [("INT", 130), ("TERM", 143)] {
        let (said, took) = signalled(&folder, signal, &[]).expect("it is caught at it");
        assert_eq!((said.status, &*said.out), (status, ""), "{}", said.err);
        let expected = "gguf2st: interrupted; what was not whole is removed, and the same command goes on with what is \
                        whole\n";
        assert_eq!(said.err, expected);
        // A second is what is promised; a busy machine needs some more.
        assert!(took < Duration::from_secs(3), "{took:?}");
        assert!(!names(&folder).iter().any(|name| is_temporary(name)), "{:?}", names(&folder));
    }
    let said = folder.run(LINE);
    assert_eq!((said.status, &*said.err), (0, ""), "{said:?}");
    assert!(!names(&folder).iter().any(|name| name.starts_with('.')), "{:?}", names(&folder));
    assert_eq!(folder.run(["verify", "out", "--against", "model.gguf"]).done(), "equal: 16 tensors, every byte\n");
}

#[test]
fn a_run_into_one_file_leaves_none() {
    let folder = folder();
    let line =
        ["convert", "model.gguf", "one", "--dtype", "f32", "--threads", "1", "--prefetch", "1", "--memory", "1B"];
    let child = folder.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !folder.names().iter().any(|name| is_temporary(name)) {
        sleep(Duration::from_millis(1));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let said = Said::of(child.wait_with_output().unwrap());
    assert_eq!((said.status, &*said.err), (130, "gguf2st: interrupted; what was not whole is removed\n"));
    assert_eq!(folder.names(), ["model.gguf"]);
}
