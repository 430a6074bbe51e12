//! What `--query` keeps.

/// A text to be contained, in any case.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    lower: String,
}

impl Query {
    pub(crate) fn new(text: &str) -> Self {
        Self { lower: text.to_lowercase() }
    }

    /// Whether a key or name contains it. Bytes that are no text match nothing and hide nothing around them.
    pub(crate) fn matches(&self, name: &[u8]) -> bool {
        String::from_utf8_lossy(name).to_lowercase().contains(&self.lower)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_any_case_and_any_script() {
        assert!(Query::new("CONTEXT").matches(b"llama.context_length"));
        assert!(Query::new("ähn").matches("ÄHNLICH".as_bytes()));
        assert!(Query::new("b").matches(b"\xffB\xff"));
        assert!(Query::new("").matches(b""));
        assert!(!Query::new("contexts").matches(b"llama.context_length"));
    }
}
