//! Every set of kernels against the plain decoders, on random blocks: any bytes, so scales may be NaN
//! or infinite, and any number of blocks.

use gguf2st_quants::{ByteOrder, Decoded, GgmlType, Kernels, Target, bf16, can_decode, decode_with, f16};
use proptest::prelude::*;

/// The bits of a value, the same for all NaNs.
trait Bits: Target {
    fn bits(self) -> u32;
}

impl Bits for f32 {
    fn bits(self) -> u32 {
        if self.is_nan() { u32::MAX } else { self.to_bits() }
    }
}

impl Bits for bf16 {
    fn bits(self) -> u32 {
        if self.is_nan() { u32::MAX } else { self.to_bits().into() }
    }
}

impl Bits for f16 {
    fn bits(self) -> u32 {
        if self.is_nan() { u32::MAX } else { self.to_bits().into() }
    }
}

fn decoded<T: Bits>(
    kernels: Kernels,
    ggml_type: GgmlType,
    blocks: &[u8],
    values: usize,
    zero: T,
) -> (Vec<u32>, Decoded) {
    // One slot more on each side shows a kernel that writes beyond its output.
    let mut out = vec![zero; values + 2];
    let decoded = decode_with(kernels, ggml_type, ByteOrder::Little, blocks, &mut out[1..=values])
        .unwrap_or_else(|error| panic!("{}: {error}", kernels.name()));
    assert_eq!((out[0].bits(), out[values + 1].bits()), (zero.bits(), zero.bits()));
    (out.into_iter().map(T::bits).collect(), decoded)
}

fn all_sets_agree<T: Bits>(ggml_type: GgmlType, blocks: &[u8], values: usize, zero: T) -> Result<(), TestCaseError> {
    let plain = decoded(Kernels::named("plain")?, ggml_type, blocks, values, zero);
    for kernels in Kernels::available() {
        let ours = decoded(kernels, ggml_type, blocks, values, zero);
        if let Some(at) = (0..ours.0.len()).find(|&at| ours.0[at] != plain.0[at]) {
            return Err(TestCaseError::fail(format!(
                "{ggml_type} to {} with {}, value {at}: {:#x} for {:#x}",
                std::any::type_name::<T>(),
                kernels.name(),
                ours.0[at],
                plain.0[at],
            )));
        }
        prop_assert_eq!(ours.1, plain.1);
    }
    Ok(())
}

fn compare(ggml_type: GgmlType, bytes: &[u8]) -> Result<(), TestCaseError> {
    let size = |of: Option<u64>| of.and_then(|size| usize::try_from(size).ok()).expect("a size");
    let (block_values, block_bytes) = (size(ggml_type.block_size()), size(ggml_type.type_size()));
    let blocks = bytes.len() / block_bytes;
    let (bytes, values) = (&bytes[..blocks * block_bytes], blocks * block_values);
    all_sets_agree(ggml_type, bytes, values, 0.0_f32)?;
    all_sets_agree(ggml_type, bytes, values, bf16::ZERO)?;
    all_sets_agree(ggml_type, bytes, values, f16::ZERO)
}

fn decodable() -> Vec<GgmlType> {
    GgmlType::all().filter(|ggml_type| can_decode(*ggml_type, ByteOrder::Little).is_ok()).collect()
}

proptest! {
    // An interpreter is thousands of times slower.
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 48 },
        failure_persistence: if cfg!(miri) { None } else { ProptestConfig::default().failure_persistence },
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
        for ggml_type in decodable() {
            compare(ggml_type, &bytes)?;
        }
    }

    /// Bytes of a few bits: small and subnormal scales, quants at the ends of their ranges.
    #[test]
    fn extreme_bytes(bytes in prop::collection::vec(prop::sample::select(vec![0x00_u8, 0x01, 0x7b, 0x7f, 0x80, 0xff]), 0..1500)) {
        for ggml_type in decodable() {
            compare(ggml_type, &bytes)?;
        }
    }
}

/// All patterns of two bytes at once: every pair of quants of the smaller types, every f16 and bf16.
#[test]
fn every_two_byte_pattern() {
    let step = if cfg!(miri) { 211 } else { 1 };
    let bytes: Vec<u8> = (0..=u16::MAX).step_by(step).flat_map(u16::to_le_bytes).collect();
    for ggml_type in decodable() {
        compare(ggml_type, &bytes).unwrap_or_else(|error| panic!("{error}"));
    }
}
