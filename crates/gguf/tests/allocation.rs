//! Parsing allocates for its index of keys and tensors, and nothing for a vocabulary, however long. A binary of
//! its own: the allocator counts for the whole process.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use gguf2st_gguf::write::Builder;
use gguf2st_gguf::{OwnedValue, ValueType, parse_gguf};

struct Counting;

static CALLS: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator as it came; counting touches no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Relaxed);
        BYTES.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `System` by way of `alloc`, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A head with a vocabulary of so many tokens, scores and types.
fn vocabulary(tokens: u32) -> Vec<u8> {
    let strings = (0..tokens).map(|token| OwnedValue::from(format!("token {token}").as_str())).collect();
    let scores = (0..tokens).map(|_| OwnedValue::F32(-1.0)).collect();
    let types = (0..tokens).map(|_| OwnedValue::I32(1)).collect();
    Builder::new()
        .metadata("general.architecture", "llama")
        .metadata("tokenizer.ggml.tokens", OwnedValue::Array(ValueType::String, strings))
        .metadata("tokenizer.ggml.scores", OwnedValue::Array(ValueType::F32, scores))
        .metadata("tokenizer.ggml.token_type", OwnedValue::Array(ValueType::I32, types))
        .head()
        .unwrap()
}

/// Allocations and their bytes while parsing `head` and walking its tokens.
fn counted(head: &[u8], tokens: u32) -> (usize, usize) {
    let before = (CALLS.load(Relaxed), BYTES.load(Relaxed));
    let file = parse_gguf(head, head.len() as u64).unwrap();
    let parsed = (CALLS.load(Relaxed) - before.0, BYTES.load(Relaxed) - before.1);
    let walked = file.metadata().get("tokenizer.ggml.tokens").unwrap().as_array().unwrap().iter().count();
    assert_eq!(walked, tokens as usize);
    let after = (CALLS.load(Relaxed) - before.0, BYTES.load(Relaxed) - before.1);
    assert_eq!(parsed, after, "walking allocates");
    parsed
}

// One test only, since a second one's allocations would be counted too.
#[test]
fn a_vocabulary_costs_no_allocation() {
    let (small, large) = (vocabulary(10), vocabulary(100_000));
    let (few, many) = (counted(&small, 10), counted(&large, 100_000));
    assert_eq!(few, many, "allocations and bytes, with 10 tokens and with 100,000");
    assert!(many.0 <= 4 && many.1 <= 1024, "{many:?}");
}
