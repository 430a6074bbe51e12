//! `gguf2st convert MODEL OUT`

use gguf2st_convert::{Existing, FloatDtype, Model, Plan, PlanOptions, Report, RunOptions, Shard, Values};
use gguf2st_gguf::{Escaped, GgmlType};
use gguf2st_source::Local;

use super::dry_run;
use crate::args::{ConvertArgs, DtypeChoice, GlobalArgs, LocalChoice, WorkArgs};
use crate::error::{Failure, Outcome};
use crate::open::Given;
use crate::render::progress::Progress;
use crate::render::report::warning;
use crate::render::written::{Wrote, write_complete, wrote};
use crate::render::{Out, units};
use crate::signals::Signals;

pub(super) fn run(args: &ConvertArgs, global: GlobalArgs, out: &mut Out) -> Result<Outcome, Failure> {
    let local = match args.source {
        LocalChoice::Read => Local::Read,
        LocalChoice::Mmap => Local::Mmap,
    };
    let model = Given::parse(&args.model)?.model(local)?;
    let plan = model.plan(&PlanOptions {
        values: values(args.dtype),
        keep_f32: args.keep_f32.clone(),
        shard_size: args.shard_size,
    })?;
    if !global.quiet {
        warn_of_strays(&plan, &args.keep_f32);
    }
    let options = options(args);
    if args.dry_run {
        return dry_run::run(args, &model, &plan, &options, global, out);
    }
    let signals = Signals::catch(&options.stop).map_err(Failure::Signals)?;
    let bytes = wanted(&plan, &options).map(Shard::bytes).fold(0, u64::saturating_add);
    let shards = plan.shard_size.map(|_| (options.current.clone(), plan.shards.len()));
    let progress = Progress::of_shards("converting", bytes, shards, global);
    let report = model
        .convert(&plan, &args.output, &options, &|bytes| progress.advance(bytes))
        .map_err(|error| signals.failure(error, plan.shard_size.is_some()))?;
    let seconds = progress.finish();
    if !global.quiet {
        warn_of_overflow(&model, &report);
        if report.files == 0 {
            write_complete(out, &args.output, report.kept)
        } else {
            let files = plan.shard_size.map(|_| report.files);
            let (tensors, kept) = (Some(report.tensors), report.kept);
            wrote(out, &Wrote { path: &args.output, files, kept, tensors, bytes: report.bytes, seconds })
        }
        .map_err(Failure::output)?;
    }
    Ok(Outcome::Done)
}

/// How the plan is carried out.
fn options(args: &ConvertArgs) -> RunOptions {
    let defaults = run_options(args.work);
    RunOptions {
        strict: args.strict,
        prefetch: args.prefetch.unwrap_or(defaults.prefetch),
        memory: args.memory.unwrap_or(defaults.memory),
        only_shards: args.only_shards.as_ref().map(|numbers| numbers.0.clone()),
        ..defaults
    }
}

/// The files that are wanted.
pub(super) fn wanted<'p>(plan: &'p Plan, options: &RunOptions) -> impl Iterator<Item = &'p Shard> {
    let shards = plan.shards.iter().zip(1..);
    let wanted = shards.filter(|(_, number)| options.only_shards.as_ref().is_none_or(|only| only.contains(number)));
    wanted.map(|(shard, _)| shard)
}

/// Says where finite values became infinite, and what holds them.
fn warn_of_overflow(model: &Model, report: &Report) {
    for (name, count) in &report.overflowed {
        let tensor = model.tensors().map(|(_, tensor)| tensor).find(|tensor| tensor.name == name.as_bytes());
        // Every other type decodes to f32.
        let wide = tensor.is_some_and(|tensor| tensor.ggml_type == GgmlType::F64);
        let holds = if wide { "auto" } else { "f32" };
        let values = units::plural(usize::try_from(*count).unwrap_or(usize::MAX), "finite value");
        let name = Escaped(name.as_bytes());
        warning(format_args!("tensor {name:?}: {values} too large for it became infinite; --dtype {holds} holds them"));
    }
}

/// Says which texts of `--keep-f32` are in no name: they are misspelt.
fn warn_of_strays(plan: &Plan, keep_f32: &[String]) {
    for text in keep_f32.iter().filter(|text| !plan.tensors().any(|tensor| tensor.name.contains(*text))) {
        warning(format_args!("--keep-f32: no tensor's name contains {:?}", Escaped(text.as_bytes())));
    }
}

fn values(dtype: DtypeChoice) -> Values {
    match dtype {
        DtypeChoice::Auto => Values::Auto,
        DtypeChoice::F32 => Values::Floats(FloatDtype::F32),
        DtypeChoice::F16 => Values::Floats(FloatDtype::F16),
        DtypeChoice::Bf16 => Values::Floats(FloatDtype::BF16),
        DtypeChoice::Raw => Values::Raw,
    }
}

/// What `--force` and `--threads` mean, for every command that has them.
pub(super) fn run_options(args: WorkArgs) -> RunOptions {
    let existing = if args.force { Existing::Replace } else { Existing::Keep };
    RunOptions { existing, threads: args.threads.threads, ..RunOptions::default() }
}
