use gguf2st_convert::ConvertError;
use gguf2st_gguf::ByteOrder;

use crate::support::{convert, folder, mixed, names, raw, replacing, write};

#[test]
fn an_existing_file_stays_unless_it_is_to_be_replaced() {
    let folder = folder();
    let input = write(&folder, "in.gguf", &mixed(ByteOrder::Little));
    let output = write(&folder, "out", b"precious");
    let error = convert(&input, &output, &raw()).unwrap_err();
    assert!(matches!(error, ConvertError::OutputExists { .. }), "{error}");
    assert_eq!(std::fs::read(&output).unwrap(), b"precious");

    convert(&input, &output, &replacing(raw())).unwrap();
    assert_ne!(std::fs::read(&output).unwrap(), b"precious");
    assert_eq!(names(&folder), ["in.gguf", "out"]);
}

#[cfg(unix)]
#[test]
fn an_output_that_is_the_input_is_refused_by_any_name() {
    let folder = folder();
    let container = mixed(ByteOrder::Little);
    let input = write(&folder, "in.gguf", &container);
    let (soft, hard) = (folder.path().join("soft"), folder.path().join("hard"));
    std::os::unix::fs::symlink(&input, &soft).unwrap();
    std::fs::hard_link(&input, &hard).unwrap();
    for output in [&input, &soft, &hard] {
        let error = convert(&input, output, &replacing(raw())).unwrap_err();
        assert!(matches!(error, ConvertError::OutputIsInput { .. }), "{error}");
    }
    assert_eq!(std::fs::read(&input).unwrap(), container);
}

#[test]
fn what_can_not_take_a_file_is_told_before_anything_is_written() {
    let folder = folder();
    let input = write(&folder, "in.gguf", &mixed(ByteOrder::Little));
    let force = replacing(raw());
    let into = |output: &str| convert(&input, &folder.path().join(output), &force).unwrap_err();
    std::fs::create_dir(folder.path().join("folder")).unwrap();
    assert!(matches!(into("folder"), ConvertError::BadOutput { .. }));
    assert!(matches!(into("absent/out"), ConvertError::Write { .. }));
    assert!(matches!(into("in.gguf/out"), ConvertError::Write { .. } | ConvertError::BadOutput { .. }));
    assert_eq!(names(&folder), ["folder", "in.gguf"]);
    #[cfg(unix)]
    {
        let error = convert(&input, std::path::Path::new("/dev/null"), &force).unwrap_err();
        assert!(matches!(error, ConvertError::BadOutput { .. }), "{error}");
    }
}

#[cfg(unix)]
#[test]
fn the_file_gets_the_mode_that_any_new_file_gets() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let input = write(&folder, "in.gguf", &mixed(ByteOrder::Little));
    let output = folder.path().join("n".repeat(250));
    convert(&input, &output, &raw()).unwrap();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&output), mode(&input));
}
