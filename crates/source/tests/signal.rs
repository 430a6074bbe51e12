//! The handler of SIGBUS among others: what is not ours goes on to whoever was there before.
//!
//! Each test runs its deed in a process of its own: itself again, with a word in the environment.
#![cfg(unix)]
#![allow(clippy::unwrap_used)] // a test may panic

use std::env;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::process::{self, Command, ExitStatus};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use gguf2st_source::{MmapSource, Source};
use libc::{c_int, c_void, siginfo_t};
use memmap2::Mmap;

const DEED: &str = "GGUF2ST_SOURCE_TEST_DEED";

/// How a process ends that does `deed`; `test` is the name of the test that asks.
fn outcome(test: &str, deed: fn()) -> ExitStatus {
    if env::var_os(DEED).is_some_and(|name| name == *test) {
        let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `no_core` is a valid limit.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const no_core) };
        deed();
        process::exit(0);
    }
    let output = Command::new(env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(DEED, test)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("panicked"), "{said}");
    output.status
}

/// A mapping that is not of our crate and has lost its page.
fn foreign() -> Mmap {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("foreign");
    fs::write(&path, [1; 4096]).unwrap();
    let file = File::options().read(true).write(true).open(path).unwrap();
    // SAFETY: it is cut short below on purpose, and looked at only to raise the signal.
    let map = unsafe { Mmap::map(&file) }.unwrap();
    file.set_len(0).unwrap();
    map
}

/// Our kind, cut short: looking at it does no harm. Installs the handler.
fn ours() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ours");
    fs::write(&path, [1; 4096]).unwrap();
    let source = MmapSource::open(&path).unwrap();
    File::options().write(true).open(path).unwrap().set_len(0).unwrap();
    assert_eq!(look(source.as_slice()), 0);
    assert!(source.intact().is_err());
}

fn look(bytes: &[u8]) -> u8 {
    // SAFETY: a byte of a live slice.
    unsafe { ptr::read_volatile(bytes.as_ptr()) }
}

fn send() {
    // SAFETY: a plain system call. (It returns when the signal has been dealt with.)
    unsafe { libc::raise(libc::SIGBUS) };
}

/// Installs a handler of the program's own, as a program would before it uses the crate.
fn handle_with(handler: usize, flags: c_int) {
    // SAFETY: a `sigaction` of zeros is a valid one.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    action.sa_flags = flags;
    // SAFETY: the callers pass a handler that fits the flags.
    assert_eq!(unsafe { libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) }, 0);
}

static EXPECTED: AtomicUsize = AtomicUsize::new(0);

extern "C" fn with_facts(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel's facts about the signal, passed on.
    let info = unsafe { &*info };
    // SAFETY: the test raises no other signal than by a fault.
    let address = unsafe { info.si_addr() }.addr();
    let right = signal == libc::SIGBUS && address == EXPECTED.load(Ordering::SeqCst);
    // SAFETY: may be called in a handler.
    unsafe { libc::_exit(if right { 42 } else { 1 }) };
}

extern "C" fn plain(signal: c_int) {
    // SAFETY: may be called in a handler.
    unsafe { libc::_exit(if signal == libc::SIGBUS { 43 } else { 1 }) };
}

static DELIVERED: AtomicUsize = AtomicUsize::new(0);

extern "C" fn counting(_: c_int) {
    DELIVERED.fetch_add(1, Ordering::SeqCst);
}

fn fault() {
    ours();
    let map = foreign();
    EXPECTED.store(map.as_ptr().addr(), Ordering::SeqCst);
    look(&map);
}

#[test]
fn ours_alone_is_survived() {
    let status = outcome("ours_alone_is_survived", || (0..100).for_each(|_| ours()));
    assert_eq!(status.code(), Some(0), "{status}");
}

#[test]
fn a_foreign_fault_still_kills() {
    let status = outcome("a_foreign_fault_still_kills", fault);
    assert_eq!(status.signal(), Some(libc::SIGBUS), "{status}");
}

#[test]
fn a_foreign_fault_still_kills_by_default() {
    let status = outcome("a_foreign_fault_still_kills_by_default", || {
        handle_with(libc::SIG_DFL, 0);
        fault();
    });
    assert_eq!(status.signal(), Some(libc::SIGBUS), "{status}");
}

#[test]
fn a_foreign_fault_cannot_be_ignored() {
    let status = outcome("a_foreign_fault_cannot_be_ignored", || {
        handle_with(libc::SIG_IGN, 0);
        fault();
    });
    assert_eq!(status.signal(), Some(libc::SIGBUS), "{status}");
}

#[test]
fn a_foreign_fault_reaches_the_handler_before_with_its_facts() {
    let status = outcome("a_foreign_fault_reaches_the_handler_before_with_its_facts", || {
        handle_with(with_facts as *const () as usize, libc::SA_SIGINFO);
        fault();
    });
    assert_eq!(status.code(), Some(42), "{status}");
}

#[test]
fn a_foreign_fault_reaches_a_plain_handler_before() {
    let status = outcome("a_foreign_fault_reaches_a_plain_handler_before", || {
        handle_with(plain as *const () as usize, 0);
        fault();
    });
    assert_eq!(status.code(), Some(43), "{status}");
}

#[test]
fn a_sent_signal_kills_by_default() {
    let status = outcome("a_sent_signal_kills_by_default", || {
        handle_with(libc::SIG_DFL, 0);
        ours();
        send();
    });
    assert_eq!(status.signal(), Some(libc::SIGBUS), "{status}");
}

#[test]
fn a_sent_signal_can_be_ignored() {
    let status = outcome("a_sent_signal_can_be_ignored", || {
        handle_with(libc::SIG_IGN, 0);
        ours();
        send();
        ours();
    });
    assert_eq!(status.code(), Some(0), "{status}");
}

#[test]
fn a_sent_signal_reaches_the_handler_before() {
    let status = outcome("a_sent_signal_reaches_the_handler_before", || {
        handle_with(counting as *const () as usize, 0);
        ours();
        assert_eq!(DELIVERED.load(Ordering::SeqCst), 0); // ours is not its business
        send();
        ours();
        send();
        assert_eq!(DELIVERED.load(Ordering::SeqCst), 2);
    });
    assert_eq!(status.code(), Some(0), "{status}");
}

#[test]
fn a_handler_for_one_time_is_used_once() {
    let status = outcome("a_handler_for_one_time_is_used_once", || {
        handle_with(counting as *const () as usize, libc::SA_RESETHAND);
        ours();
        look(&foreign()); // returns, faults again, and nobody is there any more
    });
    assert_eq!(status.signal(), Some(libc::SIGBUS), "{status}");
}
