//! Files of the Hugging Face Hub: from its cache on this machine if they are there, else from its servers.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::location::{Hub, Kind, Web, encode, open_path};
use crate::remote::{self, HttpOrigin, Secret, hints};
use crate::{Environment, OpenOptions, Source, SourceError};

/// Where the Hub is if `HF_ENDPOINT` doesn't say.
const ENDPOINT: &str = "https://huggingface.co";

/// The revision if none is given.
const MAIN: &str = "main";

/// Opens a file of the Hub.
pub(crate) fn open(name: PathBuf, hub: &Hub, options: &OpenOptions) -> Result<Arc<dyn Source>, SourceError> {
    let environment = &options.environment;
    if let Some(path) = cached(hub, environment) {
        return open_path(&path, options.local);
    }
    let missing = |reason: String| SourceError::Setup { address: name.clone(), reason };
    if environment.text("HF_HUB_OFFLINE").is_some_and(|value| yes(&value)) {
        return Err(missing("it is not in the cache here, and HF_HUB_OFFLINE forbids to ask for it".to_owned()));
    }
    let endpoint = environment.text("HF_ENDPOINT").unwrap_or_else(|| ENDPOINT.to_owned());
    let Ok(Kind::Web(base @ Web { query: None, .. })) = Kind::parse(endpoint.trim().as_ref()) else {
        return Err(missing("HF_ENDPOINT is not an address like https://HOST".to_owned()));
    };
    let revision = encode(hub.revision.as_deref().unwrap_or(MAIN)); // its slashes too
    let file: Vec<_> = hub.file.split('/').map(encode).collect();
    let (root, owner, repo) = (base.path.trim_end_matches('/'), &hub.owner, &hub.repo);
    let path = format!("{root}/{owner}/{repo}/resolve/{revision}/{}", file.join("/"));
    let secret = match token(environment) {
        None => None,
        Some(token) => Some(
            Secret::bearer(&token)
                .ok_or_else(|| missing("the token for the Hub holds characters that can't be sent".to_owned()))?,
        ),
    };
    let origin = HttpOrigin::new(name.clone(), &Web { path, ..base }, hints::HUB, options)?;
    let origin = if secret.is_some() { origin.with_secret(secret) } else { origin };
    remote::open(name, Box::new(origin), options)
}

/// The folder of all that the Hub's tools keep.
fn home(environment: &Environment) -> Option<PathBuf> {
    let cache = || environment.path("XDG_CACHE_HOME").or_else(|| Some(environment.home()?.join(".cache")));
    environment.path("HF_HOME").or_else(|| Some(cache()?.join("huggingface")))
}

/// The file in the cache, if it is there.
///
/// `models--OWNER--REPO/refs/REVISION` holds a commit, and `snapshots/COMMIT/FILE` is the file.
fn cached(hub: &Hub, environment: &Environment) -> Option<PathBuf> {
    let cache = environment
        .path("HF_HUB_CACHE")
        .or_else(|| environment.path("HUGGINGFACE_HUB_CACHE"))
        .or_else(|| Some(home(environment)?.join("hub")))?;
    let repo = cache.join(format!("models--{}--{}", hub.owner, hub.repo));
    let revision = hub.revision.as_deref().unwrap_or(MAIN);
    let commit = fs::read_to_string(repo.join("refs").join(revision));
    let commit = commit.as_deref().map_or(revision, str::trim);
    let is_commit = (7..=64).contains(&commit.len()) && commit.bytes().all(|digit| digit.is_ascii_hexdigit());
    let file = repo.join("snapshots").join(commit).join(&hub.file);
    (is_commit && file.is_file()).then_some(file)
}

/// The token, from where the Hub's tools look for it.
fn token(environment: &Environment) -> Option<String> {
    let stored = || {
        let path = environment.path("HF_TOKEN_PATH").or_else(|| Some(home(environment)?.join("token")))?;
        read_line(&path)
    };
    let given = environment.text("HF_TOKEN").or_else(|| environment.text("HUGGING_FACE_HUB_TOKEN"));
    given.or_else(stored).map(|token| token.trim().to_owned()).filter(|token| !token.is_empty())
}

fn read_line(path: &Path) -> Option<String> {
    // What is larger is no token.
    let small = fs::metadata(path).is_ok_and(|it| it.is_file() && it.len() <= 4096);
    small.then(|| fs::read_to_string(path).ok())?
}

fn yes(value: &str) -> bool {
    ["1", "on", "yes", "true"].iter().any(|yes| value.eq_ignore_ascii_case(yes))
}
