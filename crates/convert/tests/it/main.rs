//! The library against files: what comes out, what comes back, and what is left behind when it fails.

#![allow(clippy::unwrap_used, clippy::float_cmp, reason = "tests: a panic is their answer, and floats are exact")]

mod convert;
mod folder;
mod opening;
mod outputs;
mod pipeline;
mod restore;
mod sets;
mod support;
mod truncation;
mod values;
mod verify;
