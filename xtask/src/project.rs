//! Where things are, and how other programs are run.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Result;

/// The folder that everything else is in.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// Where cargo builds, and where tasks keep what they fetch or make.
pub(crate) fn target() -> PathBuf {
    // Joining an absolute path replaces the root.
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// Builds the program as it is released; gives its path.
pub(crate) fn release_program() -> Result<PathBuf> {
    run(&mut cargo(&["build", "--release", "--quiet", "--package", "gguf2st-cli"]))?;
    Ok(target().join("release").join(format!("gguf2st{}", std::env::consts::EXE_SUFFIX)))
}

/// A path as a person at the root would write it.
pub(crate) fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// A command that runs at the root.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// Cargo, the one that started this task.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut cargo = command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(arguments);
    cargo
}

/// Runs a command to its end; its output goes where ours goes.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().map_err(|error| format!("{}: {error}", called(command)))?;
    if status.success() { Ok(()) } else { Err(format!("{}: {status}", called(command)).into()) }
}

/// Runs a command to its end and gives what it printed; what it says on stderr becomes the error.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{}: {error}", called(command)))?;
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout)?);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let said = stderr.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    Err(format!("{}: {}: {said}", called(command), output.status).into())
}

/// The program and its first arguments: enough to know which of them failed.
fn called(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args().take(3));
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// What Python 3 is called here, if there is one.
pub(crate) fn python() -> Result<&'static str> {
    let works =
        |name: &&str| output(command(name).args(["-c", "import sys; assert sys.version_info >= (3, 10)"])).is_ok();
    ["python3", "python"].into_iter().find(works).ok_or_else(|| "no Python 3.10 or later is installed".into())
}
