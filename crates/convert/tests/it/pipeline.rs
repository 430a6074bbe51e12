//! What is in flight, shown by counts: a source that notes when a load is asked for, and a writer that can be
//! held up.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use bytes::Bytes;
use gguf2st_convert::{ConvertError, Model};
use gguf2st_gguf::GgmlType;
use gguf2st_gguf::write::Builder;
use gguf2st_source::{BoxFuture, FileSource, Source, SourceError};

use crate::support::{Options, folder, to, write};

/// Long enough for any machine; only a fault waits for it.
const NEVER: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
struct Ledger {
    /// Loads and bytes asked for.
    asked: Mutex<(usize, u64)>,
    changed: Condvar,
    written: AtomicU64,
    most_loads: AtomicU64,
    most_bytes: AtomicU64,
}

impl Ledger {
    fn ask(&self, bytes: u64) {
        let mut asked = self.asked.lock().unwrap();
        asked.0 += 1;
        asked.1 += bytes;
        let in_flight = asked.1 - self.written.load(Ordering::SeqCst);
        self.most_bytes.fetch_max(in_flight, Ordering::SeqCst);
        self.most_loads.fetch_max(in_flight.div_ceil(LOAD), Ordering::SeqCst);
        self.changed.notify_all();
    }

    fn wait_for_loads(&self, loads: usize) {
        let asked = self.asked.lock().unwrap();
        let (asked, timeout) = self.changed.wait_timeout_while(asked, NEVER, |asked| asked.0 < loads).unwrap();
        assert!(!timeout.timed_out(), "{} loads asked for, {loads} expected", asked.0);
    }
}

#[derive(Debug)]
struct Noted {
    inner: FileSource,
    ledger: Arc<Ledger>,
    remote: bool,
}

impl Source for Noted {
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn name(&self) -> &Path {
        self.inner.name()
    }
    fn read_into(&self, offset: u64, buf: &mut [u8]) -> Result<(), SourceError> {
        self.ledger.ask(buf.len() as u64);
        self.inner.read_into(offset, buf)
    }
    fn fetch(&self, range: Range<u64>) -> Option<BoxFuture<'_, Result<Bytes, SourceError>>> {
        self.remote.then(|| {
            Box::pin(async move {
                self.ledger.ask(range.end - range.start);
                tokio::task::yield_now().await;
                self.inner.read(range)
            }) as _
        })
    }
    fn intact(&self) -> Result<(), SourceError> {
        self.inner.intact()
    }
}

/// Bytes of a load with the budget below.
const LOAD: u64 = 256 << 10;
const BUDGET: u64 = 4 * LOAD;

/// A model of 8 MiB in one tensor whose bytes are copied, so that what is read and what is written count alike.
fn model(folder: &tempfile::TempDir, remote: bool) -> (Model, Arc<Ledger>) {
    let container =
        Builder::new().tensor("large", &[1 << 20, 2], GgmlType::F32).container(|_, bytes| bytes.fill(1)).unwrap();
    let inner = FileSource::open(write(folder, "in.gguf", &container)).unwrap();
    let ledger = Arc::new(Ledger::default());
    let model = Model::open(Arc::new(Noted { inner, ledger: Arc::clone(&ledger), remote })).unwrap();
    *ledger.asked.lock().unwrap() = (0, 0);
    ledger.most_bytes.store(0, Ordering::SeqCst);
    ledger.most_loads.store(0, Ordering::SeqCst);
    (model, ledger)
}

fn options(prefetch: usize) -> Options {
    let mut options = to(gguf2st_convert::Values::Auto);
    options.run.threads = NonZeroUsize::new(2);
    options.run.prefetch = NonZeroUsize::new(prefetch).unwrap();
    options.run.memory = BUDGET;
    options
}

#[test]
fn never_more_in_flight_than_slots_and_bytes() {
    for remote in [false, true] {
        for (prefetch, most) in [(1, 1), (3, 3), (64, 4)] {
            let folder = folder();
            let (model, ledger) = model(&folder, remote);
            let options = options(prefetch);
            let plan = model.plan(&options.plan).unwrap();
            let header = AtomicU64::new(plan.shards[0].head.len() as u64);
            model
                .convert(&plan, &folder.path().join("out"), &options.run, &|bytes| {
                    let header = header.swap(0, Ordering::SeqCst);
                    ledger.written.fetch_add(bytes - header, Ordering::SeqCst);
                })
                .unwrap();
            let (loads, bytes) = *ledger.asked.lock().unwrap();
            assert_eq!((loads, bytes), (32, 8 << 20));
            assert!(ledger.most_loads.load(Ordering::SeqCst) <= most, "{remote} {prefetch}: {ledger:?}");
            assert!(ledger.most_bytes.load(Ordering::SeqCst) <= BUDGET, "{remote} {prefetch}: {ledger:?}");
        }
    }
}

#[test]
fn the_next_loads_are_fetched_while_one_is_written() {
    for remote in [false, true] {
        let folder = folder();
        let (model, ledger) = model(&folder, remote);
        let mut options = options(3);
        options.run.threads = NonZeroUsize::new(1);
        let plan = model.plan(&options.plan).unwrap();
        let tiles = AtomicU64::new(0);
        model
            .convert(&plan, &folder.path().join("out"), &options.run, &|_| {
                // The header is the first; then the first tile is not done before two more loads are asked for.
                if tiles.fetch_add(1, Ordering::SeqCst) == 1 {
                    ledger.wait_for_loads(3);
                    assert_eq!(ledger.asked.lock().unwrap().0, 3);
                }
            })
            .unwrap();
    }
}

#[test]
fn a_stop_ends_it_and_leaves_nothing() {
    let folder = folder();
    let (model, _) = model(&folder, false);
    let options = options(2);
    let plan = model.plan(&options.plan).unwrap();
    let stop = options.run.stop.clone();
    let error = model.convert(&plan, &folder.path().join("out"), &options.run, &|_| stop.request()).unwrap_err();
    assert!(matches!(error, ConvertError::Interrupted), "{error}");
    assert_eq!(crate::support::names(&folder), ["in.gguf"]);
}

/// A source that never answers.
#[derive(Debug)]
struct Hanging(FileSource);

impl Source for Hanging {
    fn len(&self) -> u64 {
        self.0.len()
    }
    fn name(&self) -> &Path {
        self.0.name()
    }
    fn read_into(&self, offset: u64, buf: &mut [u8]) -> Result<(), SourceError> {
        self.0.read_into(offset, buf)
    }
    fn fetch(&self, _: Range<u64>) -> Option<BoxFuture<'_, Result<Bytes, SourceError>>> {
        Some(Box::pin(std::future::pending()))
    }
    fn intact(&self) -> Result<(), SourceError> {
        self.0.intact()
    }
}

#[test]
fn a_source_that_hangs_can_be_stopped() {
    let folder = folder();
    let container = Builder::new().tensor("a", &[4], GgmlType::F32).container(|_, _| ()).unwrap();
    let source = Hanging(FileSource::open(write(&folder, "in.gguf", &container)).unwrap());
    let model = Model::open(Arc::new(source)).unwrap();
    let options = options(2);
    let plan = model.plan(&options.plan).unwrap();
    let stop = options.run.stop.clone();
    let error = std::thread::scope(|scope| {
        scope.spawn(|| stop.request());
        model.convert(&plan, &folder.path().join("out"), &options.run, &|_| ()).unwrap_err()
    });
    assert!(matches!(error, ConvertError::Interrupted), "{error}");
    assert_eq!(crate::support::names(&folder), ["in.gguf"]);
}

/// A source whose fetches of the first load fail in a way of their own, and whose others never end.
#[derive(Debug)]
struct Faulty {
    inner: FileSource,
    panics: bool,
}

impl Source for Faulty {
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn name(&self) -> &Path {
        self.inner.name()
    }
    fn read_into(&self, offset: u64, buf: &mut [u8]) -> Result<(), SourceError> {
        self.inner.read_into(offset, buf)
    }
    fn fetch(&self, range: Range<u64>) -> Option<BoxFuture<'_, Result<Bytes, SourceError>>> {
        let first = range.start < LOAD;
        Some(Box::pin(async move {
            if !first {
                std::future::pending::<()>().await;
            }
            assert!(!self.panics, "as a source of somebody else's might");
            let error = std::io::ErrorKind::ConnectionReset.into();
            Err(SourceError::Read { path: self.name().into(), range, error })
        }))
    }
    fn intact(&self) -> Result<(), SourceError> {
        self.inner.intact()
    }
}

#[test]
fn a_failure_is_told_while_other_fetches_hang_and_leaves_nothing() {
    for panics in [false, true] {
        let folder = folder();
        let container =
            Builder::new().tensor("large", &[1 << 20], GgmlType::F32).container(|_, bytes| bytes.fill(1)).unwrap();
        let inner = FileSource::open(write(&folder, "in.gguf", &container)).unwrap();
        let model = Model::open(Arc::new(Faulty { inner, panics })).unwrap();
        let options = options(3);
        let plan = model.plan(&options.plan).unwrap();
        let error = model.convert(&plan, &folder.path().join("out"), &options.run, &|_| ()).unwrap_err();
        match (panics, &error) {
            (false, ConvertError::Source(SourceError::Read { .. })) | (true, ConvertError::Panicked(_)) => {}
            _ => panic!("{error}"),
        }
        assert_eq!(crate::support::names(&folder), ["in.gguf"]);
    }
}

#[test]
fn any_number_of_slots_can_be_asked_for() {
    let folder = folder();
    let (model, _) = model(&folder, false);
    let mut options = options(1);
    options.run.prefetch = NonZeroUsize::MAX;
    options.run.memory = u64::MAX;
    let plan = model.plan(&options.plan).unwrap();
    model.convert(&plan, &folder.path().join("out"), &options.run, &|_| ()).unwrap();
}
