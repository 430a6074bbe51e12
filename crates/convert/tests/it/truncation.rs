//! A file that someone else cuts short ends every step in an error, never in a signal.

use std::fs::OpenOptions;
use std::path::Path;

use gguf2st_convert::{ConvertError, Model, RunOptions, Weights, restore, verify};
use gguf2st_gguf::ByteOrder;
use gguf2st_source::SourceError;

use crate::support::{convert, file_source, folder, mixed, mmap_source, names, raw, write};

fn cut(path: &Path, len: u64) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(len).unwrap();
}

fn is_cut(error: &ConvertError) -> bool {
    matches!(error, ConvertError::Source(SourceError::CutShort { .. } | SourceError::LostPage { .. }))
}

/// Large enough that a cut takes whole pages with it.
fn large() -> Vec<u8> {
    let mut container = mixed(ByteOrder::Little);
    container.resize(container.len() + (1 << 20), 1);
    container
}

#[test]
fn before_the_head_is_read() {
    let folder = folder();
    for open in [file_source, mmap_source] {
        for len in [0, 3, 100] {
            let input = write(&folder, "in", &large());
            let source = open(&input);
            cut(&input, len);
            let error = Model::open(source).unwrap_err();
            assert!(is_cut(&error), "{error}");
        }
    }
}

#[test]
fn before_the_data_is_read() {
    let folder = folder();
    for open in [file_source, mmap_source] {
        let input = write(&folder, "in", &large());
        let model = Model::open(open(&input)).unwrap();
        let plan = model.plan(&raw().plan).unwrap();
        cut(&input, 4096);
        let error = model.convert(&plan, &folder.path().join("out"), &raw().run, &|_| ()).unwrap_err();
        assert!(is_cut(&error), "{error}");
        assert_eq!(names(&folder), ["in"]);
    }
}

#[test]
fn while_it_is_restored_or_compared() {
    let folder = folder();
    let input = write(&folder, "in", &large());
    let output = folder.path().join("out");
    convert(&input, &output, &raw()).unwrap();
    let len = std::fs::metadata(&output).unwrap().len();
    for open in [file_source, mmap_source] {
        let copy = folder.path().join("copy");
        std::fs::copy(&output, &copy).unwrap();
        let weights = Weights::open(vec![open(&copy)]).unwrap();
        cut(&copy, len / 2);
        let error = restore(&weights, &folder.path().join("back"), &RunOptions::default(), &|_| ()).unwrap_err();
        assert!(is_cut(&error), "{error}");
        let model = Model::open(file_source(&input)).unwrap();
        let error = verify(&weights, &model, None, &|_| ()).unwrap_err();
        assert!(is_cut(&error), "{error}");
        std::fs::remove_file(copy).unwrap();
    }
    assert_eq!(names(&folder), ["in", "out"]);
}
