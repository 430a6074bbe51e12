use gguf2st_convert::{Model, Number};
use gguf2st_gguf::write::Builder;
use gguf2st_gguf::{ByteOrder, GgmlType};

use crate::support::{file_source, folder, mixed, write};

#[test]
fn statistics_are_those_of_the_values() {
    let folder = folder();
    let container = Builder::new()
        .tensor("floats", &[4], GgmlType::F32)
        .tensor("bytes", &[2, 2], GgmlType::I8)
        .tensor("double", &[1], GgmlType::F64)
        .container(|position, bytes| match position {
            0 => bytes.copy_from_slice(&[1.5_f32, f32::NAN, 0.0, -3.0].map(f32::to_le_bytes).concat()),
            1 => bytes.copy_from_slice(&[1, 2, 3, 0xfe]),
            _ => bytes.copy_from_slice(&1e300_f64.to_le_bytes()),
        });
    let model = Model::open(file_source(&write(&folder, "in", &container.unwrap()))).unwrap();
    let stats = model.stats(None, &|_| ()).unwrap();
    let [Some(floats), Some(bytes), Some(double)] = stats[..] else { panic!("{stats:?}") };
    assert_eq!((floats.values, floats.nan, floats.zeros, floats.min, floats.max), (4, 1, 1, Some(-3.0), Some(1.5)));
    assert_eq!((bytes.mean, bytes.std), (Some(1.0), Some(3.5_f64.sqrt())));
    assert_eq!(double.max, Some(1e300));

    assert_eq!(model.first_values("bytes", 3).unwrap().unwrap(), [1, 2, 3].map(Number::Integer));
    assert_eq!(model.first_values("double", 9).unwrap().unwrap(), [Number::Double(1e300)]);
    assert_eq!(model.first_values("absent", 1).unwrap(), None);
}

#[test]
fn blocks_without_a_layout_in_this_byte_order_have_no_values() {
    let folder = folder();
    let container = Builder::new()
        .format(3, ByteOrder::Big)
        .tensor("known", &[32], GgmlType::Q8_0)
        .tensor("unknown", &[32], GgmlType::Q5_1)
        .container(|_, _| ())
        .unwrap();
    let model = Model::open(file_source(&write(&folder, "in", &container))).unwrap();
    let stats = model.stats(None, &|_| ()).unwrap();
    assert_eq!(stats[0].unwrap().zeros, 32);
    assert_eq!(stats[1], None);
    let error = model.first_values("unknown", 1).unwrap_err().to_string();
    assert!(error.contains("\"unknown\"") && error.contains("big-endian"), "{error}");
}

#[test]
fn first_values_are_decoded() {
    let folder = folder();
    let model = Model::open(file_source(&write(&folder, "in", &mixed(ByteOrder::Little)))).unwrap();
    let values = model.first_values("token_embd.weight", 2).unwrap().unwrap();
    let scale = half::f16::from_le_bytes([0, 7]).to_f32();
    assert_eq!(values, [Number::Float(scale * 14.0), Number::Float(scale * 21.0)]);
}
