//! Whether a container is sound: every check a line with its figures, from the head and the length alone.
//!
//! A check *fails* where a conversion would have to refuse the container or would get it wrong. What is
//! merely odd or against the specification, and read all the same, *warns*.

use core::fmt::{self, Write as _};

use crate::error::ParserError;
use crate::escape::{Escaped, is_deceptive};
use crate::file::GgufFile;
use crate::tensors::TensorInfo;
use crate::types::ValueType;
use crate::value::{Array, Value};

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// Odd, and read all the same.
    Warn,
    /// A conversion would refuse it or get it wrong.
    Fail,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "FAIL",
        })
    }
}

/// One line of [`GgufFile::check`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Check {
    /// What was checked: a stable name in `snake_case`.
    pub name: &'static str,
    /// How it came out.
    pub verdict: Verdict,
    /// The figures, or what is wrong and where. Safe to show.
    pub detail: String,
}

impl Check {
    /// A check's line.
    #[must_use]
    pub fn new(name: &'static str, verdict: Verdict, detail: impl Into<String>) -> Self {
        Self { name, verdict, detail: detail.into() }
    }
}

/// Faults of one kind that are told one by one; of the rest, the number.
const TOLD: usize = 5;

/// Faults of one check, gathered.
struct Faults {
    name: &'static str,
    verdict: Verdict,
    count: usize,
    text: String,
}

impl Faults {
    fn new(name: &'static str, verdict: Verdict) -> Self {
        Self { name, verdict, count: 0, text: String::new() }
    }

    fn push(&mut self, fault: impl fmt::Display) {
        if self.count < TOLD {
            let separator = if self.count == 0 { "" } else { "; " };
            // Writing to a String can't fail.
            let _ = write!(self.text, "{separator}{fault}");
        }
        self.count += 1;
    }

    /// The faults' line, or that of a check that found none.
    fn or_ok(mut self, ok: impl Into<String>) -> Check {
        if self.count == 0 {
            return Check::new(self.name, Verdict::Ok, ok);
        }
        if self.count > TOLD {
            let _ = write!(self.text, "; and {} more", self.count - TOLD);
        }
        Check::new(self.name, self.verdict, self.text)
    }
}

impl<H: AsRef<[u8]>> GgufFile<H> {
    /// Every check of a container whose head could be parsed, in a fixed order.
    ///
    /// ```
    /// use gguf2st_gguf::{GgmlType, Verdict, parse_gguf, write::Builder};
    ///
    /// let head = Builder::new()
    ///     .metadata("general.architecture", "llama")
    ///     .tensor("token_embd.weight", &[4096, 32000], GgmlType::F16)
    ///     .head()?; // and no data
    /// let file = parse_gguf(&head, head.len() as u64)?;
    /// let failed = file.check().into_iter().find(|check| check.verdict == Verdict::Fail).unwrap();
    /// assert_eq!(failed.name, "tensor_data");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn check(&self) -> Vec<Check> {
        vec![
            Check::new(
                "header",
                Verdict::Ok,
                format!("GGUF version {}, {}-endian", self.version(), self.byte_order().name()),
            ),
            Check::new(
                "counts",
                Verdict::Ok,
                format!(
                    "{} metadata entries and {} tensors, as declared; the index ends at byte {}",
                    self.metadata().len(),
                    self.tensors().len(),
                    self.index_end()
                ),
            ),
            self.check_keys(),
            self.check_required(),
            self.check_bools(),
            self.check_alignment(),
            self.check_names(),
            self.check_shapes(),
            // Bytes that are not there weigh more than bytes in an odd place: of several faults, the first is named.
            self.check_data(),
            self.check_offsets(),
            self.check_overlap(),
            self.check_length(),
            self.check_tokenizer(),
        ]
    }

    fn check_keys(&self) -> Check {
        let mut faults = Faults::new("metadata_keys", Verdict::Fail);
        for (key, _) in self.metadata().iter() {
            if let Some(fault) = text_fault(key) {
                faults.push(format_args!("bad key: {:?} {fault}", Escaped(key)));
            }
        }
        faults.or_ok(format!("{} keys, unique and readable", self.metadata().len()))
    }

    fn check_required(&self) -> Check {
        let mut faults = Faults::new("required_keys", Verdict::Warn);
        let quantized = self.tensors().iter().any(|tensor| tensor.ggml_type.is_quantized());
        match self.metadata().get("general.architecture") {
            None => faults.push("general.architecture is missing"),
            Some(Value::String(text)) if text.is_empty() => faults.push("general.architecture is empty"),
            Some(Value::String(_)) => {}
            Some(other) => faults.push(format_args!("general.architecture is a {}, not a string", other.type_name())),
        }
        match self.metadata().get("general.quantization_version") {
            None if quantized => faults.push("general.quantization_version is missing, and tensors are quantised"),
            Some(Value::U32(2)) | None => {}
            Some(other) => {
                faults.push(format_args!("general.quantization_version is {other}; 2 (u32) is the one in use"));
            }
        }
        faults.or_ok(if quantized {
            "general.architecture and general.quantization_version"
        } else {
            "general.architecture (no tensor is quantised)"
        })
    }

    fn check_bools(&self) -> Check {
        let mut faults = Faults::new("bools", Verdict::Warn);
        for (key, byte) in self.odd_bools() {
            faults.push(format_args!("{:?} has a bool byte of {byte}, read as true; 0 or 1 is expected", Escaped(key)));
        }
        faults.or_ok("every bool is 0 or 1")
    }

    fn check_alignment(&self) -> Check {
        let alignment = self.alignment();
        let mut faults = Faults::new("alignment", Verdict::Warn);
        if !alignment.is_multiple_of(8) {
            faults.push(format_args!("{alignment} bytes; the specification wants a multiple of 8"));
        }
        faults.or_ok(format!("{alignment} bytes; the data section starts at byte {}", self.data_offset()))
    }

    fn check_names(&self) -> Check {
        let mut faults = Faults::new("tensor_names", Verdict::Fail);
        for tensor in self.tensors().iter() {
            if let Some(fault) = name_fault(tensor.name) {
                faults.push(format_args!("bad tensor name: {:?} {fault}", Escaped(tensor.name)));
            }
        }
        faults.or_ok(format!("{} names, unique and not empty", self.tensors().len()))
    }

    fn check_shapes(&self) -> Check {
        let mut faults = Faults::new("tensor_shapes", Verdict::Fail);
        for tensor in self.tensors().iter() {
            if let Err(error) = tensor.byte_size() {
                faults.push(error);
            }
        }
        faults.or_ok("every type is known and every row is whole blocks")
    }

    fn check_offsets(&self) -> Check {
        let alignment = u64::from(self.alignment());
        let mut faults = Faults::new("tensor_offsets", Verdict::Fail);
        for tensor in self.tensors().iter() {
            if !tensor.offset.is_multiple_of(alignment) {
                faults.push(format_args!(
                    "bad offset: tensor {:?} at {} is not a multiple of {alignment}",
                    Escaped(tensor.name),
                    tensor.offset
                ));
            }
        }
        faults.or_ok(format!("every offset is a multiple of {alignment}"))
    }

    fn check_data(&self) -> Check {
        let mut faults = Faults::new("tensor_data", Verdict::Fail);
        let mut bytes = 0_u64;
        for tensor in self.tensors().iter() {
            match self.byte_range(&tensor) {
                Ok(range) => bytes = bytes.saturating_add(range.end - range.start),
                Err(error @ ParserError::OutOfBounds { .. }) => faults.push(error),
                Err(_) => {} // told by check_shapes
            }
        }
        faults.or_ok(format!("{bytes} bytes of tensor data, all inside the file"))
    }

    fn check_overlap(&self) -> Check {
        let mut faults = Faults::new("overlap", Verdict::Fail);
        let tensors = self.tensors();
        let mut last: Option<(TensorInfo<'_>, u64)> = None;
        for tensor in self.by_offset().into_iter().filter_map(|position| tensors.get(position)) {
            let Ok(range) = self.byte_range(&tensor) else { continue };
            if range.is_empty() {
                continue;
            }
            match last {
                Some((earlier, end)) if range.start < end => faults.push(format_args!(
                    "tensor {:?} at byte {} begins before {:?} ends at {end}",
                    Escaped(tensor.name),
                    range.start,
                    Escaped(earlier.name)
                )),
                _ => {}
            }
            if last.is_none_or(|(_, end)| range.end > end) {
                last = Some((tensor, range.end));
            }
        }
        faults.or_ok("no two tensors share a byte")
    }

    /// Data offset plus tensor bytes with padding against the container's length.
    fn check_length(&self) -> Check {
        const NAME: &str = "file_length";
        let len = self.container_len();
        let ends = self.tensors().iter().map(|tensor| {
            let end = u128::from(self.data_offset()) + u128::from(tensor.offset);
            tensor.byte_size().map(|bytes| end + u128::from(bytes))
        });
        // A container without tensors may end where its index does.
        let empty = if self.tensors().is_empty() { self.index_end() } else { self.data_offset() };
        let Ok(end) = ends.into_iter().try_fold(u128::from(empty), |most, end| end.map(|end| most.max(end))) else {
            return Check::new(NAME, Verdict::Warn, format!("{len} bytes; a tensor has no size to compare with"));
        };
        let padded = end.next_multiple_of(self.alignment().into());
        let actual = u128::from(len);
        if actual < end {
            let short = end - actual;
            Check::new(
                NAME,
                Verdict::Fail,
                format!("truncated: {len} bytes, {short} short of the {end} that the tensors reach"),
            )
        } else if actual == padded || self.tensors().is_empty() && actual == end {
            Check::new(NAME, Verdict::Ok, format!("{len} bytes, as head, tensors and padding add up to"))
        } else if actual < padded {
            let lacking = padded - actual;
            Check::new(
                NAME,
                Verdict::Warn,
                format!("{len} bytes; {lacking} bytes of padding lack after the last tensor"),
            )
        } else {
            let trailing = actual - padded;
            Check::new(NAME, Verdict::Warn, format!("{len} bytes; {trailing} trail behind the {padded} expected"))
        }
    }

    fn check_tokenizer(&self) -> Check {
        let mut faults = Faults::new("tokenizer", Verdict::Warn);
        let array = |key: &str| self.metadata().get(key).map(|value| (value.as_array(), value.type_name()));
        let mut tokens = None;
        for (key, element) in [
            ("tokenizer.ggml.tokens", ValueType::String),
            ("tokenizer.ggml.scores", ValueType::F32),
            ("tokenizer.ggml.token_type", ValueType::I32),
            ("tokenizer.ggml.merges", ValueType::String),
        ] {
            match array(key) {
                None => {}
                Some((Some(array), _)) if array.element_type() == element => match key {
                    "tokenizer.ggml.tokens" => tokens = Some(array.len()),
                    "tokenizer.ggml.merges" => check_merges(array, &mut faults),
                    _ if tokens.is_some_and(|tokens| tokens != array.len()) => faults.push(format_args!(
                        "{key} has {} entries, tokenizer.ggml.tokens {}",
                        array.len(),
                        tokens.unwrap_or_default()
                    )),
                    _ => {}
                },
                Some((_, found)) => faults.push(format_args!("{key} is {found}; array[{element}] is expected")),
            }
        }
        if let Some(tokens) = tokens {
            for key in ["bos", "eos", "unknown", "padding"].map(|name| format!("tokenizer.ggml.{name}_token_id")) {
                if let Some(id) = self.metadata().get(&key).and_then(|value| value.as_integer())
                    && !(0..i128::from(tokens)).contains(&id)
                {
                    faults.push(format_args!("{key} is {id}, outside the {tokens} tokens"));
                }
            }
        }
        faults.or_ok(match tokens {
            Some(tokens) => format!("{tokens} tokens, and arrays of one length"),
            None => "no tokens".to_owned(),
        })
    }
}

/// A merge is two pieces with one space between them; a piece may hold spaces only behind its first byte.
fn check_merges(merges: Array<'_>, faults: &mut Faults) {
    for (rank, merge) in merges.iter().enumerate() {
        let well_formed = merge.as_string().is_some_and(|text| {
            text.get(1..)
                .and_then(|rest| rest.iter().position(|byte| *byte == b' '))
                .is_some_and(|at| at + 2 < text.len())
        });
        if !well_formed {
            faults.push(format_args!("merge {rank} is {merge}, not two pieces with a space between them"));
        }
    }
}

/// Why a key can't go on as text.
fn text_fault(text: &[u8]) -> Option<&'static str> {
    match core::str::from_utf8(text) {
        Err(_) => Some("is not UTF-8"),
        Ok(text) if text.chars().any(is_deceptive) => Some("holds control or invisible characters"),
        Ok(_) => None,
    }
}

/// Why a name can't become one in a safetensors header. Control characters can, being escaped there; a NUL
/// can't, since names that differ behind it are one to C programs.
fn name_fault(name: &[u8]) -> Option<&'static str> {
    match core::str::from_utf8(name) {
        Err(_) => Some("is not UTF-8"),
        Ok(name) if name.contains('\0') => Some("holds a NUL"),
        Ok(_) => None,
    }
}
