//! Every ggml block type decoded to f32, bf16 or f16, bit for bit as ggml's C reference does it.
