//! Fetch, decode, write: each stage bounded, each held back by the next.
//!
//! ```text
//!  loads ─► fetch (async, or on threads that may block) ─► bounded channel ─► decode and write (all cores)
//!             │ a slot and its bytes taken                                         │ and given back
//!             └──────────────────────────◄─────────────────────────────────────────┘
//! ```
//!
//! A load holds a slot (`prefetch`) and its bytes of the budget (`memory`) from before it is fetched until its
//! last tile is written, so what is in flight is bounded by two numbers, whatever the model's size.

use std::num::NonZeroUsize;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use gguf2st_source::{Source, SourceError};
use sha2::{Digest, Sha256};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;

use crate::cores::{on_all_cores, threads};
use crate::error::ConvertError;
use crate::model::Model;
use crate::output::Output;
use crate::plan::{Shard, Step, hex};
use crate::tile::{Load, Maker, Tile, loads, tiles};

/// How a plan is carried out. None of it changes a byte of the output.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Refuse finite values that become infinite in F16 or BF16.
    pub strict: bool,
    /// What may happen to files that are there already.
    pub existing: crate::Existing,
    /// Threads that decode and write; all cores where it is not said.
    pub threads: Option<NonZeroUsize>,
    /// Loads that are fetched, or being fetched, before they are decoded.
    pub prefetch: NonZeroUsize,
    /// Bytes of the source in flight at the most.
    pub memory: u64,
    /// The shards to make, by number from one; all of them where it is not said.
    pub only_shards: Option<Vec<usize>>,
    /// Tells which shard is being made.
    pub current: CurrentShard,
    /// Ends the run early.
    pub stop: Stop,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            strict: false,
            existing: crate::Existing::Keep,
            threads: None,
            prefetch: NonZeroUsize::MIN.saturating_add(7),
            memory: 256 << 20,
            only_shards: None,
            current: CurrentShard::default(),
            stop: Stop::default(),
        }
    }
}

/// What a conversion did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Bytes of the files written.
    pub bytes: u64,
    /// Tensors in them.
    pub tensors: usize,
    /// Files written.
    pub files: usize,
    /// Files that were there already, as this plan makes them.
    pub kept: usize,
    /// Tensors in which finite values became infinite, and how many, in the order of the files.
    pub overflowed: Vec<(String, u64)>,
}

/// Bytes of a load where reads are local: enough that a system call costs nothing against it.
const LOCAL_LOAD: u64 = 1 << 20;

/// Bytes of a load across a network: enough that a request's delay costs little against it.
const REMOTE_LOAD: u64 = 8 << 20;

/// The number of the shard that is being made, for whoever shows progress. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct CurrentShard(Arc<AtomicUsize>);

impl CurrentShard {
    /// The number, from one; `None` before the first and where there is one file.
    #[must_use]
    pub fn get(&self) -> Option<usize> {
        Some(self.0.load(Ordering::Relaxed)).filter(|number| *number > 0)
    }

    pub(crate) fn set(&self, number: usize) {
        self.0.store(number, Ordering::Relaxed);
    }
}

/// A wish to end a run early. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<(AtomicBool, Notify)>);

impl Stop {
    /// Ends the run: no more is fetched, and what is not whole is removed.
    pub fn request(&self) {
        self.0.0.store(true, Ordering::Relaxed);
        self.0.1.notify_waiters();
    }

    /// Whether it was requested.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.0.load(Ordering::Relaxed)
    }

    /// Fails where it was requested.
    pub(crate) fn check(&self) -> Result<(), ConvertError> {
        if self.is_requested() { Err(ConvertError::Interrupted) } else { Ok(()) }
    }

    async fn requested(&self) {
        let notified = self.0.1.notified();
        // Asked for after the waiting began, so that no request falls between.
        if !self.is_requested() {
            notified.await;
        }
    }
}

/// What became of a shard's tensors.
#[derive(Debug, Default)]
pub(crate) struct Made {
    /// Finite values that became infinite, by tensor.
    pub(crate) overflowed: Vec<(String, u64)>,
    /// See [`digest_of`].
    pub(crate) digest: Option<String>,
}

/// Makes every tensor of a shard and writes it to its place in `output`.
pub(crate) fn make(
    model: &Model,
    shard: &Shard,
    output: &Output,
    options: &RunOptions,
    with_digest: bool,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Made, ConvertError> {
    output.write_at(0, &shard.head)?;
    progress(shard.head.len() as u64);
    let (sender, receiver) = mpsc::channel(options.prefetch.get().min(Semaphore::MAX_PERMITS));
    let work = Work {
        shard,
        output,
        options,
        progress,
        receiver: Mutex::new(receiver),
        overflowed: shard.tensors.iter().map(|_| AtomicU64::new(0)).collect(),
        with_digest,
        digests: Mutex::new(vec![[0; 32]; if with_digest { tile_count(shard) } else { 0 }]),
        failure: Mutex::new(None),
        halt: Stop::default(),
        written: AtomicU64::new(0),
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _guard = Guard(&work);
            if let Err(error) = fetch_all(model, shard, options, with_digest, &work.halt, sender) {
                work.fail(error);
            }
        });
        for _ in 0..threads(options.threads) {
            scope.spawn(|| work.decode_and_write(model));
        }
    });
    // Where a source is not what was opened any more, that is the cause of whatever else went wrong.
    model.intact()?;
    if let Some(error) = lock(&work.failure).take() {
        return Err(error);
    }
    let overflowed =
        shard.tensors.iter().zip(work.overflowed).map(|(tensor, count)| (tensor.name.clone(), count.into_inner()));
    let digests = work.digests.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Made {
        overflowed: overflowed.filter(|(_, count)| *count > 0).collect(),
        digest: with_digest.then(|| joined(shard, &digests)),
    })
}

fn tile_count(shard: &Shard) -> usize {
    shard.tensors.iter().map(|tensor| tiles(tensor).count()).sum()
}

/// The digest of a file that should be a shard, of the same kind as [`make`] gives: SHA-256 over the header and
/// the SHA-256 of each tile, so that all cores can work on it. `None` where the file is not the shard's length
/// or has not its header.
pub(crate) fn digest_of(
    file: &dyn Source,
    shard: &Shard,
    options: &RunOptions,
) -> Result<Option<String>, ConvertError> {
    if file.len() != shard.bytes() || file.read(0..shard.head.len() as u64)? != shard.head {
        return Ok(None);
    }
    let digests = Mutex::new(vec![[0; 32]; tile_count(shard)]);
    let all = shard.tensors.iter().flat_map(|tensor| tiles(tensor).map(move |tile| (tensor, tile))).enumerate();
    on_all_cores(options.threads, all, |buffer: &mut Vec<u8>, (position, (tensor, tile))| {
        options.stop.check()?;
        buffer.resize(usize::try_from(tile.bytes).map_err(|_| ConvertError::Overflow)?, 0);
        file.read_into(shard.head.len() as u64 + tensor.offsets.start + tile.offset, buffer)?;
        let digest = Sha256::digest(&*buffer).into();
        lock(&digests)[position] = digest;
        Ok(())
    })?;
    file.intact()?;
    Ok(Some(joined(shard, &digests.into_inner().unwrap_or_else(PoisonError::into_inner))))
}

fn joined(shard: &Shard, tiles: &[[u8; 32]]) -> String {
    let mut hash = Sha256::new_with_prefix(&shard.head);
    tiles.iter().for_each(|digest| hash.update(digest));
    hex(&hash.finalize())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The bytes of a load, and the room they hold.
struct Loaded {
    load: Load,
    bytes: Result<Buffer, SourceError>,
    room: (OwnedSemaphorePermit, OwnedSemaphorePermit),
}

/// Bytes of a source: a view, a buffer that goes back to be used again, or none, because they are to be copied
/// from file to file inside the system.
enum Buffer {
    View(Bytes),
    Pooled(Vec<u8>, Arc<Pool>),
    InFile,
}

/// Buffers of local reads, used again and again.
type Pool = Mutex<Vec<Vec<u8>>>;

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::View(bytes) => bytes,
            Self::Pooled(bytes, _) => bytes,
            Self::InFile => &[],
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Self::Pooled(bytes, pool) = self {
            lock(pool).push(std::mem::take(bytes));
        }
    }
}

/// Fetches the loads of a shard, as many at once as there are slots and bytes for, until all are sent, the run is
/// to stop, or it has failed.
fn fetch_all(
    model: &Model,
    shard: &Shard,
    options: &RunOptions,
    with_digest: bool,
    halt: &Stop,
    sender: mpsc::Sender<Loaded>,
) -> Result<(), ConvertError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        // Local reads wait for the disk, not for each other.
        .max_blocking_threads(options.prefetch.get().min(threads(options.threads).max(2)))
        .build()
        .map_err(ConvertError::Runtime)?;
    let slots = Arc::new(Semaphore::new(options.prefetch.get().min(Semaphore::MAX_PERMITS)));
    // Counted in KiB, since semaphores count to 2^32.
    let kib = |bytes: u64| u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
    let all = kib(options.memory).max(1);
    let budget = Arc::new(Semaphore::new((all as usize).min(Semaphore::MAX_PERMITS)));
    let remote = model.parts().iter().any(|part| part.source().is_remote());
    // So small that several fit the budget.
    let size = (if remote { REMOTE_LOAD } else { LOCAL_LOAD }).min(options.memory / 4);
    let pool = Arc::new(Pool::default());

    let done = runtime.block_on(async {
        let mut fetches = JoinSet::new();
        for load in loads(shard, size) {
            let bytes = kib(load.run.source.bytes()).min(all);
            let room = async {
                (Arc::clone(&slots).acquire_owned().await, Arc::clone(&budget).acquire_many_owned(bytes).await)
            };
            let room = tokio::select! {
                (Ok(slot), Ok(bytes)) = room => (slot, bytes),
                () = options.stop.requested() => return Err(ConvertError::Interrupted),
                () = halt.requested() => return Ok(()),
                else => return Ok(()),
            };
            let source = Arc::clone(model.parts()[load.run.source.part].source());
            let (sender, pool) = (sender.clone(), Arc::clone(&pool));
            let step = shard.tensors[load.tensor].recipe.step;
            let in_file = step == Step::Copy && !with_digest && source.as_file().is_some();
            fetches.spawn(async move {
                let bytes = if in_file { Ok(Buffer::InFile) } else { fetch(source, &load, pool).await };
                // Nobody receives after a failure, which has been noted.
                let _ = sender.send(Loaded { load, bytes, room }).await;
            });
            while let Some(fetched) = fetches.try_join_next() {
                fetched.map_err(|panic| ConvertError::Panicked(panic.to_string()))?;
            }
        }
        loop {
            tokio::select! {
                fetched = fetches.join_next() => match fetched {
                    None => return Ok(()),
                    Some(fetched) => fetched.map_err(|panic| ConvertError::Panicked(panic.to_string()))?,
                },
                () = options.stop.requested() => return Err(ConvertError::Interrupted),
                () = halt.requested() => return Ok(()),
            }
        }
    });
    // A read that hangs is left to itself: it holds nothing but a buffer.
    runtime.shutdown_background();
    done
}

async fn fetch(source: Arc<dyn Source>, load: &Load, pool: Arc<Pool>) -> Result<Buffer, SourceError> {
    let range = load.run.source.range.clone();
    if let Some(fetched) = source.fetch(range.clone()) {
        return fetched.await.map(Buffer::View);
    }
    let name = source.name().to_owned();
    let read = tokio::task::spawn_blocking(move || {
        if source.hands_out_views() {
            return source.read(range).map(Buffer::View);
        }
        let mut buffer = lock(&pool).pop().unwrap_or_default();
        // A load is far smaller than memory.
        buffer.resize(usize::try_from(range.end - range.start).unwrap_or(usize::MAX), 0);
        source.read_into(range.start, &mut buffer)?;
        Ok(Buffer::Pooled(buffer, pool))
    });
    read.await.unwrap_or_else(|panic| {
        let error = std::io::Error::other(panic);
        Err(SourceError::Read { path: name, range: load.run.source.range.clone(), error })
    })
}

/// What the threads that decode and write share.
struct Work<'a> {
    shard: &'a Shard,
    output: &'a Output,
    options: &'a RunOptions,
    progress: &'a (dyn Fn(u64) + Sync),
    receiver: Mutex<mpsc::Receiver<Loaded>>,
    overflowed: Vec<AtomicU64>,
    with_digest: bool,
    digests: Mutex<Vec<[u8; 32]>>,
    failure: Mutex<Option<ConvertError>>,
    /// Requested by the first failure: nothing more is fetched, and what is under way is let go.
    halt: Stop,
    /// Bytes of tensors written so far.
    written: AtomicU64,
}

impl Work<'_> {
    /// Notes a failure, the first of all, and lets nothing more be fetched.
    fn fail(&self, error: ConvertError) {
        lock(&self.failure).get_or_insert(error);
        self.halt.request();
    }

    fn decode_and_write(&self, model: &Model) {
        let _guard = Guard(self);
        let mut maker = Maker::default();
        loop {
            // Whoever holds the lock waits for all; what it gets it decodes without the lock.
            let next = lock(&self.receiver).blocking_recv();
            let Some(loaded) = next else { return };
            if let Err(error) = self.one(&mut maker, model, loaded) {
                self.fail(error);
            }
        }
    }

    fn one(&self, maker: &mut Maker, model: &Model, loaded: Loaded) -> Result<(), ConvertError> {
        let Loaded { load, bytes, room } = loaded;
        if self.halt.is_requested() {
            return Ok(());
        }
        let source = model.parts()[load.run.source.part].source();
        let tensor = &self.shard.tensors[load.tensor];
        let bytes = match bytes? {
            Buffer::InFile if self.copied(&**source, &load)? => return Ok(()),
            Buffer::InFile => Buffer::View(source.read(load.run.source.range.clone())?),
            bytes => bytes,
        };
        let mut rest: &[u8] = &bytes;
        for (position, tile) in (load.first_tile..).zip(load.tiles(tensor)) {
            self.options.stop.check()?;
            let len = usize::try_from(tile.source.bytes()).map_err(|_| ConvertError::Overflow)?;
            let (stored, behind) = rest.split_at_checked(len).ok_or(ConvertError::Overflow)?;
            self.tile(maker, (load.tensor, position), &tile, stored)?;
            rest = behind;
        }
        source.drop_range(load.run.source.range);
        // Only now, when its last tile is written, is there room for another.
        drop((bytes, room));
        Ok(())
    }

    /// Copies a load from file to file inside the system, where that is possible.
    fn copied(&self, source: &dyn Source, load: &Load) -> Result<bool, ConvertError> {
        let Some(file) = source.as_file() else { return Ok(false) };
        let at = self.shard.head.len() as u64 + self.shard.tensors[load.tensor].offsets.start + load.run.offset;
        let copied = self.output.copy_from(file, load.run.source.range.start, at, load.run.bytes)?;
        if copied {
            self.wrote(load.run.bytes);
        }
        Ok(copied)
    }

    /// Makes and writes the tile at a position of the shard, of the tensor at a position.
    fn tile(
        &self,
        maker: &mut Maker,
        (tensor_position, position): (usize, usize),
        tile: &Tile,
        stored: &[u8],
    ) -> Result<(), ConvertError> {
        let tensor = &self.shard.tensors[tensor_position];
        let (bytes, infinite) = maker.make(tensor, tile, stored)?;
        if infinite > 0 {
            if self.options.strict {
                let (tensor, dtype) = (tensor.name.clone(), tensor.dtype);
                return Err(ConvertError::Overflowed { tensor, dtype });
            }
            self.overflowed[tensor_position].fetch_add(infinite, Ordering::Relaxed);
        }
        self.output.write_at(self.shard.head.len() as u64 + tensor.offsets.start + tile.offset, bytes)?;
        if self.with_digest {
            let digest = Sha256::digest(bytes).into();
            lock(&self.digests)[position] = digest;
        }
        self.wrote(tile.bytes);
        Ok(())
    }

    fn wrote(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
        (self.progress)(bytes);
    }
}

/// Lets a run end whose thread panics: the others would wait for it.
struct Guard<'w, 'a>(&'w Work<'a>);

impl Drop for Guard<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(ConvertError::Panicked("a thread of the conversion".to_owned()));
        }
    }
}
