//! A split set: its parts found by name, and held against each other.

use std::collections::HashMap;
use std::sync::Arc;

use gguf2st_gguf::{Escaped, SplitKeyFault, SplitName};
use gguf2st_source::{Source, SourceError};

use super::Part;
use crate::error::ConvertError;

/// Why the parts of a set can't be taken as one model. Names are shown escaped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetFault {
    /// The container was opened without the others.
    #[error("bad split: it is one of {count} parts, and was opened without the others")]
    Alone {
        /// How many there are.
        count: u64,
    },
    /// A `split.*` key makes no sense.
    #[error("bad split: in {:?}, {fault}", Escaped(name.as_bytes()))]
    Key {
        /// The part.
        name: String,
        /// What is wrong.
        fault: SplitKeyFault,
    },
    /// The file's name does not say where its siblings are, or says something else than its keys.
    #[error("bad split: {:?} says inside that it is part {number} of {count}; by that it should be called …-{number:05}-of-{count:05}.gguf", Escaped(name.as_bytes()))]
    Name {
        /// The file's name.
        name: String,
        /// Which part it says it is, from one.
        number: u64,
        /// Of how many.
        count: u64,
    },
    /// A part can't be opened or read.
    #[error("bad split: part {:?}: {error}", Escaped(name.as_bytes()))]
    Part {
        /// Its name.
        name: String,
        /// Why.
        error: String,
    },
    /// A part says something else than the part named.
    #[error("bad split: {:?} has {what} {found}; {expected} is expected, as in {:?}", Escaped(name.as_bytes()), Escaped(named.as_bytes()))]
    Differs {
        /// The part.
        name: String,
        /// What differs: a key, the byte order, the architecture.
        what: &'static str,
        /// What it has.
        found: String,
        /// What it should have.
        expected: String,
        /// The part that says so.
        named: String,
    },
    /// A tensor is in two parts.
    #[error("bad split: duplicate tensor {:?}, in {:?} and in {:?}", Escaped(tensor.as_bytes()), Escaped(first.as_bytes()), Escaped(second.as_bytes()))]
    DuplicateTensor {
        /// Its name.
        tensor: String,
        /// The first part that has it.
        first: String,
        /// The second.
        second: String,
    },
    /// The parts hold another number of tensors than they say.
    #[error("bad split: split.tensors.count is {expected}, the parts hold {found} tensors")]
    TensorCount {
        /// What is said.
        expected: u64,
        /// What is there.
        found: u64,
    },
}

/// Opens the file of another name beside a part.
pub type Sibling<'a> = &'a dyn Fn(&str) -> Result<Arc<dyn Source>, SourceError>;

/// The parts of the set that a container is part of, in order; `None` where it stands alone.
pub(super) fn join(named: &Part, sibling: Sibling<'_>) -> Result<Option<Vec<Part>>, SetFault> {
    let name = named.file_name();
    let keys = named.file.split_keys().map_err(|fault| SetFault::Key { name: name.clone(), fault })?;
    let Some(keys) = keys else { return Ok(None) };
    let number = keys.number + 1;
    let split = SplitName::parse(&name)
        .filter(|split| (u64::from(split.number), u64::from(split.count)) == (number, keys.count))
        .ok_or_else(|| SetFault::Name { name: name.clone(), number, count: keys.count })?;

    let mut parts = Vec::new();
    for number in 1..=split.count {
        if number == split.number {
            parts.push(named.clone());
        } else {
            let name = split.part(number).to_string();
            let opened = sibling(&name).map_err(ConvertError::from).and_then(Part::open);
            let part = opened.map_err(|error| SetFault::Part { name, error: error.to_string() })?;
            hold_against(&part, named, u64::from(number) - 1)?;
            parts.push(part);
        }
    }
    hold_tensors(&parts, keys.tensors)?;
    Ok(Some(parts))
}

/// Whether a part fits the part named.
fn hold_against(part: &Part, named: &Part, number: u64) -> Result<(), SetFault> {
    let name = part.file_name();
    let differs = |what, found: String, expected: String| {
        Err(SetFault::Differs { name: name.clone(), what, found, expected, named: named.file_name() })
    };
    let keys = part.file.split_keys().map_err(|fault| SetFault::Key { name: name.clone(), fault })?;
    let expected = named.file.split_keys().ok().flatten();
    let count =
        |keys: Option<gguf2st_gguf::SplitKeys>| keys.map_or("missing".to_owned(), |keys| keys.count.to_string());
    match keys {
        Some(found) if Some(found.count) == expected.map(|keys| keys.count) => {
            if found.number != number {
                return differs("split.no", found.number.to_string(), number.to_string());
            }
            let tensors = expected.and_then(|keys| keys.tensors).zip(found.tensors);
            if let Some((expected, found)) = tensors.filter(|(expected, found)| expected != found) {
                return differs("split.tensors.count", found.to_string(), expected.to_string());
            }
        }
        found => return differs("split.count", count(found), count(expected)),
    }
    let order = |part: &Part| part.file.byte_order().name().to_owned();
    if order(part) != order(named) {
        return differs("byte order", order(part), order(named));
    }
    let architecture = |part: &Part| part.file.metadata().get("general.architecture").map(|value| value.to_string());
    match (architecture(part), architecture(named)) {
        (Some(found), Some(expected)) if found != expected => differs("general.architecture", found, expected),
        _ => Ok(()),
    }
}

/// Whether each tensor is in one part, and all are there.
fn hold_tensors(parts: &[Part], expected: Option<u64>) -> Result<(), SetFault> {
    let mut seen = HashMap::new();
    let mut found = 0;
    for part in parts {
        for tensor in part.file.tensors().iter() {
            found += 1;
            if let Some(first) = seen.insert(tensor.name, part) {
                return Err(SetFault::DuplicateTensor {
                    tensor: tensor.name.to_string(),
                    first: first.file_name(),
                    second: part.file_name(),
                });
            }
        }
    }
    match expected {
        Some(expected) if expected != found => Err(SetFault::TensorCount { expected, found }),
        _ => Ok(()),
    }
}
