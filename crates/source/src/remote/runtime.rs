//! The runtime that all remote sources share, and the two ways to wait for it.

use std::future::Future;
use std::io;
use std::panic;
use std::sync::{OnceLock, mpsc};

use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinError, JoinHandle};

/// It waits for sockets and copies what they bring; that keeps no more threads busy.
const WORKERS: usize = 2;

static RUNTIME: OnceLock<Result<Runtime, io::ErrorKind>> = OnceLock::new();

/// Makes sure that there is one.
pub(super) fn start() -> io::Result<&'static Runtime> {
    let start = || {
        Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .thread_name("gguf2st-source")
            .enable_all()
            .build()
            .map_err(|error| error.kind())
    };
    RUNTIME.get_or_init(start).as_ref().map_err(|&kind| kind.into())
}

fn spawn<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    start().expect("a source could be opened, so there is a runtime").spawn(work)
}

/// Does the work there and blocks this thread until it is done.
///
/// By a channel and not by the runtime's own way of blocking, which panics on the threads of another
/// runtime that are meant for blocking work.
pub(super) fn wait<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    let (send, receive) = mpsc::sync_channel(1);
    spawn(async move {
        let _ = send.send(work.await);
    });
    receive.recv().expect("the work panicked, and its message was printed where it did")
}

/// Does the work there while the caller waits on whatever runtime it has; dropping this ends the work.
pub(super) async fn elsewhere<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    struct Ended<T>(JoinHandle<T>);
    impl<T> Drop for Ended<T> {
        fn drop(&mut self) {
            self.0.abort();
        }
    }
    let mut task = Ended(spawn(work));
    (&mut task.0).await.unwrap_or_else(|error: JoinError| panic::resume_unwind(error.into_panic()))
}
