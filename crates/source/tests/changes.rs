//! Files that somebody changes while they are in use.
#![cfg(unix)]
#![allow(clippy::unwrap_used)] // a test may panic

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use gguf2st_source::{FileSource, MmapSource, Source, SourceError};
use tempfile::TempDir;

const PAGE: u64 = 65_536; // no page is larger

/// A file of `pages` large pages, all `0xAA`, last written to long ago, and a way to change it.
fn file(pages: u64) -> (TempDir, PathBuf, File) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    fs::write(&path, vec![0xAA; usize::try_from(pages * PAGE).unwrap()]).unwrap();
    let other = File::options().write(true).open(&path).unwrap();
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    other.set_modified(long_ago).unwrap();
    (folder, path, other)
}

#[track_caller]
fn cut_short(result: Result<(), SourceError>, expected: u64, found: u64, offset: u64) {
    match result {
        Err(SourceError::CutShort { expected: e, found: f, offset: o, .. }) => {
            assert_eq!((e, f, o), (expected, found, offset));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn plain_reads_of_a_shortened_file_fail() {
    let (_folder, path, other) = file(4);
    let source = FileSource::open(&path).unwrap();
    other.set_len(PAGE + 10).unwrap();
    let mut buf = vec![0; usize::try_from(2 * PAGE).unwrap()];
    cut_short(source.read_into(0, &mut buf), 4 * PAGE, PAGE + 10, PAGE + 10);
    cut_short(source.read_into(2 * PAGE, &mut buf), 4 * PAGE, PAGE + 10, 2 * PAGE);
    cut_short(source.intact(), 4 * PAGE, PAGE + 10, PAGE + 10);
    assert_eq!(source.read(0..PAGE).unwrap()[..], buf[..usize::try_from(PAGE).unwrap()]);
    let text = source.intact().unwrap_err().to_string();
    assert!(
        text.contains("cut short while in use: it had 262144 bytes when it was opened and has 65546 now"),
        "{text}"
    );
}

#[test]
fn a_mapping_of_a_shortened_file_turns_to_zeros() {
    let (_folder, path, other) = file(4);
    let source = MmapSource::open(&path).unwrap();
    let view = source.read(0..4 * PAGE).unwrap();
    let index = |at: u64| usize::try_from(at).unwrap();
    assert_eq!(view[index(3 * PAGE)], 0xAA);
    other.set_len(PAGE + 10).unwrap();

    cut_short(source.intact(), 4 * PAGE, PAGE + 10, PAGE + 10); // before any fault
    assert!(view[index(3 * PAGE)..].iter().all(|&byte| byte == 0)); // faults
    assert!(view[index(2 * PAGE)..].iter().all(|&byte| byte == 0)); // faults further down
    assert!(view[index(PAGE) + 10..].iter().all(|&byte| byte == 0));
    assert!(view[..index(PAGE) + 10].iter().all(|&byte| byte == 0xAA));
    cut_short(source.intact(), 4 * PAGE, PAGE + 10, PAGE + 10);
    cut_short(source.read(0..1).map(drop), 4 * PAGE, PAGE + 10, PAGE + 10);
    cut_short(source.read_into(3 * PAGE, &mut [0]), 4 * PAGE, PAGE + 10, 3 * PAGE);
    source.drop_range(0..4 * PAGE);
    assert_eq!(view[index(4 * PAGE) - 1], 0);

    // Others of the same file have their own fate, and the place of a dropped one can be used again.
    drop((source, view));
    let again = MmapSource::open(&path).unwrap();
    assert!(again.as_slice().iter().all(|&byte| byte == 0xAA));
    again.intact().unwrap();
}

#[test]
fn a_lost_page_is_not_forgotten_when_the_file_grows_back() {
    let (_folder, path, other) = file(4);
    let source = MmapSource::open(&path).unwrap();
    other.set_len(0).unwrap();
    assert_eq!(source.as_slice()[usize::try_from(2 * PAGE).unwrap() + 1], 0);
    other.set_len(4 * PAGE).unwrap();
    match source.intact() {
        Err(SourceError::LostPage { offset, .. }) => assert_eq!(offset, 2 * PAGE),
        other => panic!("{other:?}"),
    }
    assert!(source.read(0..1).is_err());
}

#[test]
fn growing_and_rewriting_are_changes() {
    for kind in 0..2 {
        let (_folder, path, mut other) = file(1);
        let open = || -> Box<dyn Source> {
            match kind {
                0 => Box::new(FileSource::open(&path).unwrap()),
                _ => Box::new(MmapSource::open(&path).unwrap()),
            }
        };
        let source = open();
        source.intact().unwrap();
        other.set_len(PAGE + 1).unwrap();
        match source.intact().unwrap_err() {
            SourceError::Changed { expected_len, found_len, .. } => {
                assert_eq!((expected_len, found_len), (PAGE, PAGE + 1));
            }
            other => panic!("{other}"),
        }
        assert!(source.read(0..PAGE).is_ok()); // what was there is there
        assert!(source.read(0..PAGE + 1).is_err()); // and no more

        other.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let source = open();
        other.write_all(b"x").unwrap();
        match source.intact().unwrap_err() {
            SourceError::Changed { expected_modified, found_modified, .. } => {
                assert_eq!(expected_modified, Some(SystemTime::UNIX_EPOCH));
                assert!(found_modified > expected_modified);
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn replacing_the_name_changes_nothing() {
    let (folder, path, _) = file(1);
    let source = MmapSource::open(&path).unwrap();
    fs::write(folder.path().join("new"), b"short").unwrap();
    fs::rename(folder.path().join("new"), &path).unwrap();
    assert!(source.as_slice().iter().all(|&byte| byte == 0xAA));
    source.intact().unwrap();
    fs::remove_file(&path).unwrap();
    source.intact().unwrap();
}

#[test]
fn a_system_call_on_lost_bytes_fails() {
    let (folder, path, other) = file(2);
    let source = MmapSource::open(&path).unwrap();
    other.set_len(0).unwrap();
    let mut out = File::create(folder.path().join("out")).unwrap();
    let error = out.write_all(source.as_slice()).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EFAULT));
    cut_short(source.intact(), 2 * PAGE, 0, 0);
}

#[test]
fn a_fault_leaves_errno_alone() {
    let (_folder, path, other) = file(2);
    let source = MmapSource::open(&path).unwrap();
    other.set_len(0).unwrap();
    // SAFETY: there is no such descriptor, so nothing is closed.
    unsafe { libc::close(-1) };
    let byte = std::hint::black_box(source.as_slice())[0];
    let errno = std::io::Error::last_os_error().raw_os_error();
    assert_eq!((byte, errno), (0, Some(libc::EBADF)));
}

/// Many threads open, shorten, fault and drop, while others watch that no foreign memory is hit.
#[test]
fn many_mappings_at_once() {
    let end = Instant::now() + Duration::from_millis(1000);
    let (running, rounds) = (AtomicBool::new(true), AtomicUsize::new(0));
    thread::scope(|scope| {
        // Maps and unmaps memory of its own, where a wrong hit would show as zeros.
        let bystander = scope.spawn(|| {
            while running.load(Ordering::Relaxed) {
                let mut memory = vec![0x55_u8; 1 << 20];
                thread::yield_now();
                memory[7] = 0x55; // and it can still be written to
                assert!(memory.iter().all(|&byte| byte == 0x55));
            }
        });
        let workers: Vec<_> = (0..4_u64)
            .map(|worker| {
                let rounds = &rounds;
                scope.spawn(move || {
                    let mut random = worker + 1;
                    while Instant::now() < end {
                        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        round(1 + (random >> 33) % 4, (random >> 40) % 4);
                        rounds.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        let failed = workers.into_iter().any(|worker| worker.join().is_err());
        running.store(false, Ordering::Relaxed);
        assert!(!failed && bystander.join().is_ok());
    });
    assert!(rounds.load(Ordering::Relaxed) > 4);
}

/// One file that stays and one that is cut to `left` pages while two threads look at it.
fn round(pages: u64, left: u64) {
    let (_kept_folder, kept_path, _) = file(1);
    let (_folder, path, other) = file(pages);
    let kept = MmapSource::open(&kept_path).unwrap();
    let (source, second) = (MmapSource::open(&path).unwrap(), MmapSource::open(&path).unwrap());
    let view = second.read(0..second.len()).unwrap();
    drop(second); // the view alone holds it
    thread::scope(|scope| {
        scope.spawn(|| assert!(source.as_slice().iter().all(|&byte| byte == 0xAA || byte == 0)));
        scope.spawn(|| assert!(view.iter().rev().all(|&byte| byte == 0xAA || byte == 0)));
        scope.spawn(|| other.set_len(left * PAGE).unwrap());
    });
    match left < pages {
        true => cut_short(source.intact(), pages * PAGE, left * PAGE, left * PAGE),
        false => assert!(source.intact().is_err(), "its length or time is another"),
    }
    assert!(kept.as_slice().iter().all(|&byte| byte == 0xAA));
    kept.intact().unwrap();
}
