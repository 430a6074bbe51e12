//! The signal: what happens when a mapped page cannot be had.
//!
//! Touching a mapped page behind the end of its file (or on a failing disk) raises SIGBUS in the
//! thread that touches. The handler here looks up the address among the mappings that are
//! [watched](Watch). If it is in one, the rest of that mapping becomes zeros, the loss is noted, and
//! the thread goes on where it was; if not, the signal goes on to whoever handled it before.
//!
//! ```text
//!                  mapping, in pages
//!   before   │ file │ file │ gone │ gone │ gone │
//!                             ▲ touched
//!   after    │ file │ file │ zero │ zero │ zero │    lost = 2 pages
//! ```
//!
//! The handler runs in the middle of anything, so it takes no lock and no memory. It walks a list of
//! slots that only ever grows and whose slots are used again, and tells a slot that is being rewritten
//! by a sequence number. Such a slot can be passed over: the mapping that this thread is touching is
//! alive, and its slot therefore at rest.
#![allow(unsafe_code)] // a signal handler, and memory mapped over memory

use std::io;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use libc::{c_int, c_void, sigaction, siginfo_t};

/// Keeps faults in a mapping from being fatal, for as long as it lives.
///
/// Must end before the mapping does; else the address could belong to somebody else already.
#[derive(Debug)]
pub(crate) struct Watch(&'static Slot);

impl Watch {
    /// Watches `mapping`, which must start at a page and be all that its last page holds.
    pub(crate) fn over(mapping: &[u8]) -> io::Result<Self> {
        let mut writers = writers();
        if !writers.handling {
            install()?;
            writers.handling = true;
        }
        let start = mapping.as_ptr().addr();
        let end = (start + mapping.len()).next_multiple_of(page_size());
        let slot = writers.slot();
        slot.write(start, end);
        Ok(Self(slot))
    }

    /// The first byte of the mapping that is known to be lost, if any is.
    pub(crate) fn lost(&self) -> Option<usize> {
        // The looks at the mapping that came before this call happen before it.
        fence(Ordering::SeqCst);
        let lost = self.0.lost.load(Ordering::Relaxed);
        (lost != NOTHING).then_some(lost)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut writers = writers();
        self.0.write(0, 0);
        writers.free.push(self.0);
    }
}

/// One watched mapping: addresses `start..end`, whole pages. Free if empty.
#[derive(Debug)]
struct Slot {
    /// Odd while the slot is being rewritten.
    sequence: AtomicUsize,
    start: AtomicUsize,
    end: AtomicUsize,
    /// The first lost byte, counted from `start`.
    lost: AtomicUsize,
    next: OnceLock<&'static Slot>,
}

const NOTHING: usize = usize::MAX;

/// The list of slots, as the handler sees it.
static FIRST: OnceLock<&'static Slot> = OnceLock::new();

/// What those need to know who add and remove mappings; never touched by the handler.
struct Writers {
    handling: bool,
    free: Vec<&'static Slot>,
    last: Option<&'static Slot>,
}

fn writers() -> MutexGuard<'static, Writers> {
    static WRITERS: Mutex<Writers> = Mutex::new(Writers { handling: false, free: Vec::new(), last: None });
    WRITERS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Writers {
    /// A slot that nobody uses: an old one, or a new one at the end of the list.
    fn slot(&mut self) -> &'static Slot {
        if let Some(slot) = self.free.pop() {
            return slot;
        }
        // Never freed, since a handler may be looking at it. There are as many as there were ever
        // mappings at once.
        let slot: &'static Slot = Box::leak(Box::new(Slot {
            sequence: AtomicUsize::new(0),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            lost: AtomicUsize::new(NOTHING),
            next: OnceLock::new(),
        }));
        let end = self.last.map_or(&FIRST, |last| &last.next);
        end.get_or_init(|| slot);
        self.last = Some(slot);
        slot
    }
}

impl Slot {
    /// Rewrites the slot. Only for who holds the lock of the writers.
    fn write(&self, start: usize, end: usize) {
        let sequence = self.sequence.load(Ordering::Relaxed);
        self.sequence.store(sequence.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release); // whoever sees a new value sees the odd number too
        self.start.store(start, Ordering::Relaxed);
        self.end.store(end, Ordering::Relaxed);
        self.lost.store(NOTHING, Ordering::Relaxed);
        self.sequence.store(sequence.wrapping_add(2), Ordering::Release);
    }

    /// Start and end, unless they are being rewritten.
    fn read(&self) -> Option<(usize, usize)> {
        let before = self.sequence.load(Ordering::Acquire);
        let addresses = (self.start.load(Ordering::Relaxed), self.end.load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        let after = self.sequence.load(Ordering::Relaxed);
        (before.is_multiple_of(2) && before == after).then_some(addresses)
    }
}

/// The slot of the mapping that `address` is in, with its start and end.
fn find(address: usize) -> Option<(&'static Slot, usize, usize)> {
    // Looking at a `OnceLock` is one atomic load: fit for a handler.
    let mut at = FIRST.get();
    while let Some(slot) = at {
        if let Some((start, end)) = slot.read()
            && (start..end).contains(&address)
        {
            return Some((slot, start, end));
        }
        at = slot.next.get();
    }
    None
}

/// What the handler needs to have at hand.
struct Known {
    previous: sigaction,
    page: usize,
}

static KNOWN: OnceLock<Known> = OnceLock::new();

/// The size of a page in bytes, a power of two.
pub(crate) fn page_size() -> usize {
    static PAGE: OnceLock<usize> = OnceLock::new();
    *PAGE.get_or_init(|| {
        // SAFETY: asks for a number and touches no memory of ours.
        let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(size).unwrap_or(4096)
    })
}

/// Makes the handler the process's own.
fn install() -> io::Result<()> {
    // SAFETY: a `sigaction` of zeros is a valid one: the default action, no flags, an empty mask.
    let mut previous: sigaction = unsafe { mem::zeroed() };
    // SAFETY: asks only; `previous` is a `sigaction` to be written to.
    if unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut previous) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // Before the handler stands, so that its first call finds it.
    let known = KNOWN.get_or_init(|| Known { previous, page: page_size() });

    let mut ours = known.previous; // with the mask that the previous handler wants
    ours.sa_sigaction = handle as *const () as usize;
    // On the alternative stack where a thread has one, as Rust's threads do: the signal may meet a
    // thread at the end of its stack, and then it is the previous handler's business.
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | (previous.sa_flags & (libc::SA_RESTART | libc::SA_NODEFER));
    // SAFETY: `ours` is filled in, and `handle` has the signature that SA_SIGINFO promises and calls
    // nothing that is not allowed in a handler.
    if unsafe { libc::sigaction(libc::SIGBUS, &raw const ours, ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The handler.
extern "C" fn handle(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: where this thread's `errno` is never changes.
    let errno = unsafe { errno_location() };
    // SAFETY: `errno` is an aligned integer of this thread.
    let saved = unsafe { *errno };

    // SAFETY: the kernel passes a valid `siginfo_t` to a handler with SA_SIGINFO.
    let facts = unsafe { &*info };
    let faulted = PAGE_FAULTS.contains(&facts.si_code);
    // SAFETY: the code says that an access failed, and then the field is its address. (In a signal that
    // a process sent, there is something else in that place.)
    if !(faulted && mend(unsafe { facts.si_addr() }.addr())) {
        pass_on(faulted, signal, info, context);
    }

    // SAFETY: as for reading it.
    unsafe { *errno = saved };
}

/// The causes that mean that a page could not be had: no such address (2), the medium failed (3), the
/// memory itself failed (4). Darwin on Arm calls them all 1, which elsewhere is a misaligned access.
const PAGE_FAULTS: &[c_int] = if cfg!(target_vendor = "apple") { &[1, 2, 3] } else { &[2, 3, 4] };

/// Puts zeros where `address` is, up to the end of the mapping, if it is in a watched one.
fn mend(address: usize) -> bool {
    let Some(known) = KNOWN.get() else {
        return false;
    };
    let Some((slot, start, end)) = find(address) else {
        return false;
    };
    let page = address & !(known.page - 1);
    // Noted first: who can see the zeros can see this.
    slot.lost.fetch_min(page - start, Ordering::SeqCst);
    // SAFETY: `page..end` are whole pages at the end of a mapping that the faulting thread holds alive,
    // so nothing of anybody else's is there; it was read-only and stays so. `mmap` is one system call
    // and no more on the systems that we know, if not on POSIX's list for handlers.
    let zeros = unsafe {
        libc::mmap(
            ptr::without_provenance_mut(page),
            end - page,
            libc::PROT_READ,
            libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_FIXED,
            -1,
            0,
        )
    };
    zeros != libc::MAP_FAILED
}

/// Does what would have been done without us.
fn pass_on(faulted: bool, signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let Some(Known { previous, .. }) = KNOWN.get() else {
        return;
    };
    match previous.sa_sigaction {
        // The kernel does not let a fault be ignored.
        libc::SIG_IGN if !faulted => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            reset(signal);
            // A fault comes back by itself as soon as we return, and with its address. A signal that was
            // sent does not, and is sent again: it waits until we return.
            if !faulted {
                // SAFETY: may be called in a handler.
                unsafe { libc::raise(signal) };
            }
        }
        handler => {
            if previous.sa_flags & libc::SA_RESETHAND != 0 {
                reset(signal);
            }
            if previous.sa_flags & libc::SA_SIGINFO != 0 {
                // SAFETY: with SA_SIGINFO the field holds a function of this type, which whoever
                // installed it answers for; it gets what the kernel gave to us.
                let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = unsafe { mem::transmute(handler) };
                handler(signal, info, context);
            } else {
                // SAFETY: without SA_SIGINFO it is a function of this type.
                let handler: extern "C" fn(c_int) = unsafe { mem::transmute(handler) };
                handler(signal);
            }
        }
    }
}

/// Brings back the default action.
fn reset(signal: c_int) {
    // SAFETY: a `sigaction` of zeros is a valid one, and means the default action.
    let default: sigaction = unsafe { mem::zeroed() };
    // SAFETY: may be called in a handler; `default` is valid.
    unsafe { libc::sigaction(signal, &raw const default, ptr::null_mut()) };
}

#[cfg(any(target_os = "linux", target_os = "emscripten", target_os = "hurd", target_os = "redox"))]
use libc::__errno_location as errno_location;

#[cfg(any(target_os = "android", target_os = "netbsd", target_os = "openbsd", target_os = "cygwin"))]
use libc::__errno as errno_location;

#[cfg(any(target_vendor = "apple", target_os = "freebsd"))]
use libc::__error as errno_location;

#[cfg(any(target_os = "illumos", target_os = "solaris"))]
use libc::___errno as errno_location;

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    /// Slots are rewritten all the time while others look: nobody sees half of one.
    #[test]
    fn a_slot_is_seen_whole_or_not_at_all() {
        let rounds = if cfg!(miri) { 100 } else { 20_000 };
        let slots: Vec<_> = (0..3).map(|_| writers().slot()).collect();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        for slot in &slots {
                            if let Some((start, end)) = slot.read() {
                                assert_eq!(end, 2 * start);
                            }
                        }
                    }
                });
            }
            for round in 1..rounds {
                let _lock = writers();
                slots[round % 3].write(round, 2 * round);
            }
            done.store(true, Ordering::Relaxed);
        });
        for slot in slots {
            slot.write(0, 0);
        }
    }

    #[test]
    fn an_address_is_found_by_its_mapping() {
        // Addresses where nothing is ever mapped.
        let slots: Vec<_> = (0..3).map(|_| writers().slot()).collect();
        for (at, slot) in slots.iter().enumerate() {
            let _lock = writers();
            slot.write(10 + 10 * at, 20 + 10 * at);
        }
        let found = |address| find(address).map(|(_, start, end)| (start, end));
        assert_eq!(found(9), None);
        assert_eq!(found(10), Some((10, 20)));
        assert_eq!(found(19), Some((10, 20)));
        assert_eq!(found(20), Some((20, 30)));
        assert_eq!(found(39), Some((30, 40)));
        assert_eq!(found(40), None);
        slots[1].write(0, 0);
        assert_eq!(found(20), None);
        slots[0].write(0, 0);
        slots[2].write(0, 0);
    }
}
