//! `gguf2st convert MODEL OUT --dry-run`

use gguf2st_convert::{Model, Plan, RunOptions, Shard};
use gguf2st_source::EscapedPath;

use super::convert::wanted;
use crate::args::{ConvertArgs, GlobalArgs};
use crate::error::{Failure, Outcome};
use crate::render::plan::{DryRun, write_json, write_text};
use crate::render::report::warning;
use crate::render::{Out, units};

/// What a run takes beside the bytes in flight and the heads: tiles, buffers, the program itself.
const BESIDE: u64 = 64 << 20;

pub(super) fn run(
    args: &ConvertArgs,
    model: &Model,
    plan: &Plan,
    options: &RunOptions,
    global: GlobalArgs,
    out: &mut Out,
) -> Result<Outcome, Failure> {
    let shards: Vec<&Shard> = wanted(plan, options).collect();
    let input_bytes = plan.parts.iter().map(|part| part.bytes).fold(0, u64::saturating_add);
    let heads = model.parts().iter().map(|part| part.file().head_len()).fold(0, u64::saturating_add);
    let run = DryRun {
        path: &args.output,
        model,
        plan,
        needed: shards.iter().map(|shard| shard.bytes()).fold(0, u64::saturating_add),
        shards,
        input_bytes,
        free: gguf2st_convert::free_space(&args.output).ok(),
        in_flight: options.memory.min(input_bytes),
        heads,
        beside: BESIDE,
    };
    model.intact()?;
    if args.json { write_json(out, &run) } else { write_text(out, &run) }.map_err(Failure::output)?;
    if let Some(free) = run.free.filter(|free| *free < run.needed && !global.quiet) {
        out.finish()?;
        let (path, lacking) = (EscapedPath(&args.output), units::decimal(run.needed - free));
        warning(format_args!("{path}: the disk lacks {lacking}"));
    }
    Ok(Outcome::Done)
}
