//! A folder of shards: made, gone on with after an interruption, or found complete.
//!
//! While a run goes on, the folder holds a locked run file: a line that says which plan of which sources, then a
//! line a finished shard with its digest. A run that finds one of its own plan and unchanged sources keeps the
//! shards whose digest still matches. At the end the run file goes; a complete folder is known by its files'
//! headers and lengths.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use gguf2st_source::FileSource;
use serde::{Deserialize, Serialize};

use crate::error::ConvertError;
use crate::index;
use crate::model::Model;
use crate::os;
use crate::output::{Existing, Output, PART_SUFFIX, cannot, names, part_prefix, refuse_full};
use crate::pipeline::{self, Report, RunOptions, digest_of};
use crate::plan::{INDEX_FILE, Plan, Shard, is_output_name};

/// The file that is there while a run goes on.
pub(crate) const RUN_FILE: &str = ".gguf2st-run.jsonl";

/// Makes the shards of a plan in a folder, or those of them that are wanted.
pub(crate) fn convert(
    model: &Model,
    plan: &Plan,
    path: &Path,
    options: &RunOptions,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Report, ConvertError> {
    let wanted = wanted(plan, options)?;
    fs::create_dir_all(path).map_err(|error| cannot(path, "creating the folder", error))?;
    let mut run = Run::lock(path)?;
    let done = make(model, plan, path, options, progress, &wanted, &mut run);
    // After an error the run file stays where there is something to go on with.
    if done.is_ok() || run.finished.is_empty() {
        run.remove()?;
    }
    done
}

fn make(
    model: &Model,
    plan: &Plan,
    path: &Path,
    options: &RunOptions,
    progress: &(dyn Fn(u64) + Sync),
    wanted: &[&Shard],
    run: &mut Run,
) -> Result<Report, ConvertError> {
    let header = Header { plan: plan.hash(), sources: stamps(model) };
    let same_run = run.header.as_ref() == Some(&header);
    let others = others(plan, path, run, &header)?;
    if !others.is_empty() && options.existing == Existing::Keep {
        return Err(ConvertError::OtherFiles { path: path.into(), files: others });
    }
    remove_stale(plan, path)?;
    if wanted.len() == plan.shards.len() && run.header.is_none() && is_complete(plan, path)? {
        return Ok(Report { kept: plan.shards.len(), ..Report::default() });
    }
    let mut missing = Vec::new();
    let mut report = Report::default();
    for shard in wanted {
        let kept = same_run && run.finished.iter().any(|done| done.file == shard.file) && {
            let digest = match FileSource::open(path.join(&shard.file)) {
                Ok(file) => digest_of(&file, shard, options)?,
                Err(_) => None,
            };
            digest
                .is_some_and(|digest| run.finished.iter().any(|done| done.file == shard.file && done.digest == digest))
        };
        if kept {
            report.kept += 1;
            progress(shard.bytes());
        } else {
            missing.push(*shard);
        }
    }
    refuse_full(path, missing.iter().map(|shard| shard.bytes()).fold(0, u64::saturating_add))?;
    for name in &others {
        fs::remove_file(path.join(name)).map_err(|error| cannot(&path.join(name), "removing it", error))?;
    }
    if !same_run {
        run.begin(header)?;
    }
    for shard in missing {
        let sources: Vec<_> = model.parts().iter().map(|part| &**part.source()).collect();
        // What is there under this name is this plan's, or was to be replaced.
        let output = Output::create(&path.join(&shard.file), shard.bytes(), Existing::Replace, &sources)?;
        let made = pipeline::make(model, shard, &output, options, true, progress)?;
        output.finish()?;
        report.bytes += shard.bytes();
        report.tensors += shard.tensors.len();
        report.files += 1;
        report.overflowed.extend(made.overflowed);
        run.note(Finished { file: shard.file.clone(), digest: made.digest.unwrap_or_default() })?;
    }
    // A part of a plan's shards is a part of a model: whoever has them all makes the index.
    if wanted.len() == plan.shards.len() {
        index::write(plan, path)?;
    }
    Ok(report)
}

/// The shards that were asked for, in order; all of them where none were.
fn wanted<'p>(plan: &'p Plan, options: &RunOptions) -> Result<Vec<&'p Shard>, ConvertError> {
    let Some(numbers) = &options.only_shards else { return Ok(plan.shards.iter().collect()) };
    let count = plan.shards.len();
    let shard = |number: &usize| {
        let shard = number.checked_sub(1).and_then(|position| plan.shards.get(position));
        shard.ok_or(ConvertError::NoSuchShard { shard: *number, count })
    };
    numbers.iter().map(shard).collect()
}

/// Files that bear names as conversions write them and are not this plan's.
fn others(plan: &Plan, path: &Path, run: &Run, header: &Header) -> Result<Vec<String>, ConvertError> {
    // A run file of this plan vouches for what it lists, even where the sources have changed since.
    let vouched = |name: &str| {
        run.header.as_ref().is_some_and(|found| found.plan == header.plan)
            && run.finished.iter().any(|done| done.file == name)
    };
    let mut others = Vec::new();
    for name in names(path)?.into_iter().filter(|name| is_output_name(name)) {
        let ours = match plan.shards.iter().find(|shard| shard.file == name) {
            Some(shard) => vouched(&name) || has_header(shard, &path.join(&name))?,
            None => name == INDEX_FILE && fs::read(path.join(&name)).is_ok_and(|found| found == index::bytes(plan)),
        };
        if !ours {
            others.push(name);
        }
    }
    Ok(others)
}

/// Whether a file has a shard's length and header.
fn has_header(shard: &Shard, path: &Path) -> Result<bool, ConvertError> {
    let read = || -> io::Result<bool> {
        let mut file = File::open(path)?;
        let mut head = vec![0; shard.head.len()];
        Ok(file.metadata()?.len() == shard.bytes() && file.read_exact(&mut head).is_ok() && head == shard.head)
    };
    read().map_err(|error| cannot(path, "looking at it", error))
}

/// Whether every file of a plan is there, by length and header. Files appear whole and under a lock, so that is
/// enough to know them by.
fn is_complete(plan: &Plan, path: &Path) -> Result<bool, ConvertError> {
    for shard in &plan.shards {
        let file = path.join(&shard.file);
        if !file.is_file() || !has_header(shard, &file)? {
            return Ok(false);
        }
    }
    Ok(plan.shards.len() == 1 || fs::read(path.join(INDEX_FILE)).is_ok_and(|found| found == index::bytes(plan)))
}

/// Removes temporary files that a killed run of this plan left; the lock says that it is gone.
fn remove_stale(plan: &Plan, path: &Path) -> Result<(), ConvertError> {
    let prefixes: Vec<_> = plan
        .shards
        .iter()
        .map(|shard| shard.file.as_str())
        .chain([INDEX_FILE])
        .map(|file| part_prefix(file.as_ref()))
        .collect();
    for name in names(path)? {
        let of_plan = prefixes.iter().any(|prefix| name.as_bytes().starts_with(prefix.as_encoded_bytes()));
        if of_plan && name.ends_with(PART_SUFFIX) {
            fs::remove_file(path.join(&name)).map_err(|error| cannot(&path.join(&name), "removing it", error))?;
        }
    }
    Ok(())
}

/// What each source was when it was opened: to know whether it still is.
fn stamps(model: &Model) -> Vec<Stamp> {
    let parts = model.parts().iter();
    let stamp = |part: &crate::Part| Stamp { bytes: part.source().len(), version: part.source().version() };
    parts.map(stamp).collect()
}

/// The run file's first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    plan: String,
    sources: Vec<Stamp>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    bytes: u64,
    version: String,
}

/// A line of the run file: a shard that is whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Finished {
    file: String,
    digest: String,
}

/// The run file, locked.
struct Run {
    path: PathBuf,
    file: File,
    header: Option<Header>,
    finished: Vec<Finished>,
}

impl Run {
    /// Opens or creates a folder's run file and locks it.
    fn lock(folder: &Path) -> Result<Self, ConvertError> {
        let path = folder.join(RUN_FILE);
        loop {
            let failed = |action| move |error| cannot(&folder.join(RUN_FILE), action, error);
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false);
            let mut file = options.open(&path).map_err(failed("creating it"))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(ConvertError::Busy { path: folder.into() }),
                Err(TryLockError::Error(error)) => return Err(failed("locking it")(error)),
            }
            // A run that ended between the opening and the lock has removed the name of what is locked here.
            let found = file.metadata().map_err(failed("looking at it"))?;
            if fs::metadata(&path).is_ok_and(|named| os::same_file(&found, &named)) {
                let mut text = String::new();
                // What is no text is no run file of ours, and begins anew.
                let _ = file.read_to_string(&mut text);
                let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
                let header = lines.next().and_then(|line| serde_json::from_str(line).ok());
                let finished = lines.map_while(|line| serde_json::from_str(line).ok()).collect();
                return Ok(Self { path, file, header, finished });
            }
        }
    }

    /// Begins anew, for a plan.
    fn begin(&mut self, header: Header) -> Result<(), ConvertError> {
        self.finished.clear();
        let empty = self.file.set_len(0).and_then(|()| self.file.seek(SeekFrom::Start(0)).map(|_| ()));
        empty.map_err(|error| cannot(&self.path, "emptying it", error))?;
        self.line(&header)?;
        self.header = Some(header);
        Ok(())
    }

    fn note(&mut self, finished: Finished) -> Result<(), ConvertError> {
        self.line(&finished)?;
        self.finished.push(finished);
        Ok(())
    }

    /// A line is whole when its newline is there.
    fn line(&mut self, line: &impl Serialize) -> Result<(), ConvertError> {
        let mut bytes = serde_json::to_vec(line).unwrap_or_default();
        bytes.push(b'\n');
        let written = self.file.write_all(&bytes).and_then(|()| self.file.sync_data());
        written.map_err(|error| cannot(&self.path, "writing", error))
    }

    fn remove(&self) -> Result<(), ConvertError> {
        fs::remove_file(&self.path).map_err(|error| cannot(&self.path, "removing it", error))
    }
}
