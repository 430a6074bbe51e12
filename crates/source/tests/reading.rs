//! Every kind of source gives exactly the bytes that were asked for, or an error.
#![allow(clippy::unwrap_used)] // a test may panic
#![allow(clippy::print_stderr)] // and must say what it cannot do here

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf2st_source::{CountingSource, FileSource, MmapSource, Source, SourceError};
use tempfile::TempDir;

fn file(bytes: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn kinds(path: &Path) -> [Box<dyn Source>; 3] {
    [
        Box::new(FileSource::open(path).unwrap()),
        Box::new(MmapSource::open(path).unwrap()),
        Box::new(CountingSource::new(Arc::new(FileSource::open(path).unwrap()))),
    ]
}

#[test]
fn any_range_inside() {
    let data: Vec<u8> = (0..10_000_u32).map(|i| (i % 251) as u8).collect();
    let (_folder, path) = file(&data);
    for source in kinds(&path) {
        assert_eq!(source.len(), 10_000);
        assert_eq!(source.name(), path);
        assert!(!source.is_empty());
        for (from, to) in [(0, 10_000), (0, 0), (10_000, 10_000), (1, 2), (4095, 4097), (9999, 10_000)] {
            let (start, end) = (from as u64, to as u64);
            assert_eq!(source.read(start..end).unwrap(), data[from..to]);
            let mut buf = vec![0xEE; to - from];
            source.read_into(start, &mut buf).unwrap();
            assert_eq!(buf, data[from..to]);
        }
        source.drop_range(0..10_000);
        assert_eq!(source.read(0..10_000).unwrap(), data);
        source.intact().unwrap();
    }
}

#[test]
fn no_range_outside() {
    let (_folder, path) = file(&[7; 100]);
    for source in kinds(&path) {
        #[allow(clippy::reversed_empty_ranges)]
        for range in [99..101, 101..101, 60..50, 0..u64::MAX, u64::MAX..u64::MAX, u64::MAX..0] {
            let error = source.read(range.clone()).unwrap_err();
            match error {
                SourceError::OutOfRange { path: of, range: asked, len } => {
                    assert_eq!((of, asked, len), (path.clone(), range.clone(), 100));
                }
                other => panic!("{other}"),
            }
            source.drop_range(range); // a hint never fails
        }
        for offset in [91, 100, 101, u64::MAX] {
            let error = source.read_into(offset, &mut [0; 10]).unwrap_err();
            assert!(matches!(error, SourceError::OutOfRange { .. }), "{error}");
        }
    }
}

#[test]
fn an_empty_file_is_an_empty_source() {
    let (_folder, path) = file(b"");
    for source in kinds(&path) {
        assert!(source.is_empty());
        assert!(source.read(0..0).unwrap().is_empty());
        assert!(source.read(0..1).is_err());
        source.intact().unwrap();
    }
    assert_eq!(MmapSource::open(&path).unwrap().as_slice(), b"");
}

#[test]
fn a_mapping_is_not_copied_and_views_outlive_it() {
    let (_folder, path) = file(&[9; 70_000]);
    let source = MmapSource::open(&path).unwrap();
    source.expect_sequential();
    source.will_need(0..70_000);
    let view = source.read(65_536..70_000).unwrap();
    assert_eq!(view.as_ptr(), source.as_slice()[65_536..].as_ptr());
    drop(source);
    assert_eq!(view, [9; 4464][..]);
}

#[test]
fn a_range_larger_than_memory_is_an_error() {
    let (_folder, path) = file(b"");
    let len = 1 << 43; // a file with a hole
    if fs::File::options().write(true).open(&path).unwrap().set_len(len).is_err() {
        eprintln!("not run: the file system has no files of {len} bytes");
        return;
    }
    let source = FileSource::open(&path).unwrap();
    assert_eq!(source.read(len - 2..len).unwrap(), [0, 0][..]);
    // Where memory is promised without limit this would be read for hours, so ask for what no
    // address space has.
    #[derive(Debug)]
    struct Endless;
    impl Source for Endless {
        fn len(&self) -> u64 {
            u64::MAX
        }
        fn name(&self) -> &Path {
            Path::new("endless")
        }
        fn read_into(&self, _: u64, _: &mut [u8]) -> Result<(), SourceError> {
            unreachable!("there is no such buffer")
        }
        fn intact(&self) -> Result<(), SourceError> {
            Ok(())
        }
    }
    let error = Endless.read(0..u64::MAX).unwrap_err();
    assert!(matches!(error, SourceError::Read { .. }), "{error}");
}

#[test]
fn counting_notes_what_was_asked_for() {
    let (_folder, path) = file(&[1; 100]);
    let source = CountingSource::new(MmapSource::open(&path).unwrap());
    assert_eq!((source.requests(), source.bytes(), source.furthest()), (0, 0, 0));
    source.read(10..20).unwrap();
    source.read_into(0, &mut [0; 5]).unwrap();
    source.read(90..110).unwrap_err();
    assert_eq!(source.ranges(), [10..20, 0..5, 90..110]);
    assert_eq!((source.requests(), source.bytes(), source.furthest()), (3, 35, 110));
    source.reset();
    assert!(source.ranges().is_empty());
    assert_eq!(source.get_ref().as_slice().len(), 100);
    assert_eq!(source.into_inner().len(), 100);
}

#[cfg(target_os = "linux")]
#[test]
fn dropped_ranges_leave_no_memory_behind() {
    /// Kilobytes of the mapping at `address` that are in memory.
    fn resident(address: usize) -> u64 {
        let maps = fs::read_to_string("/proc/self/smaps").unwrap();
        let ours = maps.split_once(&format!("{address:x}-")).unwrap().1;
        let line = ours.lines().find(|line| line.starts_with("Rss:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    let (_folder, path) = file(&vec![3; 8 << 20]);
    let source = MmapSource::open(&path).unwrap();
    let address = source.as_slice().as_ptr().addr();
    let (tile, mut at) = (1_000_003, 0); // not a number of pages
    while at < source.len() {
        let end = source.len().min(at + tile);
        let bytes = source.read(at..end).unwrap();
        assert!(bytes.iter().all(|&byte| byte == 3));
        assert!(resident(address) >= (end - at) / 1024 - 8);
        source.drop_range(at..end);
        assert!(resident(address) <= 128, "{} kB", resident(address)); // what is mapped around a fault
        at = end;
    }
    assert_eq!(resident(address), 0);
    assert!(source.as_slice().iter().all(|&byte| byte == 3));
    source.intact().unwrap();
}
