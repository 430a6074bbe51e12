//! `gguf2st inspect MODEL --values NAME`

use crate::close::close;
use crate::error::{Failure, Outcome};
use crate::open::Given;
use crate::render::Out;
use crate::render::values::{First, write_json, write_text};

/// Values that are shown unless another number is asked for.
const COUNT: usize = 16;

pub(super) fn run(
    given: &Given,
    name: &str,
    count: Option<usize>,
    json: bool,
    out: &mut Out,
) -> Result<Outcome, Failure> {
    let model = given.to_look_at()?;
    let path = given.name();
    let unknown = || {
        let names: Vec<_> = model.tensors().map(|(_, tensor)| tensor.name.as_ref()).collect();
        Failure::NoTensor { path: path.into(), name: name.into(), close: close(name, &names) }
    };
    let tensor = model.parts().iter().find_map(|part| part.file().tensors().find(name)).ok_or_else(unknown)?;
    let values = model.first_values(name, count.unwrap_or(COUNT))?.ok_or_else(unknown)?;
    let first = First { path, tensor, values: &values };
    if json { write_json(out, &first) } else { write_text(out, &first) }.map_err(Failure::output)?;
    model.intact()?;
    Ok(Outcome::Done)
}
