//! `gguf2st check MODEL`

use std::path::Path;

use gguf2st_convert::{ConvertError, Model, PlanOptions, Stats, Values};
use gguf2st_gguf::{Check, Escaped, ParserError, Place, Verdict};
use gguf2st_source::EscapedPath;

use super::inspect::stats;
use crate::args::{CheckArgs, GlobalArgs};
use crate::error::{Failure, Outcome};
use crate::open::Given;
use crate::render::check::{verdict, write_checks_json, write_text};
use crate::render::{Out, units};

pub(super) fn run(args: &CheckArgs, global: GlobalArgs, out: &mut Out) -> Result<Outcome, Failure> {
    let given = Given::parse(&args.model)?;
    let checks = match given.to_look_at() {
        Ok(model) => {
            let mut checks = of_parts(&model);
            checks.extend(split_set(&model));
            checks.push(conversion(&model, &checks));
            if args.data {
                checks.push(values(&model, &checks, global)?);
            }
            model.intact()?;
            checks
        }
        // That it can't be read is what was to be found out.
        Err(ConvertError::Parse { error, .. }) => vec![Check::new(failed(&error), Verdict::Fail, error.to_string())],
        Err(error) => return Err(error.into()),
    };
    let look = out.look();
    let written =
        if args.json { write_checks_json(out, given.name(), &checks) } else { write_text(out, look, &checks) };
    match written.map_err(Failure::output) {
        // The verdict holds though nobody reads the lines.
        Ok(()) | Err(Failure::Unread) => {}
        Err(error) => return Err(error),
    }
    Ok(if verdict(&checks) == Verdict::Fail { Outcome::Found } else { Outcome::Done })
}

/// The checks of every part; of several, each says which. Metadata about the model is the first part's alone.
fn of_parts(model: &Model) -> Vec<Check> {
    let several = model.parts().len() > 1;
    let parts = model.parts().iter().enumerate().flat_map(|(position, part)| {
        let path = part.source().name();
        let name = EscapedPath(path.file_name().map_or(path, Path::new)).to_string();
        let wanted = move |check: &Check| position == 0 || check.name != "required_keys";
        part.file().check().into_iter().filter(wanted).map(move |check| match several {
            true => Check::new(check.name, check.verdict, format!("{name}: {}", check.detail)),
            false => check,
        })
    });
    parts.collect()
}

/// Whether the parts of a set make up a model; nothing of a container that stands alone.
fn split_set(model: &Model) -> Option<Check> {
    const NAME: &str = "split_set";
    match (model.fault(), model.parts().len()) {
        (Some(fault), _) => Some(Check::new(NAME, Verdict::Fail, fault.to_string())),
        (None, 1) => None,
        (None, count) => {
            let tensors = units::plural(model.tensors().count(), "tensor");
            Some(Check::new(NAME, Verdict::Ok, format!("{count} parts of one model, {tensors}")))
        }
    }
}

/// Whether a plan can be made, which is where a conversion refuses.
fn conversion(model: &Model, checks: &[Check]) -> Check {
    const NAME: &str = "conversion";
    if verdict(checks) == Verdict::Fail {
        return Check::new(NAME, Verdict::Fail, "refused for what fails above");
    }
    match model.plan(&PlanOptions { values: Values::Raw, ..PlanOptions::default() }) {
        Ok(plan) => Check::new(NAME, Verdict::Ok, format!("{} bytes as raw safetensors", plan.bytes())),
        Err(error) => Check::new(NAME, Verdict::Fail, error.to_string()),
    }
}

/// Whether every value is a finite number. Unlike the others it reads the whole file.
fn values(model: &Model, checks: &[Check], global: GlobalArgs) -> Result<Check, Failure> {
    const NAME: &str = "values";
    if verdict(checks) == Verdict::Fail {
        // The verdict of the whole stays that of what fails.
        return Ok(Check::new(NAME, Verdict::Warn, "not looked at, because of what fails above"));
    }
    let stats = stats(model, global)?;
    let tensors = || model.tensors().map(|(_, tensor)| tensor).zip(&stats);
    let faults = tensors().filter_map(|(tensor, stats)| {
        let Stats { nan, infinite, values, .. } = *stats.as_ref()?;
        let name = Escaped(tensor.name);
        (nan + infinite > 0).then(|| format!("tensor {name:?} has {nan} NaN and {infinite} Inf in {values} values"))
    });
    let unread = tensors().filter(|(_, stats)| stats.is_none());
    let unread = unread.map(|(tensor, _)| format!("{:?} ({})", Escaped(tensor.name), tensor.ggml_type));
    let (faults, unread) = (first_few(faults, "; "), first_few(unread, ", "));
    let looked_at: u64 = stats.iter().flatten().map(|stats| stats.values).sum();
    let mut detail = faults.clone().unwrap_or_else(|| format!("{looked_at} values, all finite"));
    if let Some(unread) = &unread {
        let order = model.file().byte_order().name();
        detail += &format!("; not looked at, having no decoder for {order}-endian files: {unread}");
    }
    let verdict = match (faults, unread) {
        (Some(_), _) => Verdict::Fail,
        (None, Some(_)) => Verdict::Warn,
        (None, None) => Verdict::Ok,
    };
    Ok(Check::new(NAME, verdict, detail))
}

/// The first of some texts and how many more there are, if there are any.
fn first_few(texts: impl Iterator<Item = String>, separator: &str) -> Option<String> {
    const FEW: usize = 5;
    let mut texts: Vec<_> = texts.collect();
    let more = texts.len().saturating_sub(FEW);
    texts.truncate(FEW);
    if more > 0 {
        texts.push(format!("and {more} more"));
    }
    (!texts.is_empty()).then(|| texts.join(separator))
}

/// The name of the check that an error of parsing fails.
fn failed(error: &ParserError) -> &'static str {
    match error {
        ParserError::Empty
        | ParserError::InvalidMagic { .. }
        | ParserError::UnsupportedVersion { .. }
        | ParserError::UnexpectedEof { place: Place::Header, .. } => "header",
        ParserError::CountTooLarge { place: Place::Header, .. } => "counts",
        ParserError::AlignmentType { .. } | ParserError::AlignmentValue { .. } => "alignment",
        ParserError::EmptyKey { .. } | ParserError::DuplicateKey { .. } => "metadata_keys",
        ParserError::DuplicateTensor { .. } | ParserError::EmptyTensorName { .. } => "tensor_names",
        _ => "parse",
    }
}
