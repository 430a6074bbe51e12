//! What the writer writes the parser reads, what the parser read the writer writes again, and nothing panics.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[allow(unreachable_pub, reason = "shared by several test binaries")]
mod common;

use std::collections::BTreeMap;

use common::everything;
use gguf2st_gguf::bstr::BString;
use gguf2st_gguf::limits::{DEFAULT_ALIGNMENT, MAX_ARRAY_DEPTH};
use gguf2st_gguf::write::Builder;
use gguf2st_gguf::{ByteOrder, GgmlType, GgufFile, OwnedValue, Value, ValueType, parse_gguf};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::{Index, select};

const FORMATS: [(u32, ByteOrder); 4] =
    [(1, ByteOrder::Little), (2, ByteOrder::Little), (3, ByteOrder::Little), (3, ByteOrder::Big)];

/// A container as a value: what the writer is given.
#[derive(Clone, Debug)]
struct Container {
    format: (u32, ByteOrder),
    metadata: Vec<(BString, OwnedValue)>,
    tensors: Vec<(BString, Vec<u64>, GgmlType)>,
    seed: u8,
}

impl Container {
    fn builder(&self) -> Builder {
        let mut builder = Builder::new().format(self.format.0, self.format.1);
        for (key, value) in &self.metadata {
            builder = builder.metadata(key.clone(), value.clone());
        }
        for (name, dims, ggml_type) in &self.tensors {
            builder = builder.tensor(name.clone(), dims, *ggml_type);
        }
        builder
    }

    fn bytes(&self) -> Vec<u8> {
        self.builder().container(|_, bytes| bytes.fill(self.seed)).unwrap()
    }

    fn alignment(&self) -> u32 {
        let stated = self.metadata.iter().find(|(key, _)| key == "general.alignment");
        stated.map_or(DEFAULT_ALIGNMENT, |(_, value)| match value {
            OwnedValue::U32(value) => *value,
            other => panic!("an alignment of {other:?}"),
        })
    }
}

/// Text of any bytes. A NUL at its end would be stripped in versions 1 and 2, see the test of that.
fn text(bytes: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = BString> {
    vec(any::<u8>(), bytes).prop_map(|mut bytes| {
        if let Some(last @ 0) = bytes.last_mut() {
            *last = b'0';
        }
        BString::from(bytes)
    })
}

fn scalar(value_type: ValueType) -> BoxedStrategy<OwnedValue> {
    match value_type {
        ValueType::U8 => any::<u8>().prop_map(OwnedValue::U8).boxed(),
        ValueType::I8 => any::<i8>().prop_map(OwnedValue::I8).boxed(),
        ValueType::U16 => any::<u16>().prop_map(OwnedValue::U16).boxed(),
        ValueType::I16 => any::<i16>().prop_map(OwnedValue::I16).boxed(),
        ValueType::U32 => any::<u32>().prop_map(OwnedValue::U32).boxed(),
        ValueType::I32 => any::<i32>().prop_map(OwnedValue::I32).boxed(),
        // By their bits: every NaN has to come back as it went.
        ValueType::F32 => any::<u32>().prop_map(|bits| OwnedValue::F32(f32::from_bits(bits))).boxed(),
        ValueType::Bool => any::<bool>().prop_map(OwnedValue::Bool).boxed(),
        ValueType::String => text(0..40).prop_map(OwnedValue::String).boxed(),
        ValueType::U64 => any::<u64>().prop_map(OwnedValue::U64).boxed(),
        ValueType::I64 => any::<i64>().prop_map(OwnedValue::I64).boxed(),
        ValueType::F64 => any::<u64>().prop_map(|bits| OwnedValue::F64(f64::from_bits(bits))).boxed(),
        ValueType::Array => array(1),
    }
}

/// An array at a depth, the outermost being 1.
fn array(depth: u32) -> BoxedStrategy<OwnedValue> {
    let deeper = depth < MAX_ARRAY_DEPTH;
    let elements = ValueType::ALL.into_iter().filter(|element| deeper || *element != ValueType::Array);
    select(elements.collect::<Vec<_>>())
        .prop_flat_map(move |element| {
            let one = if element == ValueType::Array { array(depth + 1) } else { scalar(element) };
            vec(one, 0..6).prop_map(move |elements| OwnedValue::Array(element, elements))
        })
        .boxed()
}

fn metadata() -> impl Strategy<Value = Vec<(BString, OwnedValue)>> {
    let entries = btree_map(text(1..30), select(&ValueType::ALL[..]).prop_flat_map(scalar), 0..8);
    let alignment = proptest::option::of((0..=16_u32, any::<Index>()));
    (entries, alignment).prop_map(|(entries, alignment): (BTreeMap<_, _>, _)| {
        let mut entries: Vec<_> = entries.into_iter().filter(|(key, _)| key != "general.alignment").collect();
        if let Some((power, place)) = alignment {
            let place = place.index(entries.len() + 1);
            entries.insert(place, ("general.alignment".into(), OwnedValue::U32(1 << power)));
        }
        entries
    })
}

fn tensors() -> impl Strategy<Value = Vec<(BString, Vec<u64>, GgmlType)>> {
    let sized: Vec<_> = GgmlType::all().filter(|ggml_type| ggml_type.block_size().is_some()).collect();
    let one = (select(sized), vec(0..4_u64, 0..=4)).prop_map(|(ggml_type, mut dims)| {
        let block = ggml_type.block_size().unwrap();
        match dims.first_mut() {
            Some(row) => *row *= block,
            None if block > 1 => dims.push(block),
            None => {}
        }
        (dims, ggml_type)
    });
    btree_map(text(1..30), one, 0..6)
        .prop_map(|tensors| tensors.into_iter().map(|(name, (dims, ggml_type))| (name, dims, ggml_type)).collect())
}

fn container() -> impl Strategy<Value = Container> {
    (select(&FORMATS[..]), metadata(), tensors(), any::<u8>()).prop_map(|(format, metadata, tensors, seed)| Container {
        format,
        metadata,
        tensors,
        seed,
    })
}

/// Equal to the bit: a NaN is equal to itself.
fn same(value: &OwnedValue, other: &OwnedValue) -> bool {
    match (value, other) {
        (OwnedValue::F32(value), OwnedValue::F32(other)) => value.to_bits() == other.to_bits(),
        (OwnedValue::F64(value), OwnedValue::F64(other)) => value.to_bits() == other.to_bits(),
        (OwnedValue::Array(element, values), OwnedValue::Array(other, others)) => {
            element == other && values.len() == others.len() && values.iter().zip(others).all(|(a, b)| same(a, b))
        }
        _ => value == other,
    }
}

/// The builder that writes what was read.
fn rebuild<H: AsRef<[u8]>>(file: &GgufFile<H>) -> Builder {
    let mut builder = Builder::new().format(file.version(), file.byte_order());
    for (key, value) in file.metadata().iter() {
        builder = builder.metadata(key, value.to_owned());
    }
    for tensor in file.tensors().iter() {
        builder = builder.tensor(tensor.name, &tensor.dims, tensor.ggml_type);
    }
    builder
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn what_is_written_is_read(container in container()) {
        let bytes = container.bytes();
        let file = parse_gguf(&bytes, bytes.len() as u64).unwrap();
        prop_assert_eq!((file.version(), file.byte_order()), container.format);
        prop_assert_eq!(file.alignment(), container.alignment());
        prop_assert!(file.data_offset().is_multiple_of(container.alignment().into()));

        prop_assert_eq!(file.metadata().len(), container.metadata.len());
        for ((key, value), (found_key, found)) in container.metadata.iter().zip(file.metadata().iter()) {
            prop_assert_eq!(key, found_key);
            prop_assert!(same(value, &found.to_owned()), "{:?} is read as {:?}", value, found);
            prop_assert!(same(value, &file.metadata().get(key).unwrap().to_owned()));
            if let Value::Array(array) = found {
                prop_assert_eq!(array.get(array.len()), None);
                for (index, element) in array.iter().enumerate() {
                    let at = array.get(index as u64).unwrap();
                    prop_assert!(same(&at.to_owned(), &element.to_owned()));
                }
            }
        }

        prop_assert_eq!(file.tensors().len(), container.tensors.len());
        for ((name, dims, ggml_type), tensor) in container.tensors.iter().zip(file.tensors().iter()) {
            prop_assert_eq!((name.as_ref(), &dims[..], *ggml_type), (tensor.name, &*tensor.dims, tensor.ggml_type));
            prop_assert_eq!(file.tensors().find(name), Some(tensor));
            let data = file.tensor_bytes(&bytes, &tensor).unwrap();
            prop_assert_eq!(data.len() as u64, tensor.byte_size().unwrap());
            prop_assert!(data.iter().all(|byte| *byte == container.seed), "bytes of another part");
        }
    }

    #[test]
    fn what_is_read_is_written_again(container in container()) {
        let bytes = container.bytes();
        let file = parse_gguf(&bytes, bytes.len() as u64).unwrap();
        let again = rebuild(&file).container(|position, data| {
            let tensor = file.tensors().get(position).unwrap();
            data.copy_from_slice(file.tensor_bytes(&bytes, &tensor).unwrap());
        });
        prop_assert_eq!(again.unwrap(), bytes);
    }

    #[test]
    fn a_closing_nul_is_stripped_in_the_versions_that_had_it(name in "[a-z]{0,9}") {
        for (version, order) in FORMATS {
            let head = Builder::new().format(version, order).metadata("k", &*format!("{name}\0")).head().unwrap();
            let file = parse_gguf(&head, head.len() as u64).unwrap();
            let expected = if version < 3 { name.clone() } else { format!("{name}\0") };
            prop_assert_eq!(file.metadata().read::<&str>("k").unwrap(), Some(&*expected));
        }
    }

    #[test]
    fn changed_bytes_never_panic(
        container in container(),
        changes in vec((any::<Index>(), any::<u8>()), 1..8),
        end in any::<Index>(),
        len in prop_oneof![Just(None), any::<u64>().prop_map(Some), (0..4096_u64).prop_map(Some)],
    ) {
        let mut bytes = container.bytes();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        look_at(&bytes, len.unwrap_or(bytes.len() as u64));
        bytes.truncate(end.index(bytes.len()));
        look_at(&bytes, len.unwrap_or(bytes.len() as u64));
    }

    #[test]
    fn random_bytes_never_panic(bytes in vec(any::<u8>(), 0..512), len in any::<u64>()) {
        look_at(&bytes, bytes.len() as u64);
        look_at(&bytes, len);
    }

    #[test]
    fn random_bytes_behind_a_header_never_panic(
        (version, order) in select(&FORMATS[..]),
        counts in (0..4_u8, 0..4_u8),
        // Small numbers make lengths and types that lead further in than random ones.
        rest in vec(prop_oneof![3 => 0..14_u8, 1 => any::<u8>()], 0..512),
    ) {
        let mut bytes = b"GGUF".to_vec();
        let wide = |value: u8| match (version, order) {
            (1, _) => u32::from(value).to_le_bytes().to_vec(),
            (_, ByteOrder::Little) => u64::from(value).to_le_bytes().to_vec(),
            (_, ByteOrder::Big) => u64::from(value).to_be_bytes().to_vec(),
        };
        bytes.extend(if order == ByteOrder::Big { version.to_be_bytes() } else { version.to_le_bytes() });
        bytes.extend(wide(counts.0));
        bytes.extend(wide(counts.1));
        bytes.extend(rest);
        look_at(&bytes, bytes.len() as u64);
    }
}

/// Parses and looks at all that comes out, whatever it is.
fn look_at(head: &[u8], container_len: u64) {
    match parse_gguf(head, container_len) {
        Ok(file) => assert!(!everything(&file).is_empty()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
