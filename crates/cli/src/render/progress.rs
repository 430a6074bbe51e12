//! How far long work has come, on standard error: a bar on a terminal, a line now and then elsewhere. Work
//! that takes less than a second shows nothing.

use std::io::{self, IsTerminal as _, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gguf2st_source::EscapedPath;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::units;
use crate::args::GlobalArgs;

/// Work that is done before that needs no progress.
const SILENT: Duration = Duration::from_secs(1);

/// Between two lines where there is no terminal.
const PAUSE: Duration = Duration::from_secs(5);

const BAR: &str = "{msg} {wide_bar} {bytes} of {total_bytes}, {binary_bytes_per_sec}, {eta} left";

/// The progress of one piece of work. Told of bytes from any thread.
#[derive(Debug)]
pub(crate) struct Progress {
    verb: &'static str,
    total: u64,
    start: Instant,
    done: AtomicU64,
    shown: Shown,
}

#[derive(Debug)]
enum Shown {
    Nothing,
    Bar(ProgressBar),
    /// When the next line is due.
    Lines(Mutex<Instant>),
}

impl Progress {
    pub(crate) fn new(verb: &'static str, total: u64, global: GlobalArgs) -> Self {
        let start = Instant::now();
        let shown = if global.quiet {
            Shown::Nothing
        } else if io::stderr().is_terminal() {
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden()).with_message(verb);
            Shown::Bar(ProgressStyle::with_template(BAR).map_or(bar.clone(), |style| bar.with_style(style)))
        } else {
            Shown::Lines(Mutex::new(start + SILENT))
        };
        Self { verb, total, start, done: AtomicU64::new(0), shown }
    }

    pub(crate) fn advance(&self, bytes: u64) {
        let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        match &self.shown {
            Shown::Nothing => {}
            Shown::Bar(bar) => {
                if bar.is_hidden() && self.start.elapsed() >= SILENT {
                    bar.set_draw_target(ProgressDrawTarget::stderr());
                }
                bar.set_position(done.min(self.total));
            }
            Shown::Lines(due) => {
                // Who does not get the lock leaves the line to who has it.
                if let Ok(mut due) = due.try_lock()
                    && Instant::now() >= *due
                {
                    *due = Instant::now() + PAUSE;
                    self.line(done);
                }
            }
        }
    }

    fn line(&self, done: u64) {
        let seconds = self.start.elapsed().as_secs_f64();
        let rate = done as f64 / seconds;
        let left = self.total.saturating_sub(done) as f64 / rate;
        let (done, total, rate) = (units::bytes(done), units::bytes(self.total), units::bytes(rate as u64));
        // Nobody to tell of a failure of standard error.
        let _ = writeln!(io::stderr(), "gguf2st: {} {done} of {total}, {rate}/s, {left:.0} s left", self.verb);
    }

    /// Takes the bar away; gives the seconds since the start.
    pub(crate) fn finish(&self) -> f64 {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
        self.start.elapsed().as_secs_f64()
    }
}

/// An error leaves no half-drawn bar behind.
impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

/// What was written, in a line.
pub(crate) fn wrote(
    out: &mut impl Write,
    path: &Path,
    tensors: Option<usize>,
    bytes: u64,
    seconds: f64,
) -> io::Result<()> {
    let tensors = tensors.map(|tensors| format!("{}, ", units::plural(tensors, "tensor"))).unwrap_or_default();
    let rate = units::bytes((bytes as f64 / seconds.max(1e-9)) as u64);
    writeln!(out, "wrote {}: {tensors}{} in {seconds:.2} s ({rate}/s)", EscapedPath(path), units::bytes(bytes))
}
