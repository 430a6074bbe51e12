//! A conversion killed again and again, at moments drawn at random, and gone on with each time: what is there at
//! the end is what an undisturbed run makes, to the byte.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::project::{release_program, run, target};
use crate::{Result, synthetic};

/// Kills `kills` runs.
pub(crate) fn kill(kills: u32) -> Result<()> {
    let program = release_program()?;
    let folder = target().join("soak");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    let model = folder.join("model.gguf");
    synthetic::write(&model, 128 << 20)?;
    let convert = |out: &Path| {
        let mut command = Command::new(&program);
        command.arg("convert").args([&model, out]).args(["--shard-size", "64MB", "--quiet"]).stdin(Stdio::null());
        command
    };
    let clean = folder.join("clean");
    let start = Instant::now();
    run(&mut convert(&clean))?;
    let whole = start.elapsed();
    let expected = contents(&clean)?;

    // Moments drawn from the time an undisturbed run takes, by a generator whose seed is the time of day.
    let mut seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.subsec_nanos().max(1);
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 17;
        seed ^= seed << 5;
        f64::from(seed) / f64::from(u32::MAX)
    };
    let (mut killed, mut finished) = (0, 0);
    let out = folder.join("out");
    while killed < kills {
        let mut child = convert(&out).spawn()?;
        std::thread::sleep(Duration::from_secs_f64(whole.as_secs_f64() * random()));
        if child.try_wait()?.is_none() {
            child.kill()?;
            killed += 1;
        }
        child.wait()?;
        // Nothing half-written is ever under a final name: what is there is right already.
        for (name, bytes) in contents(&out)? {
            let partial = name.ends_with(".part") || name == ".gguf2st-run.jsonl";
            if !partial && expected.get(&name) != Some(&bytes) {
                return Err(format!("after {killed} kills {name} is there and wrong").into());
            }
        }
        if contents(&out)? == expected {
            finished += 1;
            std::fs::remove_dir_all(&out)?;
        }
    }
    run(&mut convert(&out))?;
    if contents(&out)? != expected {
        return Err("the last run made other files than an undisturbed one".into());
    }
    println!("{killed} runs killed; {} conversions went on to the end, each the same to the byte", finished + 1);
    Ok(std::fs::remove_dir_all(folder)?)
}

fn contents(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut contents = BTreeMap::new();
    if !folder.exists() {
        return Ok(contents);
    }
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        contents.insert(entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path())?);
    }
    Ok(contents)
}
