//! Models in Ollama's store on this machine.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use crate::location::{Ollama, open_path};
use crate::{EscapedPath, OpenOptions, Source, SourceError};

/// What the layer with the model is called in a manifest.
const MODEL: &str = "application/vnd.ollama.image.model";

/// What is larger is no manifest.
const LONGEST_MANIFEST: u64 = 4 << 20;

/// Opens the model that a name stands for.
///
/// `manifests/HOST/NAMESPACE/MODEL/TAG` lists layers by their digests, and `blobs/sha256-…` are their bytes.
pub(crate) fn open(name: PathBuf, ollama: &Ollama, options: &OpenOptions) -> Result<Arc<dyn Source>, SourceError> {
    let wrong = |reason: String| SourceError::Setup { address: name.clone(), reason };
    let environment = &options.environment;
    let store = environment
        .path("OLLAMA_MODELS")
        .or_else(|| Some(environment.home()?.join(".ollama").join("models")))
        .ok_or_else(|| wrong("where Ollama's store is can't be told: set OLLAMA_MODELS".to_owned()))?;

    let mut manifest = store.join("manifests");
    manifest.push(match ollama.name.split('/').count() {
        1 => format!("registry.ollama.ai/library/{}", ollama.name),
        2 => format!("registry.ollama.ai/{}", ollama.name),
        _ => ollama.name.clone(),
    });
    manifest.push(ollama.tag.as_deref().unwrap_or("latest"));

    let shown = EscapedPath(&manifest);
    let found = fs::metadata(&manifest)
        .map_err(|error| wrong(format!("not in Ollama's store here: {shown}: {error} (ollama pull fetches it)")))?;
    if !found.is_file() || found.len() > LONGEST_MANIFEST {
        return Err(wrong(format!("{shown} is no manifest")));
    }
    let text = fs::read(&manifest).map_err(|error| wrong(format!("{shown} cannot be read: {error}")))?;
    let digest = digest(&text).map_err(|reason| wrong(format!("{shown}: {reason}")))?;
    let blobs = store.join("blobs");
    let blob = blobs.join(format!("sha256-{digest}"));
    // As it was named by early versions, where file systems let them.
    let early = blobs.join(format!("sha256:{digest}"));
    open_path(if !blob.exists() && early.exists() { &early } else { &blob }, options.local)
}

/// The SHA-256 of the model's layer, in hexadecimal digits.
fn digest(manifest: &[u8]) -> Result<String, &'static str> {
    let manifest: Value = serde_json::from_slice(manifest).map_err(|_| "not a manifest")?;
    let layers = manifest["layers"].as_array().ok_or("not a manifest: it lists no layers")?;
    let mut models = layers.iter().filter(|layer| layer["mediaType"] == MODEL);
    let digest = match (models.next(), models.next()) {
        (Some(layer), None) => layer["digest"].as_str().unwrap_or_default(),
        (None, _) => return Err("none of its layers is a model"),
        (Some(_), Some(_)) => return Err("its model is in several layers, which is not supported"),
    };
    // It becomes a file's name.
    let hex = digest.strip_prefix("sha256:").filter(|hex| hex.len() == 64);
    let hex = hex.filter(|hex| hex.bytes().all(|digit| digit.is_ascii_hexdigit()));
    hex.map(str::to_ascii_lowercase).ok_or("the digest of its model is none")
}
