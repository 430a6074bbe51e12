//! Ctrl-C and SIGTERM during work that would leave something behind.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use gguf2st_convert::{ConvertError, Stop};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::error::Failure;

/// Between two looks at whether a signal came: a wait that nobody notices.
const LOOK: Duration = Duration::from_millis(20);

/// From now on the first signal ends the work and the second the program, at once.
#[derive(Debug)]
pub(crate) struct Signals(Arc<AtomicUsize>);

impl Signals {
    /// Catches them for the rest of the program's life.
    pub(crate) fn catch(stop: &Stop) -> io::Result<Self> {
        let caught = Arc::new(AtomicUsize::new(0));
        let second = Arc::new(AtomicBool::new(false));
        for (signal, number) in [(SIGINT, 2), (SIGTERM, 15)] {
            // In this order: a flag that is not set yet ends nothing.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&second))?;
            flag::register(signal, Arc::clone(&second))?;
            flag::register_usize(signal, Arc::clone(&caught), number)?;
        }
        let (stop, seen) = (stop.clone(), Arc::clone(&caught));
        // A handler may do no more than set a flag. The thread ends with the program.
        thread::Builder::new().name("signals".into()).spawn(move || {
            while seen.load(Ordering::Relaxed) == 0 {
                thread::sleep(LOOK);
            }
            stop.request();
        })?;
        Ok(Self(caught))
    }

    /// What an error of the work comes to.
    pub(crate) fn failure(&self, error: ConvertError, resumes: bool) -> Failure {
        match u8::try_from(self.0.load(Ordering::Relaxed)) {
            Ok(signal) if signal > 0 && matches!(error, ConvertError::Interrupted) => {
                Failure::Interrupted { signal, resumes }
            }
            _ => error.into(),
        }
    }
}
