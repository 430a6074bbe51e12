//! What a conversion takes in memory, and that it does not grow with the model: two synthetic models converted by
//! the optimised program, each in a process of its own.

use std::process::{Command, Stdio};

use crate::project::{python, release_program, target};
use crate::{Result, synthetic};

/// Runs a command given behind it and prints its exit status, peak resident KiB, minor and major page faults, user
/// and system seconds: what the operating system says of a child that has ended, which Rust's library does not.
const MEASURE: &str = "
import os, sys, resource, time
start = time.monotonic()
pid = os.spawnvp(os.P_NOWAIT, sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss, usage.ru_minflt, usage.ru_majflt,
      f'{usage.ru_utime:.2f} {usage.ru_stime:.2f} {time.monotonic() - start:.2f}')
";

/// Prints a table row a model and way of reading.
pub(crate) fn measure(sizes: &[u64]) -> Result<()> {
    let program = release_program()?;
    let folder = target().join("memory");
    std::fs::create_dir_all(&folder)?;
    let (model, out) = (folder.join("model.gguf"), folder.join("out.safetensors"));
    println!(
        "| model | output | reads by | budget | peak resident | minor faults | major faults | user | system | wall |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for size in sizes {
        synthetic::write(&model, *size)?;
        for source in ["read", "mmap"] {
            let measured = Command::new(python()?)
                .args(["-c", MEASURE])
                .arg(&program)
                .arg("convert")
                .args([&model, &out])
                .args(["--quiet", "--memory", "64MiB", "--source", source])
                .stdin(Stdio::null())
                .stderr(Stdio::inherit())
                .output()?;
            let text = String::from_utf8(measured.stdout)?;
            let figures: Vec<&str> = text.split_whitespace().collect();
            let ["0", peak, minor, major, user, system, wall] = figures[..] else {
                return Err(format!("the conversion of {size} bytes by {source} ended so: {text}").into());
            };
            let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
            let output = std::fs::metadata(&out)?.len();
            std::fs::remove_file(&out)?;
            println!(
                "| {:.2} GiB | {:.2} GiB | {source} | 64 MiB | {:.1} MiB | {minor} | {major} | {user} s | {system} s | {wall} s |",
                gib(std::fs::metadata(&model)?.len()),
                gib(output),
                peak.parse::<f64>()? / 1024.0,
            );
        }
    }
    Ok(std::fs::remove_dir_all(folder)?)
}
