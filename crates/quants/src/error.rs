use gguf2st_gguf::GgmlType;

/// Why blocks could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// ggml had the type once and took it out again.
    #[error("{ggml_type} was removed from ggml: its values cannot be decoded")]
    RemovedType {
        /// The type asked for.
        ggml_type: GgmlType,
    },

    /// No decoder is known for the type.
    #[error("{ggml_type} has no decoder here: its values cannot be decoded")]
    UnknownType {
        /// The type asked for.
        ggml_type: GgmlType,
    },

    /// The values are integers, which do not become floats.
    #[error("{ggml_type} holds integers: it has no float values")]
    IntegerType {
        /// The type asked for.
        ggml_type: GgmlType,
    },

    /// How the type's blocks look in a big-endian container was never defined.
    #[error("{ggml_type} has no defined big-endian layout: its values cannot be decoded")]
    NoBigEndianLayout {
        /// The type asked for.
        ggml_type: GgmlType,
    },

    /// The last block is cut short.
    #[error("{bytes} bytes of {ggml_type} are not whole blocks of {block_bytes} bytes")]
    LengthNotWholeBlocks {
        /// The type asked for.
        ggml_type: GgmlType,
        /// The length given, in bytes.
        bytes: usize,
        /// The length of one block, in bytes.
        block_bytes: usize,
    },

    /// The output does not have as many slots as the blocks have values.
    #[error("{blocks} blocks of {ggml_type} hold {values} values, but there is room for {slots}")]
    OutputLength {
        /// The type asked for.
        ggml_type: GgmlType,
        /// The number of blocks given.
        blocks: usize,
        /// The values in them.
        values: usize,
        /// The length of the output, in values.
        slots: usize,
    },

    /// `GGUF2ST_KERNELS`, or the name given, is none of the kernels that can run here.
    #[error("there are no kernels {wanted:?} on this machine, only: {}", choices.join(", "))]
    NoSuchKernels {
        /// The name asked for.
        wanted: String,
        /// The names that would do.
        choices: Vec<&'static str>,
    },
}
