//! GGUF to safetensors and back, streaming, in bounded memory.
