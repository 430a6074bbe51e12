//! `gguf2st check MODEL`

use gguf2st_convert::{ConvertError, Model, PlanOptions, Values};
use gguf2st_gguf::{Check, ParserError, Place, Verdict};

use crate::args::CheckArgs;
use crate::error::{Failure, Outcome};
use crate::open;
use crate::render::Out;
use crate::render::check::{verdict, write_checks_json, write_text};

pub(super) fn run(args: &CheckArgs, out: &mut Out) -> Result<Outcome, Failure> {
    let checks = match open::model(&args.model) {
        Ok(model) => {
            let mut checks = model.file().check();
            checks.push(conversion(&model, &checks));
            model.source().intact()?;
            checks
        }
        // That it can't be read is what was to be found out.
        Err(ConvertError::Parse { error, .. }) => vec![Check::new(failed(&error), Verdict::Fail, error.to_string())],
        Err(error) => return Err(error.into()),
    };
    let look = out.look();
    let written = if args.json { write_checks_json(out, &args.model, &checks) } else { write_text(out, look, &checks) };
    match written.map_err(Failure::output) {
        // The verdict holds though nobody reads the lines.
        Ok(()) | Err(Failure::Unread) => {}
        Err(error) => return Err(error),
    }
    Ok(if verdict(&checks) == Verdict::Fail { Outcome::Found } else { Outcome::Done })
}

/// Whether a plan can be made, which is where a conversion refuses.
fn conversion(model: &Model, checks: &[Check]) -> Check {
    const NAME: &str = "conversion";
    if verdict(checks) == Verdict::Fail {
        return Check::new(NAME, Verdict::Fail, "refused for what fails above");
    }
    match model.plan(&PlanOptions { values: Values::Raw, ..PlanOptions::default() }) {
        Ok(plan) => Check::new(NAME, Verdict::Ok, format!("{} bytes as raw safetensors", plan.bytes)),
        Err(error) => Check::new(NAME, Verdict::Fail, error.to_string()),
    }
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
        ParserError::DuplicateTensor { .. } => "tensor_names",
        _ => "parse",
    }
}
