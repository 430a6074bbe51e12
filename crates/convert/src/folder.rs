//! A folder of shards: made, gone on with after an interruption, or found complete.
//!
//! While a run goes on, the folder holds a locked run file: a line that says which plan of which sources, then a
//! line a finished shard with its digest. A run that finds one of its own plan and unchanged sources keeps the
//! shards whose digest still matches. At the end the run file goes; a complete folder is known by its files'
//! headers and lengths.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use gguf2st_source::{FileSource, Source as _};
use serde::{Deserialize, Serialize};

use crate::error::ConvertError;
use crate::index;
use crate::model::Model;
use crate::os;
use crate::output::{Existing, Output, PART_SUFFIX, cannot, is_input, names, part_prefix, refuse_full};
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
    // It stays while there is something to go on with: after an error, and where a part of the shards was made of
    // a run that was to make more.
    let covered = run.finished.iter().all(|done| wanted.iter().any(|shard| shard.file == done.file));
    if run.finished.is_empty() || done.is_ok() && covered {
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
    let sources: Vec<_> = model.parts().iter().map(|part| &**part.source()).collect();
    let header = Header { plan: plan.hash(), sources: stamps(model) };
    let others = others(plan, path, run, &header)?;
    if let Some(input) = others.iter().map(|name| path.join(name)).find(|other| is_input(other, &sources)) {
        return Err(ConvertError::OutputIsInput { path: input });
    }
    if !others.is_empty() && options.existing == Existing::Keep {
        return Err(ConvertError::OtherFiles { path: path.into(), files: others });
    }
    remove_stale(plan, path)?;
    let (mut missing, mut report) = (Vec::new(), Report::default());
    for shard in wanted {
        match kept(model, shard, path, options, run, &header)? {
            Some(overflowed) => {
                report.kept += 1;
                report.overflowed.extend(overflowed);
                progress(shard.bytes());
            }
            None => missing.push(*shard),
        }
    }
    refuse_full(path, missing.iter().map(|shard| shard.bytes()).fold(0, u64::saturating_add))?;
    if !missing.is_empty() && run.header.as_ref() != Some(&header) {
        run.begin(header)?;
    }
    for shard in missing {
        let position = plan.shards.iter().position(|other| other.file == shard.file);
        options.current.set(position.map_or(0, |position| position + 1));
        // What is there under this name is this plan's, or was to be replaced.
        let output = Output::create(&path.join(&shard.file), shard.bytes(), Existing::Replace, &sources)?;
        let made = pipeline::make(model, shard, &output, options, true, progress)?;
        output.finish()?;
        report.bytes += shard.bytes();
        report.tensors += shard.tensors.len();
        report.files += 1;
        report.overflowed.extend(made.overflowed.iter().cloned());
        let (file, digest) = (shard.file.clone(), made.digest.unwrap_or_default());
        run.note(Finished { file, digest, overflowed: made.overflowed })?;
    }
    // Not before what takes their place is whole.
    for name in others.iter().filter(|name| !plan.shards.iter().any(|shard| shard.file == **name)) {
        fs::remove_file(path.join(name)).map_err(|error| cannot(&path.join(name), "removing it", error))?;
    }
    // A part of a plan's shards is a part of a model: whoever has them all makes the index.
    if wanted.len() == plan.shards.len() {
        index::write(plan, path)?;
    }
    Ok(report)
}

/// Whether a shard is there as this plan makes it of this model, and then which of its tensors overflowed.
///
/// While a run file tells of it, its digest decides. Without one, shards are known by name, length, header and
/// being younger than the model: they appear whole. Nothing is kept so where it is to be replaced, or where it
/// matters what overflowed.
fn kept(
    model: &Model,
    shard: &Shard,
    path: &Path,
    options: &RunOptions,
    run: &Run,
    header: &Header,
) -> Result<Option<Vec<(String, u64)>>, ConvertError> {
    let file = path.join(&shard.file);
    if run.header.as_ref() == Some(header) {
        let Some(done) = run.finished.iter().rfind(|done| done.file == shard.file) else { return Ok(None) };
        let Ok(found) = FileSource::open(&file) else { return Ok(None) };
        let same = (!options.strict || done.overflowed.is_empty())
            && digest_of(&found, shard, options)?.is_some_and(|digest| digest == done.digest);
        return Ok(same.then(|| done.overflowed.clone()));
    }
    let known = run.header.is_none()
        && options.existing == Existing::Keep
        && !options.strict
        && has_header(shard, &file)
        && is_younger(&file, model);
    Ok(known.then(Vec::new))
}

/// Whether a file was changed last after every part of a model was, as far as this machine knows.
fn is_younger(file: &Path, model: &Model) -> bool {
    let modified = |path: &Path| fs::metadata(path).and_then(|found| found.modified());
    let Ok(made) = modified(file) else { return false };
    model.parts().iter().all(|part| modified(part.source().name()).map_or(true, |changed| changed <= made))
}

/// The shards that were asked for, in order and each once; all of them where none were.
fn wanted<'p>(plan: &'p Plan, options: &RunOptions) -> Result<Vec<&'p Shard>, ConvertError> {
    let Some(numbers) = &options.only_shards else { return Ok(plan.shards.iter().collect()) };
    let count = plan.shards.len();
    let numbers: BTreeSet<usize> = numbers.iter().copied().collect();
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
            Some(shard) => vouched(&name) || has_header(shard, &path.join(&name)),
            None => name == INDEX_FILE && index::is_there(plan, path),
        };
        if !ours {
            others.push(name);
        }
    }
    Ok(others)
}

/// Whether a file has a shard's length and header. What can't be read has not.
fn has_header(shard: &Shard, path: &Path) -> bool {
    FileSource::open(path).is_ok_and(|file| {
        file.len() == shard.bytes() && file.read(0..shard.head.len() as u64).is_ok_and(|head| head == shard.head)
    })
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
    overflowed: Vec<(String, u64)>,
}

/// The run file, locked.
pub(crate) struct Run {
    path: PathBuf,
    file: File,
    header: Option<Header>,
    finished: Vec<Finished>,
}

impl Run {
    /// Opens or creates a folder's run file and locks it.
    pub(crate) fn lock(folder: &Path) -> Result<Self, ConvertError> {
        let path = folder.join(RUN_FILE);
        let failed = |action| move |error| cannot(&folder.join(RUN_FILE), action, error);
        loop {
            let mut file = os::open_here(&path).map_err(failed("opening it"))?;
            let found = file.metadata().map_err(failed("looking at it"))?;
            if !found.is_file() {
                return Err(ConvertError::BadOutput { path, reason: "it is there and no regular file" });
            }
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(ConvertError::Busy { path: folder.into() }),
                Err(TryLockError::Error(error)) => return Err(failed("locking it")(error)),
            }
            // A run that ended between the opening and the lock has removed the name of what is locked here.
            if !os::is_named(&found, &path) {
                continue;
            }
            let mut text = String::new();
            // What is no text is no run file of ours, and begins anew.
            let _ = file.read_to_string(&mut text);
            let mut run = Self { path, file, header: None, finished: Vec::new() };
            // A kill may have cut the last line short: what follows goes behind the last that is whole.
            let mut whole = 0;
            for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
                if run.header.is_none() {
                    run.header = serde_json::from_str(line).ok();
                } else {
                    run.finished.extend(serde_json::from_str::<Finished>(line).ok());
                }
                whole += line.len() as u64;
            }
            let cut = run.file.set_len(whole).and_then(|()| run.file.seek(SeekFrom::Start(whole)));
            cut.map_err(|error| cannot(&run.path, "cutting it", error))?;
            return Ok(run);
        }
    }

    /// Whether a run is under way or was interrupted.
    pub(crate) fn is_begun(&self) -> bool {
        self.header.is_some()
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

    pub(crate) fn remove(&self) -> Result<(), ConvertError> {
        fs::remove_file(&self.path).map_err(|error| cannot(&self.path, "removing it", error))
    }
}
