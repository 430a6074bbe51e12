//! The file naming convention of split sets, and the keys that say the same inside the files.
//!
//! A set's parts are named `STEM-00001-of-0000N.gguf`, counted from one with five digits; inside, `split.no`
//! counts from zero, `split.count` says how many there are and `split.tensors.count` how many tensors they hold
//! together (llama.cpp's `llama_split_path` and `gguf-split`).

use crate::file::GgufFile;
use crate::value::Value;

/// A file name that follows the convention.
///
/// ```
/// use gguf2st_gguf::SplitName;
///
/// let name = SplitName::parse("model-00002-of-00003.gguf").unwrap();
/// assert_eq!((name.stem, name.number, name.count), ("model", 2, 3));
/// assert_eq!(name.part(3).to_string(), "model-00003-of-00003.gguf");
/// assert_eq!(SplitName::parse("model.gguf"), None);
/// assert_eq!(SplitName::parse("model-00004-of-00003.gguf"), None); // not one of three
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SplitName<'a> {
    /// What stands before the number.
    pub stem: &'a str,
    /// Which part, from one.
    pub number: u32,
    /// Of how many.
    pub count: u32,
}

/// Digits of a number in a name.
const DIGITS: usize = 5;

impl<'a> SplitName<'a> {
    /// Reads a file name, without folders.
    #[must_use]
    pub fn parse(name: &'a str) -> Option<Self> {
        let name = name.strip_suffix(".gguf")?;
        let (name, count) = number_behind(name, "-of-")?;
        let (stem, number) = number_behind(name, "-")?;
        (1..=count).contains(&number).then_some(Self { stem, number, count })
    }

    /// The name of another part of the same set.
    #[must_use]
    pub fn part(self, number: u32) -> Self {
        Self { number, ..self }
    }
}

fn number_behind<'a>(name: &'a str, separator: &str) -> Option<(&'a str, u32)> {
    let (before, digits) = name.split_at_checked(name.len().checked_sub(DIGITS)?)?;
    let number = digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok())??;
    Some((before.strip_suffix(separator)?, number))
}

impl core::fmt::Display for SplitName<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}-{:0DIGITS$}-of-{:0DIGITS$}.gguf", self.stem, self.number, self.count)
    }
}

/// What a container says of the set it is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SplitKeys {
    /// `split.no`: which part, from zero.
    pub number: u64,
    /// `split.count`: of how many.
    pub count: u64,
    /// `split.tensors.count`: tensors of all parts, where it is said.
    pub tensors: Option<u64>,
}

/// A `split.*` key whose value makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} is {value}; {expected} is expected")]
#[non_exhaustive]
pub struct SplitKeyFault {
    /// The key.
    pub key: &'static str,
    /// Its value, shown; `missing` where there is none.
    pub value: String,
    /// What it should be.
    pub expected: &'static str,
}

impl<H: AsRef<[u8]>> GgufFile<H> {
    /// What the container says of the set it is part of; `None` for one that stands alone, which has no
    /// `split.count` or one of at most 1.
    ///
    /// # Errors
    ///
    /// [`SplitKeyFault`] for a key of another type than an integer, and numbers that no set has.
    pub fn split_keys(&self) -> Result<Option<SplitKeys>, SplitKeyFault> {
        const PARTS: &str = "a number of parts from 1 to 65535";
        const PART: &str = "a part's number below split.count";
        let Some(count) = self.split_key("split.count", PARTS)? else { return Ok(None) };
        if count <= 1 {
            return Ok(None);
        }
        let fault = |key, value: String, expected| Err(SplitKeyFault { key, value, expected });
        if count > u64::from(u16::MAX) {
            return fault("split.count", count.to_string(), PARTS);
        }
        match self.split_key("split.no", PART)? {
            None => fault("split.no", "missing".to_owned(), PART),
            Some(number) if number >= count => fault("split.no", number.to_string(), PART),
            Some(number) => {
                let tensors = self.split_key("split.tensors.count", "a number of tensors")?;
                Ok(Some(SplitKeys { number, count, tensors }))
            }
        }
    }

    fn split_key(&self, key: &'static str, expected: &'static str) -> Result<Option<u64>, SplitKeyFault> {
        let Some(value) = self.metadata().get(key) else { return Ok(None) };
        let number = value.as_integer().and_then(|number| u64::try_from(number).ok());
        number.map(Some).ok_or_else(|| SplitKeyFault { key, value: shown(value), expected })
    }
}

fn shown(value: Value<'_>) -> String {
    format!("{value} ({})", value.type_name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::Builder;
    use crate::{OwnedValue, ValueType, parse_gguf};

    #[test]
    fn names_that_only_look_like_parts() {
        for name in [
            "model-00000-of-00003.gguf",
            "model-1-of-3.gguf",
            "model-0001-of-00003.gguf",
            "model-00001-of-00003.bin",
            "model-00001_of-00003.gguf",
            "-of-00003.gguf",
            "model-+0001-of-00003.gguf",
            "日-本",
            "",
        ] {
            assert_eq!(SplitName::parse(name), None, "{name}");
        }
        let odd = SplitName::parse("100%s %n m-00001-of-00002.gguf").unwrap();
        assert_eq!(odd.part(2).to_string(), "100%s %n m-00002-of-00002.gguf");
    }

    fn keys(count: impl Into<OwnedValue>, number: impl Into<OwnedValue>) -> Result<Option<SplitKeys>, SplitKeyFault> {
        let head = Builder::new().metadata("split.count", count).metadata("split.no", number).head().unwrap();
        parse_gguf(&head, head.len() as u64).unwrap().split_keys()
    }

    #[test]
    fn keys_are_integers_of_any_width_and_make_sense() {
        let of = |number, count| Ok(Some(SplitKeys { number, count, tensors: None }));
        assert_eq!(keys(3_u16, 2_u16), of(2, 3));
        assert_eq!(keys(3_u32, 0_i32), of(0, 3));
        assert_eq!(keys(1_u16, 0_u16), Ok(None));
        assert_eq!(keys(3_u16, 3_u16).unwrap_err().key, "split.no");
        assert_eq!(keys(u64::MAX, 0_u16).unwrap_err().key, "split.count");
        assert_eq!(
            keys(3.0_f32, 0_u16).unwrap_err().to_string(),
            "split.count is 3.0 (f32); a number of parts from 1 to 65535 is expected"
        );
        assert!(keys(OwnedValue::Array(ValueType::U16, vec![3_u16.into()]), 0_u16).is_err());
    }
}
