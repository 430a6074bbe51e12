//! A small model with llama's architecture, names and kinds of tensors, and weights drawn at random: the same bytes
//! every time.

use std::fs;

use gguf2st_gguf::write::Builder;
use gguf2st_gguf::{GgmlType, OwnedValue, ValueType};

use crate::Result;
use crate::project::{root, shown};

const LAYERS: u32 = 2;
const EMBEDDING: u32 = 256;
const FEED_FORWARD: u32 = 256;
const HEADS: u32 = 8;
const HEADS_KV: u32 = 2;
const HEAD: u32 = EMBEDDING / HEADS;

/// Writes `testdata/tiny-llama.gguf`.
pub(crate) fn write() -> Result<()> {
    let path = root().join("testdata/tiny-llama.gguf");
    let container = tiny_llama()?;
    fs::write(&path, &container)?;
    println!("{}: {} bytes", shown(&path), container.len());
    Ok(())
}

fn tiny_llama() -> Result<Vec<u8>> {
    let vocabulary = Vocabulary::new();
    let tensors = tensors(vocabulary.tokens.len() as u64);
    let mut builder = metadata(vocabulary);
    for (name, dims, ggml_type) in &tensors {
        builder = builder.tensor(name.as_str(), dims, *ggml_type);
    }
    let mut random = Random(0x6767_7566_3273_7400);
    Ok(builder.container(|position, bytes| fill(tensors[position].2, bytes, &mut random))?)
}

fn metadata(vocabulary: Vocabulary) -> Builder {
    let tokens = u32::try_from(vocabulary.tokens.len()).unwrap_or(u32::MAX);
    Builder::new()
        .metadata("general.architecture", "llama")
        .metadata("general.type", "model")
        .metadata("general.name", "Tiny Llama, random weights")
        .metadata("general.license", "mit")
        .metadata("general.file_type", 15_u32) // mostly Q4_K_M
        .metadata("general.quantization_version", 2_u32)
        .metadata("llama.vocab_size", tokens)
        .metadata("llama.context_length", 512_u32)
        .metadata("llama.embedding_length", EMBEDDING)
        .metadata("llama.block_count", LAYERS)
        .metadata("llama.feed_forward_length", FEED_FORWARD)
        .metadata("llama.rope.dimension_count", HEAD)
        .metadata("llama.rope.freq_base", 10_000.0_f32)
        .metadata("llama.attention.head_count", HEADS)
        .metadata("llama.attention.head_count_kv", HEADS_KV)
        .metadata("llama.attention.layer_norm_rms_epsilon", 1e-5_f32)
        .metadata("tokenizer.ggml.model", "llama")
        .metadata("tokenizer.ggml.pre", "default")
        .metadata("tokenizer.ggml.tokens", OwnedValue::Array(ValueType::String, vocabulary.tokens))
        .metadata("tokenizer.ggml.scores", OwnedValue::Array(ValueType::F32, vocabulary.scores))
        .metadata("tokenizer.ggml.token_type", OwnedValue::Array(ValueType::I32, vocabulary.types))
        .metadata("tokenizer.ggml.unknown_token_id", 0_u32)
        .metadata("tokenizer.ggml.bos_token_id", 1_u32)
        .metadata("tokenizer.ggml.eos_token_id", 2_u32)
        .metadata("tokenizer.ggml.add_bos_token", true)
        .metadata("tokenizer.ggml.add_eos_token", false)
        .metadata("tokenizer.ggml.add_space_prefix", true)
        .metadata(
            "tokenizer.chat_template",
            "{% for message in messages %}<s>{{ message['role'] }}\n{{ message['content'] }}</s>{% endfor %}",
        )
}

/// A tokenizer of the SentencePiece kind.
#[derive(Default)]
struct Vocabulary {
    tokens: Vec<OwnedValue>,
    scores: Vec<OwnedValue>,
    types: Vec<OwnedValue>,
}

impl Vocabulary {
    fn new() -> Self {
        const NORMAL: i32 = 1;
        const UNKNOWN: i32 = 2;
        const CONTROL: i32 = 3;
        const BYTE: i32 = 6;
        const PIECES: &str = "\
            ▁t he ▁a in ▁the er on re ▁s at nd ▁o or ▁and en ing ▁to \
            ▁ e t a o i n s r h l d u c m f p g w y b v k x j q z . , ' ï";
        let mut vocabulary = Self::default();
        vocabulary.push("<unk>", 0.0, UNKNOWN);
        vocabulary.push("<s>", 0.0, CONTROL);
        vocabulary.push("</s>", 0.0, CONTROL);
        for byte in 0..=u8::MAX {
            vocabulary.push(&format!("<0x{byte:02X}>"), 0.0, BYTE);
        }
        let mut score = 0.0;
        for piece in PIECES.split_whitespace() {
            vocabulary.push(piece, score, NORMAL);
            score -= 1.0;
        }
        vocabulary
    }

    fn push(&mut self, token: &str, score: f32, kind: i32) {
        self.tokens.push(token.into());
        self.scores.push(score.into());
        self.types.push(kind.into());
    }
}

/// Name, dims (fastest first) and type of every tensor; between them every type that the README promises.
fn tensors(tokens: u64) -> Vec<(String, Vec<u64>, GgmlType)> {
    let (embedding, feed_forward) = (u64::from(EMBEDDING), u64::from(FEED_FORWARD));
    let keys = u64::from(HEADS_KV * HEAD);
    let mut tensors = vec![
        ("token_embd.weight".to_owned(), vec![embedding, tokens], GgmlType::Q4_K),
        ("output.weight".to_owned(), vec![embedding, tokens], GgmlType::Q6_K),
        ("output_norm.weight".to_owned(), vec![embedding], GgmlType::F32),
    ];
    for layer in 0..LAYERS {
        let (key, value) = if layer == 0 { (GgmlType::Q8_0, GgmlType::Q6_K) } else { (GgmlType::F16, GgmlType::BF16) };
        for (name, dims, ggml_type) in [
            ("attn_norm", vec![embedding], GgmlType::F32),
            ("attn_q", vec![embedding, embedding], GgmlType::Q4_K),
            ("attn_k", vec![embedding, keys], key),
            ("attn_v", vec![embedding, keys], value),
            ("attn_output", vec![embedding, embedding], GgmlType::Q4_K),
            ("ffn_norm", vec![embedding], GgmlType::F32),
            ("ffn_gate", vec![embedding, feed_forward], GgmlType::Q4_K),
            ("ffn_up", vec![embedding, feed_forward], GgmlType::Q4_K),
            ("ffn_down", vec![feed_forward, embedding], GgmlType::Q4_K),
        ] {
            tensors.push((format!("blk.{layer}.{name}.weight"), dims, ggml_type));
        }
    }
    tensors
}

/// SplitMix64: a few lines, and the same numbers everywhere and always.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn bytes(&mut self, bytes: &mut [u8]) {
        for piece in bytes.chunks_mut(8) {
            piece.copy_from_slice(&self.next().to_le_bytes()[..piece.len()]);
        }
    }

    /// The bits of a positive half float in [2^low, 2^(low + 1)).
    fn scale(&mut self, low: i16) -> [u8; 2] {
        let mantissa = (self.next() & 0x3ff).to_le_bytes();
        let exponent = (low + 15).to_le_bytes()[0] << 2;
        [mantissa[0], mantissa[1] | exponent]
    }

    /// A value around `middle`, at most a tenth away.
    fn value(&mut self, middle: f32) -> f32 {
        let steps = i16::from_le_bytes([self.next().to_le_bytes()[0], self.next().to_le_bytes()[0]]);
        middle + f32::from(steps) / 327_680.0
    }
}

/// Fills a tensor with what its type can hold: every value finite and small.
fn fill(ggml_type: GgmlType, bytes: &mut [u8], random: &mut Random) {
    let block = ggml_type.type_size().and_then(|size| usize::try_from(size).ok()).unwrap_or(1);
    for block in bytes.chunks_exact_mut(block) {
        random.bytes(block);
        match ggml_type {
            GgmlType::F32 => block.copy_from_slice(&random.value(1.0).to_le_bytes()),
            // The upper half of a float32 is a bfloat16.
            GgmlType::BF16 => block.copy_from_slice(&random.value(0.0).to_le_bytes()[2..]),
            // 2^-6 of either sign.
            GgmlType::F16 => {
                let sign = block[1] & 0x80;
                block.copy_from_slice(&random.scale(-6));
                block[1] |= sign;
            }
            // Where ggml's block structs have their scales: d and dmin first, d last, d first.
            GgmlType::Q4_K => {
                block[..2].copy_from_slice(&random.scale(-14));
                block[2..4].copy_from_slice(&random.scale(-13));
            }
            GgmlType::Q6_K => block[208..].copy_from_slice(&random.scale(-14)),
            GgmlType::Q8_0 => block[..2].copy_from_slice(&random.scale(-11)),
            other => unreachable!("tiny-llama has no tensor of {other}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use gguf2st_gguf::{Verdict, parse_gguf};

    use super::*;

    #[test]
    fn the_file_committed_is_the_one_made_here() -> Result<()> {
        let made = tiny_llama()?;
        let committed = fs::read(root().join("testdata/tiny-llama.gguf"))?;
        assert!(made == committed, "run `cargo xtask make-testdata`");
        assert!(made.len() < 600_000, "{} bytes", made.len());
        Ok(())
    }

    #[test]
    fn it_is_sound() -> Result<()> {
        let made = tiny_llama()?;
        let file = parse_gguf(&made, made.len() as u64)?;
        let odd: Vec<_> = file.check().into_iter().filter(|check| check.verdict != Verdict::Ok).collect();
        assert_eq!(odd, []);
        for ggml_type in [GgmlType::F32, GgmlType::F16, GgmlType::BF16, GgmlType::Q8_0, GgmlType::Q4_K, GgmlType::Q6_K]
        {
            assert!(file.tensors().iter().any(|tensor| tensor.ggml_type == ggml_type), "{ggml_type}");
        }
        Ok(())
    }
}
