//! The files that `convert` and `restore` write: where they may go, and that none is left which is not whole.

use std::fs;
use std::process::Stdio;

use crate::util::{Folder, Said, tiny};

/// The small model and its raw conversion, and what makes a file called `out` of either.
fn folder() -> Folder {
    let folder = Folder::with("model.gguf", &fs::read(tiny()).unwrap());
    folder.run(["convert", "--quiet", "model.gguf", "raw", "--dtype", "raw"]).done();
    folder
}

const CONVERT: [&str; 2] = ["convert", "model.gguf"];
const RESTORE: [&str; 2] = ["restore", "raw"];
const BOTH: [[&str; 2]; 2] = [CONVERT, RESTORE];

#[test]
fn what_exists_stays_unless_it_is_to_be_replaced() {
    for [command, input] in BOTH {
        let folder = folder();
        fs::write(folder.path("out"), b"precious").unwrap();
        let error = folder.run([command, input, "out"]).refused();
        assert_eq!(error, "gguf2st: out exists; --force replaces it\n");
        assert_eq!(fs::read(folder.path("out")).unwrap(), b"precious");
        folder.run([command, input, "out", "--force"]).done();
        assert!(fs::metadata(folder.path("out")).unwrap().len() > 100_000);
        assert_eq!(folder.names(), ["model.gguf", "out", "raw"]);
    }
}

#[cfg(unix)]
#[test]
fn the_input_is_no_output_by_any_name() {
    for [command, input] in BOTH {
        let folder = folder();
        let before = fs::read(folder.path(input)).unwrap();
        std::os::unix::fs::symlink(input, folder.path("soft")).unwrap();
        fs::hard_link(folder.path(input), folder.path("hard")).unwrap();
        let names = folder.names();
        for (from, to) in [
            (input, input),
            (input, &*format!("./{input}")),
            (input, "soft"),
            (input, "hard"),
            ("soft", "hard"),
            ("hard", input),
        ] {
            let error = folder.run([command, from, to, "--force"]).refused();
            assert!(error.ends_with(" is the file to be read; choose another output\n"), "{from} to {to}: {error}");
        }
        assert!(fs::read(folder.path(input)).unwrap() == before);
        assert_eq!(folder.names(), names);
    }
}

#[test]
fn what_can_not_take_a_file() {
    for [command, input] in BOTH {
        let folder = folder();
        fs::create_dir(folder.path("folder")).unwrap();
        let names = folder.names();
        for output in ["folder", "absent/out", "raw/out", "", "..", "/", "model.gguf/"] {
            let said = folder.run([command, input, output, "--force"]);
            assert_eq!(said.status, 2, "{output:?}: {said:?}");
        }
        assert_eq!(folder.names(), names);
        assert!(fs::read_dir(folder.path("folder")).unwrap().next().is_none());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn devices_are_no_outputs() {
    for [command, input] in BOTH {
        let error = folder().run([command, input, "/dev/null", "--force"]).refused();
        assert!(error.contains("/dev/null: it is there and no regular file"), "{error}");
    }
}

#[cfg(target_os = "linux")] // elsewhere some of these names can't be made
#[test]
fn names_that_act_on_terminals() {
    const INPUT: &str = "in\n\u{1b}[2J\u{202e}";
    const OUTPUT: &str = "out\n\u{1b}]0;title\u{7}\u{2066}\\";
    const SHOWN: &str = r"out\n\u{1b}]0;title\u{7}\u{2066}\\";
    for [command, input] in BOTH {
        let folder = folder();
        fs::rename(folder.path(input), folder.path(INPUT)).unwrap();
        let shown = folder.run([command, INPUT, OUTPUT]).done();
        assert!(shown.starts_with(&format!("wrote {SHOWN}: ")) && shown.matches('\n').count() == 1, "{shown}");
        assert_eq!(
            folder.run([command, INPUT, OUTPUT]).refused(),
            format!("gguf2st: {SHOWN} exists; --force replaces it\n")
        );
        assert!(
            folder.run([command, INPUT, INPUT]).refused().starts_with(r"gguf2st: in\n\u{1b}[2J\u{202e} is the file")
        );
        assert!(folder.run([command, OUTPUT, "absent\n/out"]).refused().contains(r"gguf2st: "));
        assert!(folder.run([command, INPUT, "absent\n/out"]).refused().contains(r"absent\n/out: "));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_standard_output_does_not_lose_the_file() {
    for [command, input] in BOTH {
        let folder = folder();
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output =
            folder.command([command, input, "out"]).stdout(full).stderr(Stdio::piped()).output().expect("it runs");
        assert!(Said::of(output).refused().starts_with("gguf2st: standard output cannot be written: "));
        assert_eq!(folder.names(), ["model.gguf", "out", "raw"]);
        folder.run([command, input, "again", "--quiet"]).done();
        assert!(fs::read(folder.path("out")).unwrap() == fs::read(folder.path("again")).unwrap());
    }
}

#[test]
fn nor_does_a_closed_one() {
    for [command, input] in BOTH {
        let folder = folder();
        let mut child = folder
            .command([command, input, "out"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        drop(child.stdout.take());
        let said = Said::of(child.wait_with_output().unwrap());
        assert_eq!((said.status, &*said.err), (0, ""));
        assert_eq!(folder.names(), ["model.gguf", "out", "raw"]);
    }
}

/// A limit on the size of files stands for a disk that is full in the middle of it.
#[cfg(target_os = "linux")]
#[test]
fn a_write_that_fails_leaves_nothing() {
    for [command, input] in BOTH {
        let folder = folder();
        let script = "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\"";
        let mut child = std::process::Command::new("sh");
        child.current_dir(folder.path("")).args(["-c", script, env!("CARGO_BIN_EXE_gguf2st"), command, input, "out"]);
        let error = Said::of(child.output().expect("a shell")).refused();
        assert!(error.starts_with("gguf2st: out: ") && error.ends_with("; nothing was kept\n"), "{error}");
        assert_eq!(folder.names(), ["model.gguf", "raw"]);
    }
}

/// A file system of its own, for as long as this lives.
#[cfg(target_os = "linux")]
struct Small<'a>(&'a Folder);

#[cfg(target_os = "linux")]
impl<'a> Small<'a> {
    /// `small` in a folder; an error says why that can't be.
    fn mount(folder: &'a Folder) -> Result<Self, String> {
        fs::create_dir(folder.path("small")).unwrap();
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"]).arg(folder.path("small"));
        match mount.output() {
            Ok(output) if output.status.success() => Ok(Self(folder)),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

#[cfg(target_os = "linux")]
impl Drop for Small<'_> {
    fn drop(&mut self) {
        let unmounted = std::process::Command::new("umount").arg(self.0.path("small")).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "it can't be unmounted");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_too_small() {
    let folder = folder();
    let small = match Small::mount(&folder) {
        Ok(small) => small,
        Err(reason) => {
            println!("does not run here: a file system can't be mounted: {reason}");
            return;
        }
    };
    for [command, input] in BOTH {
        let error = folder.run([command, input, "small/out"]).refused();
        assert!(error.contains("small: not enough room: ") && error.contains(" free"), "{error}");
        assert!(fs::read_dir(folder.path("small")).unwrap().next().is_none());
    }
    drop(small);
}

#[cfg(unix)]
#[test]
fn a_folder_that_can_not_be_written() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = folder();
    fs::create_dir(folder.path("locked")).unwrap();
    fs::set_permissions(folder.path("locked"), fs::Permissions::from_mode(0o555)).unwrap();
    if fs::write(folder.path("locked/probe"), b"").is_ok() {
        println!("does not run here: this user may write everywhere");
        return;
    }
    for [command, input] in BOTH {
        let error = folder.run([command, input, "locked/out"]).refused();
        assert!(error.contains("locked/out: creating the file failed: "), "{error}");
    }
    assert!(fs::read_dir(folder.path("locked")).unwrap().next().is_none());
}
