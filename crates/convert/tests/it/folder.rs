//! Folders of shards: what is made, kept, refused and gone on with.

use std::collections::BTreeMap;
use std::path::Path;

use gguf2st_convert::{ConvertError, Model, Report, Values, Weights, assemble, verify};
use gguf2st_gguf::ByteOrder;
use gguf2st_source::SourceError;

use crate::support::{Options, convert, file_source, folder, mixed, names, replacing, to, write};

fn sharded(values: Values, size: u64) -> Options {
    let mut options = to(values);
    options.plan.shard_size = Some(size);
    options
}

fn listing(path: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn contents(path: &Path) -> BTreeMap<String, Vec<u8>> {
    listing(path).into_iter().map(|name| (name.clone(), std::fs::read(path.join(name)).unwrap())).collect()
}

#[test]
fn shards_and_an_index_as_hugging_face_names_them() {
    let folder = folder();
    let input = write(&folder, "in.gguf", &mixed(ByteOrder::Little));
    let out = folder.path().join("out");
    let report = convert(&input, &out, &sharded(Values::Auto, 600)).unwrap();
    let files = listing(&out);
    assert_eq!(files.len(), report.files + 1);
    assert_eq!(files[0], format!("model-00001-of-{:05}.safetensors", report.files));
    assert_eq!(files[report.files], "model.safetensors.index.json");

    let index: serde_json::Value = serde_json::from_slice(&contents(&out)["model.safetensors.index.json"]).unwrap();
    let (mut total, mut tensors) = (0, 0);
    for file in &files[..report.files] {
        let bytes = std::fs::read(out.join(file)).unwrap();
        let shard = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let size: usize = shard.tensors().iter().map(|(_, tensor)| tensor.data().len()).sum();
        assert!(size <= 600 || shard.len() == 1, "{file}: {size}");
        total += size;
        for (name, _) in shard.tensors() {
            assert_eq!(index["weight_map"][&name], **file);
            tensors += 1;
        }
    }
    assert_eq!((tensors, report.tensors), (8, 8));
    assert_eq!(index["metadata"]["total_size"], total);

    let model = Model::open(file_source(&input)).unwrap();
    let weights = Weights::open_path(&out).unwrap();
    assert!(verify(&weights, &model, None, &|_| ()).unwrap().is_equal());
}

#[test]
fn one_shard_needs_no_number_and_no_index() {
    let folder = folder();
    let input = write(&folder, "in.gguf", &mixed(ByteOrder::Little));
    let out = folder.path().join("out");
    convert(&input, &out, &sharded(Values::Raw, 1 << 30)).unwrap();
    assert_eq!(listing(&out), ["model.safetensors"]);
}

#[test]
fn raw_shards_come_back_as_their_container() {
    let folder = folder();
    let container = mixed(ByteOrder::Big);
    let input = write(&folder, "in.gguf", &container);
    let out = folder.path().join("out");
    assert!(convert(&input, &out, &sharded(Values::Raw, 300)).unwrap().files > 2);
    let weights = Weights::open_path(&out).unwrap();
    let back = folder.path().join("back.gguf");
    gguf2st_convert::restore(&weights, &back, &gguf2st_convert::RunOptions::default(), &|_| ()).unwrap();
    assert_eq!(std::fs::read(back).unwrap(), container);
}

#[test]
fn a_complete_folder_is_left_as_it_is() {
    let folder = folder();
    let input = write(&folder, "in.gguf", &mixed(ByteOrder::Little));
    let out = folder.path().join("out");
    let options = sharded(Values::Auto, 600);
    let made = convert(&input, &out, &options).unwrap().files;
    let before = contents(&out);
    let again = convert(&input, &out, &options).unwrap();
    assert_eq!((again.files, again.kept), (0, made));
    assert_eq!(contents(&out), before);
}

#[test]
fn files_of_another_plan_are_named_and_replaced_only_when_told() {
    let folder = folder();
    let input = write(&folder, "in.gguf", &mixed(ByteOrder::Little));
    let out = folder.path().join("out");
    convert(&input, &out, &sharded(Values::Auto, 600)).unwrap();
    std::fs::write(out.join("notes.txt"), "mine").unwrap();
    let before = contents(&out);

    let other = sharded(Values::Raw, 600);
    let error = convert(&input, &out, &other).unwrap_err();
    assert!(matches!(&error, ConvertError::OtherFiles { files, .. } if files.len() == before.len() - 1), "{error}");
    assert!(error.to_string().contains("model-00001-of-"), "{error}");
    assert_eq!(contents(&out), before);

    convert(&input, &out, &replacing(other.clone())).unwrap();
    let clean = folder.path().join("clean");
    convert(&input, &clean, &other).unwrap();
    let mut expected = contents(&clean);
    expected.insert("notes.txt".to_owned(), b"mine".to_vec());
    assert_eq!(contents(&out), expected);
}

/// Runs until some shards are whole, then fails: the source is cut short.
fn interrupted(input: &Path, out: &Path, options: &Options) -> Result<Report, ConvertError> {
    let model = Model::open(file_source(input)).unwrap();
    let plan = model.plan(&options.plan).unwrap();
    let first = plan.shards[0].bytes() + plan.shards[1].bytes();
    let written = std::sync::atomic::AtomicU64::new(0);
    let stop = options.run.stop.clone();
    model.convert(&plan, out, &options.run, &|bytes| {
        if written.fetch_add(bytes, std::sync::atomic::Ordering::Relaxed) + bytes > first {
            stop.request();
        }
    })
}

#[test]
fn an_interrupted_run_is_gone_on_with() {
    let folder = folder();
    let input = write(&folder, "in.gguf", &mixed(ByteOrder::Little));
    let (out, clean) = (folder.path().join("out"), folder.path().join("clean"));
    let options = || sharded(Values::Auto, 200);
    convert(&input, &clean, &options()).unwrap();

    let error = interrupted(&input, &out, &options()).unwrap_err();
    assert!(matches!(error, ConvertError::Interrupted), "{error}");
    let left = listing(&out);
    assert!(left.contains(&".gguf2st-run.jsonl".to_owned()) && left.len() >= 3, "{left:?}");
    assert!(!left.iter().any(|name| name.ends_with(".part")), "{left:?}");
    // What a killed run would have left.
    std::fs::write(out.join(".model-00003-of-00003.safetensors.abc.part"), "half").unwrap();

    let report = convert(&input, &out, &options()).unwrap();
    assert!(report.kept >= 2, "{report:?}");
    assert_eq!(contents(&out).keys().collect::<Vec<_>>(), contents(&clean).keys().collect::<Vec<_>>());
    assert_eq!(contents(&out), contents(&clean));
}

#[test]
fn a_shard_that_was_changed_is_made_again() {
    let folder = folder();
    let input = write(&folder, "in.gguf", &mixed(ByteOrder::Little));
    let (out, clean) = (folder.path().join("out"), folder.path().join("clean"));
    convert(&input, &clean, &sharded(Values::Auto, 200)).unwrap();
    interrupted(&input, &out, &sharded(Values::Auto, 200)).unwrap_err();
    let shard = out.join(listing(&out).into_iter().find(|name| name.starts_with("model-00001")).unwrap());
    let mut bytes = std::fs::read(&shard).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&shard, bytes).unwrap();
    convert(&input, &out, &sharded(Values::Auto, 200)).unwrap();
    assert_eq!(contents(&out), contents(&clean));
}

#[test]
fn a_changed_source_keeps_nothing() {
    let folder = folder();
    let mut container = mixed(ByteOrder::Little);
    let input = write(&folder, "in.gguf", &container);
    let out = folder.path().join("out");
    interrupted(&input, &out, &sharded(Values::Auto, 200)).unwrap_err();
    // The same head, other data, another time.
    let len = container.len();
    container[len - 40] ^= 1;
    std::fs::remove_file(&input).unwrap();
    std::fs::write(folder.path().join("filler"), "takes the old number").unwrap();
    let input = write(&folder, "in.gguf", &container);
    let report = convert(&input, &out, &sharded(Values::Auto, 200)).unwrap();
    assert_eq!(report.kept, 0);
    let model = Model::open(file_source(&input)).unwrap();
    assert!(verify(&Weights::open_path(&out).unwrap(), &model, None, &|_| ()).unwrap().is_equal());
}

#[test]
fn two_runs_at_once_do_not_mix() {
    let folder = folder();
    let input = write(&folder, "in.gguf", &mixed(ByteOrder::Little));
    let out = folder.path().join("out");
    let options = sharded(Values::Auto, 200);
    let model = Model::open(file_source(&input)).unwrap();
    let plan = model.plan(&options.plan).unwrap();
    let busy = std::sync::atomic::AtomicUsize::new(0);
    model
        .convert(&plan, &out, &options.run, &|_| {
            // In the middle of one run, another.
            match convert(&input, &out, &options) {
                Err(ConvertError::Busy { .. }) => busy.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
                other => panic!("{other:?}"),
            };
        })
        .unwrap();
    assert!(busy.into_inner() > 0);
    assert!(!listing(&out).iter().any(|name| name.starts_with('.')));
}

#[test]
fn some_shards_here_and_some_there_are_assembled() {
    let folder = folder();
    let input = write(&folder, "in.gguf", &mixed(ByteOrder::Little));
    let (out, clean) = (folder.path().join("out"), folder.path().join("clean"));
    let count = convert(&input, &clean, &sharded(Values::Auto, 200)).unwrap().files;
    let some = |shards: Vec<usize>| {
        let mut options = sharded(Values::Auto, 200);
        options.run.only_shards = Some(shards);
        convert(&input, &out, &options)
    };
    assert!(matches!(some(vec![count + 1]), Err(ConvertError::NoSuchShard { .. })));
    some(vec![2, count]).unwrap();
    let error = assemble(&out).unwrap_err().to_string();
    assert!(error.contains("model-00001-of-") && error.contains("missing"), "{error}");
    some((1..count).filter(|number| *number != 2).collect()).unwrap();
    assert_eq!(assemble(&out).unwrap(), (count, 8));
    assert_eq!(contents(&out), contents(&clean));

    // A shard of another plan with the same name.
    let other = folder.path().join("other");
    convert(&input, &other, &replacing(sharded(Values::Floats(gguf2st_convert::FloatDtype::F16), 200))).unwrap();
    let name = format!("model-00001-of-{count:05}.safetensors");
    if other.join(&name).exists() {
        std::fs::copy(other.join(&name), out.join(&name)).unwrap();
        let error = assemble(&out).unwrap_err().to_string();
        assert!(error.contains("of another plan"), "{error}");
    }
    // And one that is not whole.
    std::fs::write(out.join(&name), &contents(&clean)[&name][..100]).unwrap();
    assert!(assemble(&out).is_err());
}

#[test]
fn a_source_cut_short_keeps_what_is_whole() {
    let folder = folder();
    let input = write(&folder, "in.gguf", &mixed(ByteOrder::Little));
    let out = folder.path().join("out");
    let options = sharded(Values::Auto, 200);
    let model = Model::open(file_source(&input)).unwrap();
    let plan = model.plan(&options.plan).unwrap();
    std::fs::OpenOptions::new().write(true).open(&input).unwrap().set_len(700).unwrap();
    let error = model.convert(&plan, &out, &options.run, &|_| ()).unwrap_err();
    assert!(matches!(error, ConvertError::Source(SourceError::CutShort { .. })), "{error}");
    assert!(!listing(&out).iter().any(|name| name.ends_with(".part")));
    assert_eq!(names(&folder), ["in.gguf", "out"]);
}

#[test]
fn what_is_complete_is_made_anew_when_told_and_when_the_model_is_younger() {
    let folder = folder();
    let mut container = mixed(ByteOrder::Little);
    let input = write(&folder, "in.gguf", &container);
    let out = folder.path().join("out");
    let options = sharded(Values::Auto, 600);
    let count = convert(&input, &out, &options).unwrap().files;
    assert_eq!(convert(&input, &out, &replacing(options.clone())).unwrap().files, count);

    // The same head over other data, later.
    let len = container.len();
    container[len - 40] ^= 1;
    std::fs::write(&input, &container).unwrap();
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    std::fs::File::options().write(true).open(&input).unwrap().set_modified(later).unwrap();
    assert_eq!(convert(&input, &out, &options).unwrap().files, count);
    let model = Model::open(file_source(&input)).unwrap();
    assert!(verify(&Weights::open_path(&out).unwrap(), &model, None, &|_| ()).unwrap().is_equal());
}

#[test]
fn a_model_in_the_folder_is_not_taken_for_an_old_output() {
    let folder = folder();
    let container = mixed(ByteOrder::Little);
    let out = folder.path().join("out");
    std::fs::create_dir(&out).unwrap();
    let input = out.join("model.safetensors");
    std::fs::write(&input, &container).unwrap();
    let error = convert(&input, &out, &replacing(sharded(Values::Auto, 200))).unwrap_err();
    assert!(matches!(error, ConvertError::OutputIsInput { .. }), "{error}");
    assert_eq!(std::fs::read(&input).unwrap(), container);
}

#[test]
fn old_files_stay_until_new_ones_are_whole() {
    let folder = folder();
    let input = write(&folder, "in.gguf", &mixed(ByteOrder::Little));
    let out = folder.path().join("out");
    convert(&input, &out, &sharded(Values::Raw, 600)).unwrap();
    let before = contents(&out);
    let failing = replacing(sharded(Values::Auto, 1 << 30));
    failing.run.stop.request();
    convert(&input, &out, &failing).unwrap_err();
    assert_eq!(contents(&out), before);
}

#[cfg(unix)]
#[test]
fn a_link_or_a_pipe_in_the_place_of_our_files_harms_nothing() {
    let folder = folder();
    let input = write(&folder, "in.gguf", &mixed(ByteOrder::Little));
    let victim = write(&folder, "victim", b"precious");
    let out = folder.path().join("out");
    std::fs::create_dir(&out).unwrap();
    std::os::unix::fs::symlink(&victim, out.join(".gguf2st-run.jsonl")).unwrap();
    convert(&input, &out, &sharded(Values::Auto, 600)).unwrap_err();
    assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
    std::fs::remove_file(out.join(".gguf2st-run.jsonl")).unwrap();

    let made = std::process::Command::new("mkfifo").arg(out.join("model-00001-of-00009.safetensors")).status();
    assert!(made.unwrap().success());
    let error = convert(&input, &out, &sharded(Values::Auto, 600)).unwrap_err();
    assert!(matches!(error, ConvertError::OtherFiles { .. }), "{error}");
}

#[test]
fn a_line_that_was_cut_short_forgets_one_shard_and_no_more() {
    let folder = folder();
    let input = write(&folder, "in.gguf", &mixed(ByteOrder::Little));
    let out = folder.path().join("out");
    interrupted(&input, &out, &sharded(Values::Auto, 200)).unwrap_err();
    let run = out.join(".gguf2st-run.jsonl");
    let text = std::fs::read_to_string(&run).unwrap();
    let finished = text.lines().count() - 1;
    std::fs::write(&run, &text[..text.len() - 5]).unwrap();
    let mut options = sharded(Values::Auto, 200);
    options.run.only_shards = Some(vec![1, 1]);
    convert(&input, &out, &options).unwrap();
    let report = convert(&input, &out, &sharded(Values::Auto, 200)).unwrap();
    assert!(report.kept >= finished - 1, "{report:?} of {finished}");
}

#[test]
fn a_strict_run_keeps_nothing_that_overflowed() {
    let folder = folder();
    let container = gguf2st_gguf::write::Builder::new()
        .tensor("big", &[64], gguf2st_gguf::GgmlType::F32)
        .tensor("small", &[64], gguf2st_gguf::GgmlType::F32)
        .container(|position, bytes| {
            if position == 0 {
                bytes[..4].copy_from_slice(&1e9_f32.to_le_bytes());
            }
        });
    let input = write(&folder, "in.gguf", &container.unwrap());
    let out = folder.path().join("out");
    let mut options = sharded(Values::Floats(gguf2st_convert::FloatDtype::F16), 128);
    assert_eq!(convert(&input, &out, &options).unwrap().overflowed, [("big".to_owned(), 1)]);
    options.run.strict = true;
    let error = convert(&input, &out, &options).unwrap_err();
    assert!(matches!(error, ConvertError::Overflowed { .. }), "{error}");
}

#[test]
fn shards_that_were_made_elsewhere_are_not_assembled() {
    let folder = folder();
    let data = [0; 4];
    let view = || safetensors::tensor::TensorView::new(safetensors::Dtype::U8, vec![4], &data).unwrap();
    let format = || Some(std::collections::HashMap::from([("format".to_owned(), "pt".to_owned())]));
    for (number, name) in [(1, "a"), (2, "b")] {
        let bytes = safetensors::serialize([(name, view())], format()).unwrap();
        write(&folder, &format!("model-{number:05}-of-00002.safetensors"), &bytes);
    }
    let error = assemble(folder.path()).unwrap_err().to_string();
    assert!(error.contains("--shard-size"), "{error}");
}
