//! Every cap of the parser, with its reason. None of them refuses a real model.

/// Bytes of a head. The largest heads known are those of models with 262,144-entry vocabularies and
/// big merge tables, below 20 MiB; 128 MiB leaves room for what comes and keeps every position in 32 bits.
pub const MAX_HEAD: u64 = 128 << 20;

/// Metadata entries. Real files hold tens. A head of [`MAX_HEAD`] bytes could declare ten million tiny
/// ones, whose index would outgrow the head itself.
pub const MAX_METADATA: u64 = 1 << 20;

/// Tensors. The largest models with one tensor an expert stay below 100,000.
pub const MAX_TENSORS: u64 = 1 << 20;

/// Bytes of a key: `GGUF_MAX_KEY_LENGTH`, the specification's own figure.
pub const MAX_KEY: u64 = 65_535;

/// Bytes of a tensor name. ggml stops at 63; image models ship longer ones, so the cap is that of keys.
pub const MAX_TENSOR_NAME: u64 = 65_535;

/// Dimensions of a tensor: `GGML_MAX_DIMS`.
pub const MAX_DIMS: u32 = 4;

/// Arrays inside arrays, the outermost counted. The specification allows any depth, no known file uses
/// more than two, and each level costs a stack frame.
pub const MAX_ARRAY_DEPTH: u32 = 8;

/// `general.alignment` where a file does not say.
pub const DEFAULT_ALIGNMENT: u32 = 32;
