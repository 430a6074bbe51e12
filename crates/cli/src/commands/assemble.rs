//! `gguf2st assemble DIR`

use std::io::Write as _;

use gguf2st_convert::INDEX_FILE;
use gguf2st_source::EscapedPath;

use crate::args::{AssembleArgs, GlobalArgs};
use crate::error::{Failure, Outcome};
use crate::render::{Out, units};

pub(super) fn run(args: &AssembleArgs, global: GlobalArgs, out: &mut Out) -> Result<Outcome, Failure> {
    let (shards, tensors) = gguf2st_convert::assemble(&args.folder)?;
    if !global.quiet {
        // One file needs no index.
        let index = if shards > 1 { format!("; wrote {INDEX_FILE}") } else { String::new() };
        let (shards, tensors) = (units::plural(shards, "shard"), units::plural(tensors, "tensor"));
        let folder = EscapedPath(&args.folder);
        writeln!(out, "{folder}: {shards} of one conversion, {tensors}{index}").map_err(Failure::output)?;
    }
    Ok(Outcome::Done)
}
