use std::path::Path;

use gguf2st_convert::{ConvertError, RunOptions, Weights, restore};
use gguf2st_gguf::ByteOrder;

use crate::support::{Options, convert, corpus, folder, mixed, names, raw, write};

fn back(input: &Path, output: &Path) -> Result<u64, ConvertError> {
    restore(&Weights::open_path(input)?, output, &RunOptions::default(), &|_| ()).map(|(_, bytes)| bytes)
}

#[test]
fn every_file_of_the_corpus_that_converts_comes_back_whole() {
    let folder = folder();
    let mut restored = 0;
    for input in corpus() {
        let (output, again) = (folder.path().join("out"), folder.path().join("back"));
        let Ok(_) = convert(&input, &output, &raw()) else { continue };
        back(&output, &again).unwrap_or_else(|error| panic!("{}: {error}", input.display()));
        assert!(std::fs::read(&again).unwrap() == std::fs::read(&input).unwrap(), "{}", input.display());
        restored += 1;
        std::fs::remove_file(output).unwrap();
        std::fs::remove_file(again).unwrap();
    }
    assert!(restored > 100, "{restored}");
}

#[test]
fn both_byte_orders_come_back() {
    let folder = folder();
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let container = mixed(order);
        let input = write(&folder, "in", &container);
        let (output, again) = (folder.path().join("out"), folder.path().join("back"));
        convert(&input, &output, &raw()).unwrap();
        assert_eq!(back(&output, &again).unwrap(), container.len() as u64);
        assert_eq!(std::fs::read(&again).unwrap(), container);
        std::fs::remove_file(output).unwrap();
        std::fs::remove_file(again).unwrap();
    }
}

#[test]
fn what_another_writer_has_moved_comes_back_all_the_same() {
    let folder = folder();
    let container = mixed(ByteOrder::Little);
    let input = write(&folder, "in", &container);
    let output = folder.path().join("out");
    convert(&input, &output, &raw()).unwrap();
    let bytes = std::fs::read(&output).unwrap();
    let (_, header) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let rewritten = safetensors::serialize(tensors.tensors(), header.metadata().clone()).unwrap();
    let moved = write(&folder, "moved", &rewritten);
    back(&moved, &folder.path().join("back")).unwrap();
    assert_eq!(std::fs::read(folder.path().join("back")).unwrap(), container);
}

#[test]
fn what_can_not_be_restored_says_why() {
    let folder = folder();
    let input = write(&folder, "in", &mixed(ByteOrder::Little));
    let output = folder.path().join("floats");
    convert(&input, &output, &Options::default()).unwrap();
    let target = folder.path().join("back");
    let reason = |input: &Path| back(input, &target).unwrap_err().to_string();
    assert!(reason(&output).contains("--dtype raw"));
    assert!(reason(&input).contains("not a safetensors file"));

    let output = folder.path().join("raw");
    convert(&input, &output, &raw()).unwrap();
    let bytes = std::fs::read(&output).unwrap();
    let cut = write(&folder, "cut", &bytes[..bytes.len() - 1]);
    assert!(reason(&cut).contains("not inside the file"));
    let short = write(&folder, "short", &bytes[..5]);
    assert!(reason(&short).contains("5 bytes"));

    let at = bytes.windows(10).position(|window| window == b"\\\"bytes\\\":").unwrap();
    let mut changed = bytes.clone();
    changed[at + 10] = b'9';
    let changed = write(&folder, "changed", &changed);
    assert!(
        reason(&changed).contains("file_length") || reason(&changed).contains("was changed"),
        "{}",
        reason(&changed)
    );
    assert!(!names(&folder).iter().any(|name| name.starts_with("back") || name.ends_with(".part")));
}
