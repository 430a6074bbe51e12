//! Containers pushed byte by byte, not through the writer: the two can't share a mistake.

use gguf2st_gguf::bstr::BStr;
use gguf2st_gguf::{ByteOrder, GgmlType, ParserError, Value, Verdict, parse_gguf};

fn put_string(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

/// Two keys; `token_embd.weight`, dims [4096, 32000], F16; no data.
fn two_keys_and_a_tensor() -> Vec<u8> {
    let mut out = b"GGUF".to_vec();
    out.extend(3_u32.to_le_bytes());
    out.extend(1_u64.to_le_bytes()); // tensors
    out.extend(2_u64.to_le_bytes()); // metadata entries
    put_string(&mut out, "general.architecture");
    out.extend(8_u32.to_le_bytes()); // string
    put_string(&mut out, "llama");
    put_string(&mut out, "llama.context_length");
    out.extend(4_u32.to_le_bytes()); // u32
    out.extend(4096_u32.to_le_bytes());
    put_string(&mut out, "token_embd.weight");
    out.extend(2_u32.to_le_bytes()); // rank
    out.extend(4096_u64.to_le_bytes());
    out.extend(32000_u64.to_le_bytes());
    out.extend(1_u32.to_le_bytes()); // F16
    out.extend(0_u64.to_le_bytes()); // offset
    out
}

#[test]
fn two_keys_and_a_tensor_without_data() -> Result<(), ParserError> {
    let bytes = two_keys_and_a_tensor();
    assert_eq!(bytes.len(), 24 + (8 + 20 + 4 + 8 + 5) + (8 + 20 + 4 + 4) + (8 + 17 + 4 + 16 + 4 + 8));

    let file = parse_gguf(&bytes, bytes.len() as u64)?;
    assert_eq!((file.version(), file.byte_order(), file.alignment()), (3, ByteOrder::Little, 32));
    assert_eq!((file.index_end(), file.data_offset()), (162, 192));
    let metadata: Vec<_> = file.metadata().iter().collect();
    assert_eq!(
        metadata,
        [
            (BStr::new("general.architecture"), Value::String(BStr::new("llama"))),
            (BStr::new("llama.context_length"), Value::U32(4096)),
        ]
    );
    assert_eq!(file.metadata().read::<u32>("llama.context_length")?, Some(4096));

    assert_eq!(file.tensors().len(), 1);
    let tensor = file.tensors().find("token_embd.weight").expect("the tensor");
    assert_eq!(*tensor.dims, [4096, 32000]);
    assert_eq!(tensor.shape(), [32000, 4096]);
    assert_eq!((tensor.ggml_type, tensor.offset), (GgmlType::F16, 0));
    assert_eq!(tensor.byte_size()?, 4096 * 32000 * 2);

    // Its bytes are not there, and who asks for them is told so, and who checks.
    assert!(matches!(file.byte_range(&tensor), Err(ParserError::OutOfBounds { start: 192, bytes: 262_144_000, .. })));
    let failed: Vec<_> = file.check().into_iter().filter(|check| check.verdict == Verdict::Fail).collect();
    assert_eq!(failed.iter().map(|check| check.name).collect::<Vec<_>>(), ["tensor_data", "file_length"]);
    assert!(failed[0].detail.contains("token_embd.weight"), "{}", failed[0].detail);
    assert!(failed[1].detail.contains("262144030 short"), "{}", failed[1].detail);
    Ok(())
}

#[test]
fn the_same_with_its_data_there_is_sound() -> Result<(), ParserError> {
    let bytes = two_keys_and_a_tensor();
    // The parser asks for nothing past the head: the data need only be said to be there.
    let file = parse_gguf(&bytes, 192 + 262_144_000)?;
    assert!(file.check().iter().all(|check| check.verdict == Verdict::Ok), "{:#?}", file.check());
    Ok(())
}

#[test]
fn big_endian_and_version_1() -> Result<(), ParserError> {
    let mut big = b"GGUF".to_vec();
    big.extend(3_u32.to_be_bytes());
    big.extend(0_u64.to_be_bytes());
    big.extend(1_u64.to_be_bytes());
    big.extend(1_u64.to_be_bytes());
    big.push(b'k');
    big.extend(6_u32.to_be_bytes()); // f32
    big.extend(1.5_f32.to_be_bytes());
    let file = parse_gguf(&big, big.len() as u64)?;
    assert_eq!((file.version(), file.byte_order()), (3, ByteOrder::Big));
    assert_eq!(file.metadata().get("k"), Some(Value::F32(1.5)));

    let mut old = b"GGUF".to_vec();
    old.extend(1_u32.to_le_bytes());
    old.extend(1_u32.to_le_bytes()); // counts, lengths and dims take 32 bits
    old.extend(1_u32.to_le_bytes());
    old.extend(1_u32.to_le_bytes());
    old.push(b'k');
    old.extend(9_u32.to_le_bytes()); // array
    old.extend(8_u32.to_le_bytes()); // of strings
    old.extend(2_u32.to_le_bytes());
    old.extend(2_u32.to_le_bytes());
    old.extend(b"ab");
    old.extend(0_u32.to_le_bytes());
    old.extend(1_u32.to_le_bytes());
    old.push(b't');
    old.extend(1_u32.to_le_bytes()); // rank
    old.extend(8_u32.to_le_bytes());
    old.extend(24_u32.to_le_bytes()); // I8
    old.extend(0_u64.to_le_bytes()); // the offset takes 64 bits in every version
    let file = parse_gguf(&old, old.len() as u64)?;
    let strings = file.metadata().get("k").and_then(|value| value.as_array()).expect("an array");
    assert_eq!(strings.iter().filter_map(|value| value.as_string()).collect::<Vec<_>>(), ["ab", ""]);
    assert_eq!(*file.tensors().find("t").expect("the tensor").dims, [8]);
    Ok(())
}
