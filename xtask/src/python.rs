//! Other people's readers of both formats, in a Python environment of our own.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::project::{command, output, python, root, run, target};

/// The folder of the checks and their requirements.
fn folder() -> PathBuf {
    root().join("tests/python")
}

/// The environment's Python: made at the first call, kept while the requirements stay the same.
pub(crate) fn environment() -> Result<PathBuf> {
    let environment = target().join("py-env");
    let interpreter = environment.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let requirements = folder().join("requirements.txt");
    let wanted = fs::read_to_string(&requirements)?;
    // Written last, so that an environment half made is made again.
    let installed = environment.join("requirements.txt");
    if fs::read_to_string(&installed).is_ok_and(|installed| installed == wanted) && interpreter.exists() {
        return Ok(interpreter);
    }
    println!("making a Python environment");
    output(command(python()?).args(["-m", "venv", "--clear"]).arg(&environment))?;
    output(
        command(&interpreter)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--requirement"])
            .arg(&requirements),
    )?;
    fs::write(installed, wanted)?;
    Ok(interpreter)
}

/// Runs all checks on some models with the program built.
pub(crate) fn check(interpreter: &Path, program: &Path, models: &[PathBuf]) -> Result<()> {
    run(command(interpreter).arg("-B").arg(folder().join("run.py")).arg(program).args(models))
}
