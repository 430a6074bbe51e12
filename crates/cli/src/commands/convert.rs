//! `gguf2st convert MODEL OUT`

use gguf2st_convert::{Existing, FloatDtype, Model, PlanOptions, RunOptions, Values};
use gguf2st_gguf::Escaped;

use crate::args::{ConvertArgs, DtypeChoice, GlobalArgs, WorkArgs};
use crate::error::{Failure, Outcome};
use crate::open;
use crate::render::Out;
use crate::render::progress::{Progress, wrote};
use crate::render::report::warning;

pub(super) fn run(args: &ConvertArgs, global: GlobalArgs, out: &mut Out) -> Result<Outcome, Failure> {
    let model = Model::open(open::plainly(&args.model)?)?;
    let plan = model.plan(&PlanOptions { values: values(args.dtype), keep_f32: args.keep_f32.clone() })?;
    let options = RunOptions { strict: args.strict, ..run_options(args.work) };
    let progress = Progress::new("converting", plan.bytes, global);
    let report = model.convert(&plan, &args.output, options, &|bytes| progress.advance(bytes))?;
    let seconds = progress.finish();
    for (tensor, count) in &report.overflowed {
        warning(format_args!(
            "tensor {:?}: {count} finite values were too large and became infinite; --dtype bf16 or f32 holds them",
            Escaped(tensor.as_bytes())
        ));
    }
    if !global.quiet {
        wrote(out, &args.output, Some(report.tensors), report.bytes, seconds).map_err(Failure::output)?;
    }
    Ok(Outcome::Done)
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
