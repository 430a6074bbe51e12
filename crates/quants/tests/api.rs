//! What the public functions check, the types without goldens, and big-endian containers.

use gguf2st_quants::{
    ByteOrder, DecodeError, Decoded, GgmlType, Kernels, bf16, can_decode, decode, decode_with, f16, f32_to_bf16,
    f32_to_f16, f64_to_bf16, f64_to_f16,
};
use proptest::prelude::*;

/// Types that gguf-py's `gguf-convert-endian` knows how to swap, with what it swaps: the plain types'
/// values, and the offsets of f16 numbers in blocks.
const BIG_ENDIAN: [(GgmlType, &[usize]); 8] = [
    (GgmlType::Q1_0, &[0]),
    (GgmlType::Q4_0, &[0]),
    (GgmlType::Q8_0, &[0]),
    (GgmlType::Q4_K, &[0, 2]),
    (GgmlType::Q6_K, &[208]),
    (GgmlType::TQ2_0, &[64]),
    (GgmlType::MXFP4, &[]),
    (GgmlType::NVFP4, &[]),
];
const PLAIN: [GgmlType; 4] = [GgmlType::F32, GgmlType::F16, GgmlType::BF16, GgmlType::F64];

fn decodable() -> impl Iterator<Item = GgmlType> {
    GgmlType::all().filter(|ggml_type| can_decode(*ggml_type, ByteOrder::Little).is_ok())
}

fn sizes(ggml_type: GgmlType) -> (usize, usize) {
    let values = ggml_type.block_size().expect("a block has values");
    let bytes = ggml_type.type_size().expect("a block has bytes");
    (values.try_into().expect("small"), bytes.try_into().expect("small"))
}

#[test]
fn there_are_31_types_with_values() {
    assert_eq!(decodable().count(), 31);
}

#[test]
fn types_without_float_values_are_refused_by_name() {
    let mut out = [0.0_f32; 4];
    for id in 0..100 {
        let ggml_type = GgmlType(id);
        if can_decode(ggml_type, ByteOrder::Little).is_ok() {
            continue;
        }
        let error = decode(ggml_type, ByteOrder::Little, &[0; 16], &mut out).expect_err("no decoder");
        assert_eq!(can_decode(ggml_type, ByteOrder::Little), Err(error.clone()));
        assert!(error.to_string().starts_with(&ggml_type.to_string()), "{error}");
        let expected = match ggml_type {
            GgmlType::I8 | GgmlType::I16 | GgmlType::I32 | GgmlType::I64 => DecodeError::IntegerType { ggml_type },
            _ if ggml_type.is_removed() => DecodeError::RemovedType { ggml_type },
            _ => DecodeError::UnknownType { ggml_type },
        };
        assert_eq!(error, expected);
    }
}

#[test]
fn messages_name_the_type_and_the_figures() {
    let mut out = [0.0_f32; 63];
    let short = decode(GgmlType::Q4_0, ByteOrder::Little, &[0; 35], &mut out).expect_err("cut short");
    assert_eq!(short.to_string(), "35 bytes of Q4_0 are not whole blocks of 18 bytes");
    let room = decode(GgmlType::Q4_0, ByteOrder::Little, &[0; 36], &mut out).expect_err("no room");
    assert_eq!(room.to_string(), "2 blocks of Q4_0 hold 64 values, but there is room for 63");
    let big = decode(GgmlType::Q5_0, ByteOrder::Big, &[0; 22], &mut out).expect_err("no layout");
    assert_eq!(big.to_string(), "Q5_0 has no defined big-endian layout: its values cannot be decoded");
    let kernels = Kernels::named("abacus").expect_err("no such kernels");
    assert!(kernels.to_string().starts_with("there are no kernels \"abacus\" on this machine, only: plain"));
}

#[test]
fn any_wrong_length_is_an_error_and_none_panics() {
    for ggml_type in decodable() {
        let (values, bytes) = sizes(ggml_type);
        for blocks in 0..3 {
            for extra in 0..bytes {
                let input = vec![0; blocks * bytes + extra];
                for slots in [0, blocks * values, blocks * values + 1, (blocks + 1) * values] {
                    let result = decode(ggml_type, ByteOrder::Little, &input, &mut vec![0.0_f32; slots]);
                    assert_eq!(result.is_ok(), extra == 0 && slots == blocks * values, "{ggml_type}");
                }
            }
        }
    }
}

#[test]
fn only_the_defined_layouts_are_big_endian() {
    for ggml_type in decodable() {
        let defined = PLAIN.contains(&ggml_type) || BIG_ENDIAN.iter().any(|(t, _)| *t == ggml_type);
        let expected = if defined { Ok(()) } else { Err(DecodeError::NoBigEndianLayout { ggml_type }) };
        assert_eq!(can_decode(ggml_type, ByteOrder::Big), expected);
    }
}

fn bits_or_nan(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| if value.is_nan() { u32::MAX } else { value.to_bits() }).collect()
}

#[test]
fn q8_1_is_q8_0_with_a_sum_beside_the_scale() {
    let qs: Vec<u8> = (0..=255).step_by(8).collect();
    let d = f16::from_f32(-0.37).to_le_bytes();
    let q8_0 = [&d[..], &qs].concat();
    let q8_1 = [&d[..], &[0x12, 0x34], &qs].concat();
    for kernels in Kernels::available() {
        let (mut ours, mut theirs) = ([0.0_f32; 32], [0.0_f32; 32]);
        decode_with(kernels, GgmlType::Q8_1, ByteOrder::Little, &q8_1, &mut ours).expect("a block");
        decode_with(kernels, GgmlType::Q8_0, ByteOrder::Little, &q8_0, &mut theirs).expect("a block");
        assert_eq!(bits_or_nan(&ours), bits_or_nan(&theirs));
        assert_eq!(ours[1], f16::from_f32(-0.37).to_f32() * 8.0);
    }
}

#[test]
fn what_becomes_infinite_is_counted() {
    fn overflowed<T: gguf2st_quants::Target>(ggml_type: GgmlType, bytes: &[u8], zero: T) -> u64 {
        let (_, size) = sizes(ggml_type);
        let mut out = vec![zero; bytes.len() / size];
        let counts = Kernels::available().into_iter().map(|kernels| {
            decode_with(kernels, ggml_type, ByteOrder::Little, bytes, &mut out)
                .map(|decoded: Decoded| decoded.overflowed)
                .expect("whole values")
        });
        let counts: Vec<u64> = counts.collect();
        assert!(counts.iter().all(|count| *count == counts[0]));
        counts[0]
    }
    let f32s = [65519.9_f32, 65520.0, -1e9, f32::INFINITY, f32::NAN, f32::MAX, 0.0, 3.389e38];
    let bytes: Vec<u8> = f32s.iter().flat_map(|value| value.to_le_bytes()).collect();
    // More than one piece of them.
    let bytes = bytes.repeat(1001);
    assert_eq!(overflowed(GgmlType::F32, &bytes, 0.0_f32), 0);
    assert_eq!(overflowed(GgmlType::F32, &bytes, f16::ZERO), 4 * 1001);
    assert_eq!(overflowed(GgmlType::F32, &bytes, bf16::ZERO), 1001);

    let f64s = [65519.9_f64, 65520.0, 1e39, f64::NEG_INFINITY, f64::NAN, f64::MAX];
    let bytes: Vec<u8> = f64s.iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(overflowed(GgmlType::F64, &bytes, 0.0_f32), 2);
    assert_eq!(overflowed(GgmlType::F64, &bytes, bf16::ZERO), 2);
    assert_eq!(overflowed(GgmlType::F64, &bytes, f16::ZERO), 3);
}

#[test]
fn plain_types_keep_every_bit_in_their_own_format() {
    let halves: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    for kernels in Kernels::available() {
        let mut out = vec![f16::ZERO; 65536];
        decode_with(kernels, GgmlType::F16, ByteOrder::Little, &halves, &mut out).expect("halves");
        assert!((0..=u16::MAX).zip(&out).all(|(bits, value)| value.to_bits() == bits));
        let mut out = vec![bf16::ZERO; 65536];
        decode_with(kernels, GgmlType::BF16, ByteOrder::Little, &halves, &mut out).expect("halves");
        assert!((0..=u16::MAX).zip(&out).all(|(bits, value)| value.to_bits() == bits));
        let mut out = vec![0.0_f32; 65536];
        decode_with(kernels, GgmlType::BF16, ByteOrder::Little, &halves, &mut out).expect("halves");
        assert!((0..=u16::MAX).zip(&out).all(|(bits, value)| value.to_bits() == u32::from(bits) << 16));

        let nans: Vec<u8> = [0x7f80_0001_u32, 0xff80_0001, 0x7fff_ffff, 0x8000_0000]
            .iter()
            .flat_map(|bits| bits.to_le_bytes())
            .collect();
        let mut out = [0.0_f32; 4];
        decode_with(kernels, GgmlType::F32, ByteOrder::Little, &nans, &mut out).expect("floats");
        assert_eq!(bytemuck_bytes(&out), nans);
    }
}

fn bytemuck_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_bits().to_le_bytes()).collect()
}

proptest! {
    #[test]
    fn f32_narrows_once(values in prop::collection::vec(any::<u32>(), 0..100)) {
        let bytes: Vec<u8> = values.iter().flat_map(|bits| bits.to_le_bytes()).collect();
        for kernels in Kernels::available() {
            let mut out = vec![bf16::ZERO; values.len()];
            decode_with(kernels, GgmlType::F32, ByteOrder::Little, &bytes, &mut out)?;
            for (ours, bits) in out.iter().zip(&values) {
                prop_assert_eq!(ours.to_bits(), f32_to_bf16(f32::from_bits(*bits)).to_bits());
            }
            let mut out = vec![f16::ZERO; values.len()];
            decode_with(kernels, GgmlType::F32, ByteOrder::Little, &bytes, &mut out)?;
            for (ours, bits) in out.iter().zip(&values) {
                prop_assert_eq!(ours.to_bits(), f32_to_f16(f32::from_bits(*bits)).to_bits());
            }
        }
    }

    #[test]
    fn f64_narrows_once(values in prop::collection::vec(any::<f64>(), 0..50)) {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let mut out = vec![bf16::ZERO; values.len()];
        decode(GgmlType::F64, ByteOrder::Little, &bytes, &mut out)?;
        for (ours, value) in out.iter().zip(&values) {
            prop_assert_eq!(ours.to_bits(), f64_to_bf16(*value).to_bits());
        }
        let mut out = vec![f16::ZERO; values.len()];
        decode(GgmlType::F64, ByteOrder::Little, &bytes, &mut out)?;
        for (ours, value) in out.iter().zip(&values) {
            prop_assert_eq!(ours.to_bits(), f64_to_f16(*value).to_bits());
        }
    }

    #[test]
    fn big_endian_blocks_decode_as_their_little_endian_selves(
        bytes in prop::collection::vec(any::<u8>(), 9000),
    ) {
        let plain = PLAIN.map(|ggml_type| (ggml_type, &[][..]));
        for (ggml_type, halves) in BIG_ENDIAN.into_iter().chain(plain) {
            let (values, size) = sizes(ggml_type);
            let little = &bytes[..bytes.len() / size * size];
            let mut big = little.to_vec();
            for block in big.chunks_exact_mut(size) {
                if PLAIN.contains(&ggml_type) {
                    block.reverse();
                }
                for &at in halves {
                    block.swap(at, at + 1);
                }
            }
            let count = little.len() / size * values;
            let (mut from_little, mut from_big) = (vec![0.0_f32; count], vec![0.0_f32; count]);
            decode(ggml_type, ByteOrder::Little, little, &mut from_little)?;
            decode(ggml_type, ByteOrder::Big, &big, &mut from_big)?;
            prop_assert_eq!(bits_or_nan(&from_little), bits_or_nan(&from_big));
        }
    }
}
