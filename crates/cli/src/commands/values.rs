//! `gguf2st inspect MODEL --values NAME`

use std::path::Path;

use crate::close::close;
use crate::error::{Failure, Outcome};
use crate::open;
use crate::render::Out;
use crate::render::values::{First, write_json, write_text};

/// Values that are shown unless another number is asked for.
const COUNT: usize = 16;

pub(super) fn run(
    path: &Path,
    name: &str,
    count: Option<usize>,
    json: bool,
    out: &mut Out,
) -> Result<Outcome, Failure> {
    let model = open::model(path)?;
    let tensors = model.file().tensors();
    let unknown = || {
        let names: Vec<_> = tensors.iter().map(|tensor| tensor.name.as_ref()).collect();
        Failure::NoTensor { path: path.into(), name: name.into(), close: close(name, &names) }
    };
    let tensor = tensors.find(name).ok_or_else(unknown)?;
    let values = model.first_values(name, count.unwrap_or(COUNT))?.ok_or_else(unknown)?;
    let first = First { path, tensor, values: &values };
    if json { write_json(out, &first) } else { write_text(out, &first) }.map_err(Failure::output)?;
    model.source().intact()?;
    Ok(Outcome::Done)
}
