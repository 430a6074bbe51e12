//! Work on all cores that waits for nothing but the processor and the disk.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use crate::error::ConvertError;

/// How many threads to work with: all cores where it is not said.
pub(crate) fn threads(wanted: Option<NonZeroUsize>) -> usize {
    wanted.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get)
}

/// Runs jobs on all cores (or as many threads as are wanted) until there are none or one fails; the first
/// failure is given. Each thread has a worker of its own.
pub(crate) fn on_all_cores<J: Send, W: Default>(
    wanted: Option<NonZeroUsize>,
    jobs: impl Iterator<Item = J> + Send,
    run: impl Fn(&mut W, J) -> Result<(), ConvertError> + Sync,
) -> Result<(), ConvertError> {
    let queue = Mutex::new((Some(jobs), None));
    let lock = || queue.lock().unwrap_or_else(PoisonError::into_inner);
    let next = || lock().0.as_mut().and_then(Iterator::next);
    std::thread::scope(|scope| {
        for _ in 0..threads(wanted) {
            scope.spawn(|| {
                let mut worker = W::default();
                while let Some(job) = next() {
                    if let Err(error) = run(&mut worker, job) {
                        let (jobs, failure) = &mut *lock();
                        *jobs = None;
                        failure.get_or_insert(error);
                    }
                }
            });
        }
    });
    match queue.into_inner().unwrap_or_else(PoisonError::into_inner).1 {
        None => Ok(()),
        Some(error) => Err(error),
    }
}
