use gguf2st_convert::{Comparison, FloatDtype, Model, Values, Weights, verify};
use gguf2st_gguf::ByteOrder;

use crate::support::{convert, file_source, folder, mixed, raw, to, write};

#[test]
fn a_conversion_of_any_kind_equals_its_model() {
    let folder = folder();
    let input = write(&folder, "in", &mixed(ByteOrder::Little));
    for values in [Values::Raw, Values::Auto, Values::Floats(FloatDtype::F32), Values::Floats(FloatDtype::F16)] {
        let output = folder.path().join(format!("{values:?}"));
        convert(&input, &output, &to(values)).unwrap();
        let comparison = compare(&output, &input);
        assert!(comparison.is_equal(), "{comparison:?}");
        assert_eq!(comparison.tensors.len(), if values == Values::Raw { 9 } else { 8 });
    }
}

#[test]
fn a_changed_value_is_found_and_named() {
    let folder = folder();
    let input = write(&folder, "in", &mixed(ByteOrder::Little));
    let output = folder.path().join("out");
    convert(&input, &output, &raw()).unwrap();
    let mut bytes = std::fs::read(&output).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let norm = tensors.tensor("blk.0.attn_norm.weight").unwrap().data().as_ptr().addr() - bytes.as_ptr().addr();
    bytes[norm + 4 * 3 + 1] ^= 0x40;
    std::fs::write(&output, &bytes).unwrap();
    let comparison = compare(&output, &input);
    let differing: Vec<_> = comparison.tensors.iter().filter(|tensor| !tensor.is_equal()).collect();
    assert_eq!(differing.len(), 1);
    assert_eq!(differing[0].name, "blk.0.attn_norm.weight");
    assert!(differing[0].difference.as_ref().unwrap().to_string().starts_with("value 3 is 0x"));
}

#[test]
fn what_is_missing_added_or_of_another_kind_is_told() {
    let folder = folder();
    let input = write(&folder, "in", &mixed(ByteOrder::Little));
    let view = |len| safetensors::tensor::TensorView::new(safetensors::Dtype::U8, vec![len], &[0; 9][..len]).unwrap();
    let other = safetensors::serialize([("steps", view(4)), ("new", view(9))], None).unwrap();
    let output = write(&folder, "other", &other);
    let comparison = compare(&output, &input);
    assert_eq!(comparison.extra, ["new"]);
    assert_eq!(comparison.missing.len(), 7);
    assert_eq!(comparison.tensors[0].difference.as_ref().unwrap().to_string(), "I8 [2, 2] is expected");
}

fn compare(output: &std::path::Path, input: &std::path::Path) -> Comparison {
    let model = Model::open(file_source(input)).unwrap();
    verify(&Weights::open_path(output).unwrap(), &model, None, &|_| ()).unwrap()
}
