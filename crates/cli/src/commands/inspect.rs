//! `gguf2st inspect MODEL`, and `gguf2st MODEL`

use std::io::{self, Write};
use std::path::Path;

use gguf2st_convert::{Model, Stats};
use gguf2st_gguf::Verdict;
use gguf2st_source::EscapedPath;

use super::values;
use crate::args::{GlobalArgs, InspectArgs};
use crate::error::{Failure, Outcome};
use crate::open::Given;
use crate::query::Query;
use crate::render::inspect::{View, write_inspected_json, write_text};
use crate::render::progress::Progress;
use crate::render::{Extent, Look, Out, report};

/// A model to look at.
struct Job {
    given: Given,
    json: bool,
    /// Whether the values themselves are looked at.
    stats: bool,
    view: View,
}

impl Job {
    fn new(given: Given, args: InspectArgs) -> Self {
        Self {
            given,
            json: args.json,
            stats: args.stats,
            view: View {
                tensors: args.tensors || args.stats,
                stats: None,
                query: args.query.as_deref().map(Query::new),
                extent: if args.full { Extent::Full } else { Extent::Brief },
            },
        }
    }
}

pub(super) fn run(mut args: InspectArgs, global: GlobalArgs, out: &mut Out) -> Result<Outcome, Failure> {
    // `Args::read` lets no line without a model through; an empty path is one that does not exist.
    let given = Given::parse(args.model.take().unwrap_or_default())?;
    if let Some(name) = args.values.take() {
        return values::run(&given, &name, args.count, args.json, out);
    }
    let mut job = Job::new(given, args);
    let model = job.given.to_look_at()?;
    if job.stats {
        job.view.stats = Some(stats(&model, global)?);
    }
    let look = out.look();
    job.write(&model, look, out).map_err(Failure::output)?;
    // What was shown is what the file says only if nobody changed it meanwhile.
    model.intact()?;
    if !global.quiet {
        out.finish()?;
        warn_of_faults(job.given.name(), &model);
    }
    Ok(Outcome::Done)
}

impl Job {
    fn write(&self, model: &Model, look: Look, out: &mut impl Write) -> io::Result<()> {
        if self.json {
            write_inspected_json(out, self.given.name(), model, &self.view)
        } else {
            write_text(out, look, self.given.name(), model, &self.view)
        }
    }
}

/// The statistics of every tensor, in file order; with progress.
pub(super) fn stats(model: &Model, global: GlobalArgs) -> Result<Vec<Option<Stats>>, Failure> {
    let progress = Progress::new("decoding", model.stats_bytes()?, global);
    let stats = model.stats(None, &|bytes| progress.advance(bytes))?;
    progress.finish();
    Ok(stats)
}

/// A head that can be read may still tell of data that can't be, and of parts that are not there: what was shown must
/// not look sound then.
fn warn_of_faults(path: &Path, model: &Model) {
    if let Some(fault) = model.fault() {
        report::warning(format_args!("{}: {fault}", EscapedPath(path)));
    }
    for part in model.parts() {
        let path = if model.parts().len() > 1 { part.source().name() } else { path };
        for check in part.file().check().into_iter().filter(|check| check.verdict == Verdict::Fail) {
            report::warning(format_args!("{}: {}: {}", EscapedPath(path), check.name, check.detail));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::path::PathBuf;
    use std::sync::Arc;

    use gguf2st_gguf::write::Builder;
    use gguf2st_source::{CountingSource, FileSource, Source};

    fn job(path: &Path, json: bool) -> Job {
        let view = View { tensors: true, stats: None, query: None, extent: Extent::Full };
        Job { given: Given::parse(path).unwrap(), json, stats: false, view }
    }

    fn model_file() -> (tempfile::TempDir, PathBuf) {
        let mut builder = Builder::new().metadata("general.architecture", "llama");
        for block in 0..1000 {
            builder = builder.tensor(format!("blk.{block}.attn_q.weight"), &[4], gguf2st_gguf::GgmlType::F32);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.gguf");
        fs::write(&path, builder.container(|_, _| ()).unwrap()).unwrap();
        (folder, path)
    }

    #[test]
    fn a_file_cut_short_after_opening_is_an_error() {
        for json in [false, true] {
            let (_folder, path) = model_file();
            let model = Given::parse(&path).unwrap().to_look_at().unwrap();
            File::options().write(true).open(&path).unwrap().set_len(100).unwrap();
            let mut out = Vec::new();
            // Zeros where the head was: whatever is made of them, it is not called done.
            job(&path, json).write(&model, Look::default(), &mut out).unwrap();
            let error = model.source().intact().unwrap_err().to_string();
            assert!(error.contains("cut short"), "{error}");
        }
    }

    #[test]
    fn rendering_reads_nothing() {
        let (_folder, path) = model_file();
        let source = Arc::new(CountingSource::new(FileSource::open(&path).unwrap()));
        let model = Model::open(Arc::clone(&source) as Arc<dyn Source>).unwrap();
        source.reset();
        for json in [false, true] {
            job(&path, json).write(&model, Look::default(), &mut Vec::new()).unwrap();
        }
        warn_of_faults(&path, &model);
        assert_eq!(source.requests(), 0);
    }
}
