use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;

use gguf2st_convert::{ConvertError, FloatDtype, Model, Values};
use gguf2st_gguf::write::Builder;
use gguf2st_gguf::{ByteOrder, GgmlType};
use safetensors::SafeTensors;
use safetensors::tensor::Dtype;

use crate::support::{
    Options, convert, corpus, file_source, folder, mixed, mmap_source, names, raw, replacing, run, to, write,
};

/// What the crate writes from what it reads in our file, with our metadata in the order that it happens to
/// write it in.
fn rewritten(bytes: &[u8]) -> (Vec<u8>, HashMap<String, String>) {
    let (_, metadata) = SafeTensors::read_metadata(bytes).unwrap();
    let ours = metadata.metadata().clone().unwrap();
    let tensors = SafeTensors::deserialize(bytes).unwrap();
    (safetensors::serialize(tensors.tensors(), Some(ours.clone())).unwrap(), ours)
}

/// A file's header with `__metadata__` sorted, and its data.
fn sorted_parts(bytes: &[u8]) -> (String, String, &[u8]) {
    let len = usize::try_from(u64::from_le_bytes(*bytes.first_chunk().unwrap())).unwrap();
    let header = std::str::from_utf8(&bytes[8..8 + len]).unwrap();
    let rest = header.strip_prefix("{\"__metadata__\":").unwrap();
    let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<BTreeMap<String, String>>();
    let metadata = serde_json::to_string(&stream.next().unwrap().unwrap()).unwrap();
    (metadata, rest[stream.byte_offset()..].to_owned(), &bytes[8 + len..])
}

#[test]
fn the_bytes_are_those_of_the_safetensors_crate() {
    let folder = folder();
    let input = write(&folder, "mixed.gguf", &mixed(ByteOrder::Little));
    let output = folder.path().join("mixed.safetensors");
    for values in [Values::Raw, Values::Auto, Values::Floats(FloatDtype::F16)] {
        convert(&input, &output, &replacing(to(values))).unwrap();
        let bytes = std::fs::read(&output).unwrap();
        let (theirs, metadata) = rewritten(&bytes);
        assert_eq!(sorted_parts(&bytes), sorted_parts(&theirs));
        assert_eq!(bytes.len(), theirs.len());
        assert_eq!(metadata["format"], "pt");
        assert_eq!(metadata["gguf.general.name"], "mixed \u{1f999}");
        assert_eq!(metadata["gguf2st.source"], "mixed.gguf");
    }
}

#[test]
fn plain_types_keep_their_dtype_and_blocks_become_rows_of_bytes() {
    let folder = folder();
    let container = mixed(ByteOrder::Little);
    let input = write(&folder, "in.gguf", &container);
    let output = folder.path().join("out.safetensors");
    let report = convert(&input, &output, &raw()).unwrap();
    let bytes = std::fs::read(&output).unwrap();
    assert_eq!(report.bytes, bytes.len() as u64);
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(tensors.len(), 9); // eight and the reserved one

    let model = Model::open(file_source(&input)).unwrap();
    for (name, dtype, shape) in [
        ("token_embd.weight", Dtype::U8, &[3, 68][..]), // two blocks of 34 bytes a row
        ("blk.0.attn_norm.weight", Dtype::F32, &[5]),
        ("blk.0.ffn_up.weight", Dtype::F16, &[2, 3, 4]),
        ("blk.0.ffn_down.weight", Dtype::BF16, &[7]),
        ("ids", Dtype::I64, &[3]),
        ("steps", Dtype::I8, &[2, 2]),
        ("halves", Dtype::F64, &[3]),
        ("blk.0.attn_q.weight", Dtype::U8, &[2, 210]),
    ] {
        let tensor = tensors.tensor(name).unwrap();
        assert_eq!((tensor.dtype(), tensor.shape()), (dtype, shape), "{name}");
        let info = model.file().tensors().find(name).unwrap();
        assert_eq!(tensor.data(), model.file().tensor_bytes(&container, &info).unwrap(), "{name}");
    }
    let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
    let blocks: serde_json::Value =
        serde_json::from_str(&header.metadata().as_ref().unwrap()["gguf2st.blocks"]).unwrap();
    assert_eq!(blocks["token_embd.weight"], serde_json::json!({"ggml_type": "Q8_0", "dims": [64, 3]}));
    assert_eq!(blocks.as_object().unwrap().len(), 2);
}

#[test]
fn big_and_little_endian_twins_give_equal_values() {
    let folder = folder();
    let values: Vec<f32> = vec![1.0, -2.5, 3.25e-7];
    let twin = |order, encode: fn(f32) -> [u8; 4]| {
        let builder = Builder::new().format(3, order).tensor("a", &[3], GgmlType::F32);
        builder.container(|_, bytes| {
            for (slot, value) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(&values) {
                *slot = encode(*value);
            }
        })
    };
    let mut data = Vec::new();
    for (name, bytes) in [
        ("little", twin(ByteOrder::Little, f32::to_le_bytes).unwrap()),
        ("big", twin(ByteOrder::Big, f32::to_be_bytes).unwrap()),
    ] {
        let output = folder.path().join(format!("{name}.safetensors"));
        convert(&write(&folder, name, &bytes), &output, &Options::default()).unwrap();
        let bytes = std::fs::read(&output).unwrap();
        data.push(SafeTensors::deserialize(&bytes).unwrap().tensor("a").unwrap().data().to_vec());
    }
    let expected: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(data, [expected.clone(), expected]);
}

#[test]
fn auto_gives_floats_that_any_reader_takes() {
    let folder = folder();
    let input = write(&folder, "in.gguf", &mixed(ByteOrder::Little));
    let output = folder.path().join("out.safetensors");
    let mut options = Options::default();
    options.plan.keep_f32 = vec!["embd".to_owned()];
    convert(&input, &output, &options).unwrap();
    let bytes = std::fs::read(&output).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(tensors.len(), 8);
    let kind = |name| tensors.tensor(name).map(|tensor| (tensor.dtype(), tensor.shape().to_vec())).unwrap();
    assert_eq!(kind("token_embd.weight"), (Dtype::F32, vec![3, 64])); // kept
    assert_eq!(kind("blk.0.attn_q.weight"), (Dtype::BF16, vec![2, 256]));
    assert_eq!(kind("blk.0.ffn_up.weight"), (Dtype::F16, vec![2, 3, 4]));
    assert_eq!(kind("ids"), (Dtype::I64, vec![3]));

    // The first value of the Q8_0 tensor by hand: scale times quant.
    let scale = half::f16::from_le_bytes([0, 7]).to_f32();
    let first = f32::from_le_bytes(*tensors.tensor("token_embd.weight").unwrap().data().first_chunk().unwrap());
    assert_eq!(first, scale * 14.0);
}

#[test]
fn values_too_large_for_f16_are_counted_and_refused_when_strict() {
    let folder = folder();
    let container = Builder::new().tensor("big", &[3], GgmlType::F32).container(|_, bytes| {
        for (slot, value) in bytes.as_chunks_mut::<4>().0.iter_mut().zip([1.0_f32, 1e6, f32::INFINITY]) {
            *slot = value.to_le_bytes();
        }
    });
    let input = write(&folder, "in.gguf", &container.unwrap());
    let options = to(Values::Floats(FloatDtype::F16));
    let report = convert(&input, &folder.path().join("a"), &options).unwrap();
    assert_eq!(report.overflowed, [("big".to_owned(), 1)]);

    let mut strict = options;
    strict.run.strict = true;
    let error = convert(&input, &folder.path().join("b"), &strict).unwrap_err();
    assert!(matches!(&error, ConvertError::Overflowed { tensor, .. } if tensor == "big"), "{error}");
    assert_eq!(names(&folder), ["a", "in.gguf"]);
}

#[test]
fn the_same_input_gives_the_same_bytes_by_any_way() {
    let folder = folder();
    let input = write(&folder, "in.gguf", &mixed(ByteOrder::Little));
    for values in [Values::Raw, Values::Auto] {
        let mut outputs = Vec::new();
        for threads in [1, 2, 7] {
            for source in [file_source(&input), mmap_source(&input)] {
                let output = folder.path().join(format!("{}", outputs.len()));
                let mut options = replacing(to(values));
                options.run.threads = NonZeroUsize::new(threads);
                run(source, &output, &options).unwrap();
                outputs.push(std::fs::read(&output).unwrap());
            }
        }
        assert!(outputs.windows(2).all(|pair| pair[0] == pair[1]));
    }
}

#[test]
fn names_that_safetensors_keeps_are_refused() {
    let folder = folder();
    for name in ["__metadata__", "__gguf2st__"] {
        let container = Builder::new().tensor(name, &[1], GgmlType::I8).container(|_, _| ()).unwrap();
        let error = convert(&write(&folder, "in", &container), &folder.path().join("out"), &raw()).unwrap_err();
        assert!(matches!(&error, ConvertError::ReservedName { tensor } if tensor == name), "{error}");
    }
    assert_eq!(names(&folder), ["in"]);
}

#[test]
fn every_file_of_the_corpus_that_converts_is_read_by_the_crate() {
    let folder = folder();
    let mut converted = 0;
    for input in corpus() {
        let output = folder.path().join("out");
        let Ok(_) = convert(&input, &output, &raw()) else { continue };
        let bytes = std::fs::read(&output).unwrap();
        let tensors = SafeTensors::deserialize(&bytes).unwrap_or_else(|error| panic!("{}: {error}", input.display()));
        let model = Model::open(file_source(&input)).unwrap();
        assert_eq!(tensors.len(), model.file().tensors().len() + 1, "{}", input.display());
        converted += 1;
        std::fs::remove_file(output).unwrap();
    }
    assert!(converted > 100, "{converted}");
}
