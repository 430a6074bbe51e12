//! The program as a user meets it: arguments in; standard output, standard error and exit status out.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
#![allow(clippy::print_stdout, reason = "a test says what it skips")]

mod check;
mod convert;
mod environment;
mod facts;
mod folders;
mod inspect;
mod man;
mod outputs;
mod remote;
mod restore;
mod server;
mod sets;
#[cfg(unix)]
mod stopping;
mod util;
mod values;
mod verify;
