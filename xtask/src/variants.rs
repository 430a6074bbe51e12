//! One model, converted by every way there is: whatever the source, the threads, the budget, the depth of prefetch
//! or the size of shards, the bytes of every tensor are the same.

use std::path::Path;

use crate::Result;
use crate::project::{command, output, target};
use crate::ranges;

/// Converts `model` in each way and holds the results against each other.
pub(crate) fn check(program: &Path, model: &Path) -> Result<()> {
    let folder = target().join("variants");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    let convert = |out: &Path, options: &[&str]| {
        let mut convert = command(program);
        convert.args(["convert", "--quiet"]).args([model, out]).args(options);
        output(&mut convert).map(|_| ())
    };
    let first = folder.join("first.safetensors");
    convert(&first, &[])?;
    let expected = std::fs::read(&first)?;
    let other = folder.join("other.safetensors");
    for options in [
        &["--source", "mmap"][..],
        &["--threads", "1"],
        &["--threads", "5"],
        &["--memory", "1MiB"],
        &["--memory", "1MiB", "--prefetch", "1", "--source", "mmap"],
        &["--prefetch", "64"],
    ] {
        convert(&other, options)?;
        if std::fs::read(&other)? != expected {
            return Err(format!("with {} other bytes come out", options.join(" ")).into());
        }
        std::fs::remove_file(&other)?;
    }
    // And from a web server, under the same name, which is part of the output.
    let remote = ranges::serve(model)?;
    let named = folder.join("model.gguf");
    std::fs::copy(model, &named)?;
    let mut outputs = Vec::new();
    for source in [named.as_os_str(), remote.as_ref()] {
        let mut convert = command(program);
        output(convert.args(["convert", "--quiet", "--force", "--memory", "16MiB"]).arg(source).arg(&other))?;
        outputs.push(std::fs::read(&other)?);
    }
    if outputs[0] != outputs[1] {
        return Err("from a web server other bytes come out".into());
    }
    drop(outputs);
    for size in ["40MB", "300MiB"] {
        let shards = folder.join("shards");
        convert(&shards, &["--shard-size", size])?;
        let mut verify = command(program);
        verify.arg("verify").arg(&shards).arg("--against").arg(model);
        println!("{size} a shard: {}", output(&mut verify)?.trim());
        std::fs::remove_dir_all(&shards)?;
    }
    Ok(std::fs::remove_dir_all(folder)?)
}
