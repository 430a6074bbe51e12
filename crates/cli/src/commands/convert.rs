//! `gguf2st convert MODEL OUT`

use gguf2st_convert::{Existing, FloatDtype, Model, Plan, PlanOptions, Report, RunOptions, Values};
use gguf2st_gguf::{Escaped, GgmlType};

use crate::args::{ConvertArgs, DtypeChoice, GlobalArgs, WorkArgs};
use crate::error::{Failure, Outcome};
use crate::open;
use crate::render::progress::{Progress, wrote};
use crate::render::report::warning;
use crate::render::{Out, units};

pub(super) fn run(args: &ConvertArgs, global: GlobalArgs, out: &mut Out) -> Result<Outcome, Failure> {
    let model = Model::open(open::plainly(&args.model)?)?;
    let plan = model.plan(&PlanOptions {
        values: values(args.dtype),
        keep_f32: args.keep_f32.clone(),
        ..PlanOptions::default()
    })?;
    if !global.quiet {
        warn_of_strays(&plan, &args.keep_f32);
    }
    let options = RunOptions { strict: args.strict, ..run_options(args.work) };
    let progress = Progress::new("converting", plan.bytes(), global);
    let report = model.convert(&plan, &args.output, &options, &|bytes| progress.advance(bytes))?;
    let seconds = progress.finish();
    if !global.quiet {
        warn_of_overflow(&model, &report);
        wrote(out, &args.output, Some(report.tensors), report.bytes, seconds).map_err(Failure::output)?;
    }
    Ok(Outcome::Done)
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
