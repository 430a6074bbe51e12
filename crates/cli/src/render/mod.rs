//! The only place that knows a terminal: how wide it is, whether it has colours, and what it must not be sent.
//!
//! Whatever a file contains goes through [`text`] or [`json`], which let no character through that acts on a
//! terminal or misleads a reader.

pub(crate) mod check;
pub(crate) mod inspect;
mod json;
mod out;
pub(crate) mod plan;
pub(crate) mod progress;
pub(crate) mod report;
mod table;
mod text;
pub(crate) mod units;
pub(crate) mod values;
pub(crate) mod verify;
pub(crate) mod written;

pub(crate) use json::write_json;
pub(crate) use out::{Look, Out};
pub(crate) use text::Extent;
