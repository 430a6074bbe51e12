//! Where a model's bytes come from: local files by plain reads or by a mapping that survives truncation.
