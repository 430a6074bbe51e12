//! The kinds of addresses: taken apart, put together.
//!
//! By hand and strictly: what is accepted here must mean the same to the clients that get it, or a part
//! that is kept from the screen here would be shown there.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::SourceError;

/// An address, by kind.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Path(PathBuf),
    Web(Web),
    Bucket(Bucket),
    Hub(Hub),
    Ollama(Ollama),
}

/// `http://USER:PASSWORD@HOST:PORT/PATH?QUERY`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Web {
    /// `http` or `https`.
    pub(crate) scheme: &'static str,
    /// `USER:PASSWORD`, encoded.
    pub(crate) user: Option<String>,
    /// `HOST` or `HOST:PORT`.
    pub(crate) host: String,
    /// Empty or from the first slash on, encoded.
    pub(crate) path: String,
    /// Without its question mark; not empty.
    pub(crate) query: Option<String>,
}

/// `s3://BUCKET/KEY` and its like.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Bucket {
    /// `s3`, `gs` or `az`.
    pub(crate) scheme: &'static str,
    pub(crate) bucket: String,
    pub(crate) key: String,
}

/// `hf://OWNER/REPO/FILE@REVISION`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Hub {
    pub(crate) owner: String,
    pub(crate) repo: String,
    /// With the folders that it is in.
    pub(crate) file: String,
    pub(crate) revision: Option<String>,
}

/// `ollama://HOST/NAMESPACE/MODEL:TAG`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Ollama {
    /// One to three components.
    pub(crate) name: String,
    pub(crate) tag: Option<String>,
}

impl Kind {
    pub(crate) fn parse(typed: &OsStr) -> Result<Self, SourceError> {
        let bytes = typed.as_encoded_bytes();
        let Some((scheme, parse)) = SCHEMES.iter().find(|(scheme, _)| {
            let (head, tail) = bytes.split_at_checked(scheme.len()).unwrap_or((b"", b""));
            head.eq_ignore_ascii_case(scheme.as_bytes()) && tail.starts_with(b"://")
        }) else {
            return Ok(Self::Path(typed.into()));
        };
        // Nothing of what isn't understood is shown: who knows which part of it is the password.
        let wrong = |reason| SourceError::Address { address: format!("{scheme}://…").into(), reason };
        let text = typed.to_str().ok_or_else(|| wrong("it is not UTF-8"))?;
        let rest = &text[scheme.len() + "://".len()..];
        if rest.chars().any(char::is_control) {
            return Err(wrong("it holds control characters"));
        }
        parse(scheme, rest).map_err(wrong)
    }

    /// The address without what must not be shown; not yet escaped.
    pub(super) fn shown(&self) -> PathBuf {
        match self {
            Self::Path(path) => path.clone(),
            Self::Web(Web { scheme, host, path, .. }) => format!("{scheme}://{host}{path}").into(),
            Self::Bucket(Bucket { scheme, bucket, key }) => format!("{scheme}://{bucket}/{key}").into(),
            Self::Hub(Hub { owner, repo, file, revision }) => match revision {
                None => format!("hf://{owner}/{repo}/{file}").into(),
                Some(revision) => format!("hf://{owner}/{repo}/{file}@{revision}").into(),
            },
            Self::Ollama(Ollama { name, tag }) => match tag {
                None => format!("ollama://{name}").into(),
                Some(tag) => format!("ollama://{name}:{tag}").into(),
            },
        }
    }

    pub(super) fn file_name(&self) -> Option<Cow<'_, str>> {
        let name = match self {
            Self::Path(path) => path.file_name()?.to_str()?.into(),
            Self::Web(web) => decode(last(&web.path))?,
            Self::Bucket(bucket) => last(&bucket.key).into(),
            Self::Hub(hub) => last(&hub.file).into(),
            Self::Ollama(_) => return None,
        };
        (!name.is_empty()).then_some(name)
    }

    pub(super) fn sibling(&self, file_name: &str) -> Option<Self> {
        self.file_name()?;
        let beside = |path: &str, name: &str| format!("{}{name}", &path[..path.len() - last(path).len()]);
        Some(match self {
            Self::Path(path) => Self::Path(path.with_file_name(file_name)),
            Self::Web(Web { query: Some(_), .. }) | Self::Ollama(_) => return None,
            Self::Web(web) => Self::Web(Web { path: beside(&web.path, &encode(file_name)), ..web.clone() }),
            Self::Bucket(bucket) => Self::Bucket(Bucket { key: beside(&bucket.key, file_name), ..bucket.clone() }),
            Self::Hub(hub) => Self::Hub(Hub { file: beside(&hub.file, file_name), ..hub.clone() }),
        })
    }
}

/// What makes an address of the scheme and the text after `://`, or says why it is none.
type Parse = fn(&'static str, &str) -> Result<Kind, &'static str>;

const SCHEMES: &[(&str, Parse)] = &[
    ("file", file),
    ("http", web),
    ("https", web),
    ("s3", bucket),
    ("gs", bucket),
    ("az", bucket),
    ("hf", hub),
    ("ollama", ollama),
];

fn file(_: &'static str, rest: &str) -> Result<Kind, &'static str> {
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return Err("the path after file:// must begin with a slash (file:///folder/model.gguf)");
    }
    if path.contains(['?', '#']) {
        return Err("a file has no query and no fragment (write ? as %3F and # as %23)");
    }
    let path = decode(path).ok_or("its escapes are broken")?;
    // On Windows, file:///C:/folder.
    let drive = matches!(path.as_bytes(), [b'/', letter, b':', ..] if letter.is_ascii_alphabetic());
    let path = if cfg!(windows) && drive { &path[1..] } else { &path };
    Ok(Kind::Path(Path::new(path).into()))
}

fn web(scheme: &'static str, rest: &str) -> Result<Kind, &'static str> {
    if rest.contains(|c: char| c == '\\' || c.is_whitespace()) {
        return Err("it holds a backslash or a blank (write it as %5C or %20)");
    }
    let (rest, _fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (user, host) = match authority.rsplit_once('@') {
        None => (None, authority),
        Some((user, host)) => (Some(user), host),
    };
    // Seen to closely: a password with a slash in it would end the authority in its middle.
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port),
        _ => (host, ""),
    };
    if name.is_empty() || name.contains(['@', '%']) || (name.contains(':') && !name.starts_with('[')) {
        return Err("there is no host name where one should be");
    }
    if !port.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err("there is no port number where one should be (write a slash in a password as %2F)");
    }
    Ok(Kind::Web(Web {
        scheme,
        user: user.map(str::to_owned),
        host: host.to_owned(),
        path: path.to_owned(),
        query: (!query.is_empty()).then(|| query.to_owned()),
    }))
}

fn bucket(scheme: &'static str, rest: &str) -> Result<Kind, &'static str> {
    let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() || bucket.contains(['@', ':', '?', '#']) {
        return Err("there is no bucket's name where one should be; credentials go into the environment");
    }
    if key.is_empty() || key.ends_with('/') {
        return Err("there is no object's key after the bucket");
    }
    if key.contains(['?', '#']) {
        return Err("keys with ? or # are not supported: they may be a signature");
    }
    Ok(Kind::Bucket(Bucket { scheme, bucket: bucket.to_owned(), key: key.to_owned() }))
}

fn hub(_: &'static str, rest: &str) -> Result<Kind, &'static str> {
    const FORM: &str = "it should be hf://OWNER/REPO/FILE, or hf://OWNER/REPO/FILE@REVISION";
    let mut parts = rest.splitn(3, '/');
    let (Some(owner), Some(repo), Some(file)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(FORM);
    };
    if !plain(owner) || !plain(repo) {
        return Err(FORM);
    }
    let (file, revision) = match file.rsplit_once('@') {
        None => (file, None),
        Some((_, "")) => return Err("there is no revision after the @"),
        Some((file, revision)) => (file, Some(revision)),
    };
    if revision.is_some_and(|revision| revision.split('/').any(|part| !plain(part))) {
        return Err("the revision is not the name of a branch, a tag or a commit");
    }
    if file.contains(['?', '#', '\\']) || file.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(FORM);
    }
    let owned = str::to_owned;
    Ok(Kind::Hub(Hub { owner: owned(owner), repo: owned(repo), file: owned(file), revision: revision.map(owned) }))
}

fn ollama(_: &'static str, rest: &str) -> Result<Kind, &'static str> {
    // A host may have a port, so only a colon in the last component begins a tag.
    let (name, tag) = match rest.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (rest, None),
    };
    let parts = name.split('/').count();
    let host =
        |at: usize, part: &str| at == 0 && parts == 3 && part.split(':').count() <= 2 && part.split(':').all(plain);
    let good = name.split('/').enumerate().all(|(at, part)| plain(part) || host(at, part));
    if parts > 3 || !good || !tag.is_none_or(plain) {
        return Err("it should be ollama://MODEL, ollama://MODEL:TAG or ollama://NAMESPACE/MODEL:TAG");
    }
    Ok(Kind::Ollama(Ollama { name: name.to_owned(), tag: tag.map(str::to_owned) }))
}

/// Whether a component is nothing but letters, digits, dots, dashes and underscores, and no way up.
fn plain(part: &str) -> bool {
    let fine = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-' | b'_');
    !matches!(part, "" | "." | "..") && part.bytes().all(fine)
}

/// What is after the last slash.
fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A component of a URL: all that is not plain becomes an escape, slashes too.
pub(crate) fn encode(part: &str) -> String {
    let mut encoded = String::with_capacity(part.len());
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// The text behind a URL's escapes, if that is text.
fn decode(encoded: &str) -> Option<Cow<'_, str>> {
    if !encoded.contains('%') {
        return Some(encoded.into());
    }
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut parts = encoded.split('%');
    bytes.extend_from_slice(parts.next()?.as_bytes());
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_there_and_back() {
        assert_eq!(encode("a b/ü-1.gguf"), "a%20b%2F%C3%BC-1.gguf");
        assert_eq!(decode("a%20b%2F%C3%BC-1.gguf").as_deref(), Some("a b/ü-1.gguf"));
        for broken in ["%", "%1", "%zz", "%+1", "%ff", "%00", "%é"] {
            assert_eq!(decode(broken), None, "{broken}");
        }
    }
}
