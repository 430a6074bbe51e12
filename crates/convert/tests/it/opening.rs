//! What opening a model asks its source for: the head, and nothing for its own sake behind it.

use std::path::Path;
use std::sync::Arc;

use gguf2st_convert::Model;
use gguf2st_gguf::parse_gguf;
use gguf2st_gguf::write::Builder;
use gguf2st_source::{CountingSource, FileSource, Source};

use crate::support::{folder, write};

fn open(path: &Path) -> (Model, Arc<CountingSource<FileSource>>) {
    let source = Arc::new(CountingSource::new(FileSource::open(path).unwrap()));
    let model = Model::open(Arc::clone(&source) as Arc<dyn Source>).unwrap();
    (model, source)
}

#[test]
fn a_small_head_is_one_read() {
    let folder = folder();
    let mut container = Builder::new().metadata("general.architecture", "llama").head().unwrap();
    container.resize(8 << 20, 1);
    let (_, source) = open(&write(&folder, "in", &container));
    assert_eq!((source.requests(), source.furthest()), (1, 256 << 10));
}

#[test]
fn a_vocabulary_is_read_once_and_no_request_begins_behind_the_head() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "gguf") {
            continue;
        }
        let (model, source) = open(&path);
        let (ranges, head) = (source.ranges(), model.file().index_end());
        assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start), "{ranges:?}");
        assert!(ranges.iter().all(|range| range.start < head), "{ranges:?} of {head}");
        assert!(source.bytes() <= (2 * head).max(1 << 20) && ranges.len() <= 3, "{ranges:?} of {head}");

        // The parser itself sees no byte behind the index: it is content with a slice that ends there.
        let bytes = std::fs::read(&path).unwrap();
        let index = &bytes[..usize::try_from(head).unwrap()];
        assert_eq!(parse_gguf(index, bytes.len() as u64).unwrap().index_end(), head);
        seen += 1;
    }
    assert!(seen >= 3, "{seen}");
}

#[test]
fn planning_reads_nothing_that_is_at_hand() {
    let folder = folder();
    let path = write(&folder, "in", &crate::support::mixed(gguf2st_gguf::ByteOrder::Little));
    let (model, source) = open(&path);
    source.reset();
    model.plan(&crate::support::raw().plan).unwrap();
    assert_eq!(source.requests(), 0);
}

/// A container of a tebibyte whose first string is long and promises a million more.
#[derive(Debug)]
struct Endless(Vec<u8>);

impl Source for Endless {
    fn len(&self) -> u64 {
        1 << 40
    }
    fn name(&self) -> &Path {
        Path::new("endless")
    }
    fn read_into(&self, offset: u64, buf: &mut [u8]) -> Result<(), gguf2st_source::SourceError> {
        for (byte, at) in buf.iter_mut().zip(offset..) {
            *byte = usize::try_from(at).ok().and_then(|at| self.0.get(at)).copied().unwrap_or(0);
        }
        Ok(())
    }
    fn intact(&self) -> Result<(), gguf2st_source::SourceError> {
        Ok(())
    }
}

#[test]
fn no_promise_of_a_file_makes_more_be_read_than_heads_may_have() {
    let tokens = gguf2st_gguf::OwnedValue::Array(
        gguf2st_gguf::ValueType::String,
        vec![gguf2st_gguf::OwnedValue::String(vec![b'x'; 200_000].into())],
    );
    let mut head = Builder::new().metadata("tokenizer.ggml.tokens", tokens).head().unwrap();
    let count = 24 + 8 + 21 + 4 + 4;
    head[count..count + 8].copy_from_slice(&40_000_000_000_u64.to_le_bytes());
    let source = Arc::new(CountingSource::new(Endless(head)));
    let error = Model::open(Arc::clone(&source) as Arc<dyn Source>).unwrap_err();
    assert!(source.furthest() <= gguf2st_gguf::limits::MAX_HEAD, "{} {error}", source.furthest());
}
