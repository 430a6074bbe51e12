//! Opening what the user points at: a path or an address, and with one part of a split set all others.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf2st_convert::{ConvertError, Model};
use gguf2st_gguf::SplitName;
use gguf2st_source::{Local, Location, OpenOptions, Source, SourceError};

/// What the user typed, understood.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    location: Location,
    name: PathBuf,
}

impl Given {
    pub(crate) fn parse(typed: impl AsRef<OsStr>) -> Result<Self, SourceError> {
        let location = Location::parse(typed)?;
        let name = location.as_path().map_or_else(|| PathBuf::from(location.to_string()), PathBuf::from);
        Ok(Self { location, name })
    }

    /// What it is called: the path, or the address without what must not be shown.
    pub(crate) fn name(&self) -> &Path {
        &self.name
    }

    /// Opens it to look at its head. A file on this machine is mapped, so that nothing behind the head is brought
    /// in and the head is not copied; where mapping is impossible, it is read plainly.
    pub(crate) fn to_look_at(&self) -> Result<Model, ConvertError> {
        self.model(Local::Mmap)
    }

    /// Opens it, and the other parts of a set that it is part of. A set whose parts do not make up a model is no
    /// error: the model is then the part given, and says what is wrong.
    pub(crate) fn model(&self, local: Local) -> Result<Model, ConvertError> {
        let options = OpenOptions { local, ..OpenOptions::default() };
        let source = self.location.open(&options)?;
        Model::open_with_siblings(source, &|name| self.sibling(name, &options))
    }

    /// Another part of the set, called as the library calls it: by the source's name, in which an address has
    /// escapes, while locations are told apart by what the escapes stand for.
    fn sibling(&self, name: &str, options: &OpenOptions) -> Result<Arc<dyn Source>, SourceError> {
        let number = SplitName::parse(name).map(|part| part.number);
        let file_name = self.location.file_name();
        let named = file_name.as_deref().and_then(SplitName::parse).zip(number);
        let sibling = named.and_then(|(named, number)| self.location.sibling(&named.part(number).to_string()));
        let unknown = || SourceError::Setup {
            address: self.name.clone(),
            reason: "where its other parts are can't be told: an address with a query leads to one file alone".into(),
        };
        sibling.ok_or_else(unknown)?.open(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_secrets() {
        for (typed, name) in [
            ("a b/m.gguf", "a b/m.gguf"),
            ("file:///a%20b/m.gguf", "/a b/m.gguf"),
            ("https://me:secret@example.org/m%20.gguf?Signature=secret#secret", "https://example.org/m%20.gguf"),
            ("hf://owner/repo/m.gguf@v1", "hf://owner/repo/m.gguf@v1"),
        ] {
            assert_eq!(Given::parse(typed).unwrap().name(), Path::new(name));
        }
        let error = Given::parse("https://me:se/cret@example.org/m.gguf").unwrap_err().to_string();
        assert!(error.starts_with("https://…: "), "{error}");
    }

    #[test]
    fn an_address_with_a_query_has_no_siblings() {
        let given = Given::parse("https://example.org/m-00001-of-00002.gguf?Signature=secret").unwrap();
        let error = given.sibling("m-00002-of-00002.gguf", &OpenOptions::default()).unwrap_err().to_string();
        assert!(error.contains("with a query") && !error.contains("secret"), "{error}");
    }
}
