//! How far long work has come, on standard error: a bar on a terminal, a line now and then elsewhere. Work
//! that takes less than a second shows nothing.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gguf2st_source::EscapedPath;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::{out, units};
use crate::args::GlobalArgs;

/// Work that is done before that needs no progress.
const SILENT: Duration = Duration::from_secs(1);

/// Between two lines where there is no terminal.
const PAUSE: Duration = Duration::from_secs(5);

/// Between two drawings of a bar that stands still.
const TICK: Duration = Duration::from_millis(200);

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
    /// Begins work on so many bytes; `verb` says what is done to them.
    pub(crate) fn new(verb: &'static str, total: u64, global: GlobalArgs) -> Self {
        let start = Instant::now();
        let shown = if global.quiet {
            Shown::Nothing
        } else if out::stderr_obeys() {
            let hidden = ProgressDrawTarget::hidden();
            Shown::Bar(ProgressBar::with_draw_target(Some(total), hidden).with_message(verb))
        } else {
            Shown::Lines(Mutex::new(start + SILENT))
        };
        Self { verb, total, start, done: AtomicU64::new(0), shown }
    }

    pub(crate) fn advance(&self, bytes: u64) {
        let done = (self.done.fetch_add(bytes, Ordering::Relaxed) + bytes).min(self.total);
        match &self.shown {
            Shown::Nothing => {}
            Shown::Bar(bar) => {
                if bar.is_hidden() && self.start.elapsed() >= SILENT {
                    bar.set_style(style(out::stderr_width()));
                    bar.set_draw_target(ProgressDrawTarget::stderr());
                    // Also while nothing advances: reading stalls, or the last bytes are made durable.
                    bar.enable_steady_tick(TICK);
                }
                bar.set_position(done);
            }
            Shown::Lines(due) => {
                // Who does not get the lock leaves the line to who has it.
                if let Ok(mut due) = due.try_lock()
                    && Instant::now() >= *due
                {
                    *due = Instant::now() + PAUSE;
                    let rate = done as f64 / self.start.elapsed().as_secs_f64();
                    // Nobody to tell of a failure of standard error.
                    let _ = writeln!(io::stderr(), "gguf2st: {} {}", self.verb, figures(done, self.total, rate));
                }
            }
        }
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

/// As much as fits on one line of so many columns, since what wraps flickers. The longest figures are
/// `9999 bytes of 1023.9 MiB, 1023.9 MiB/s, 59 min 59 s left`.
fn template(width: usize) -> &'static str {
    match width {
        80.. => "{msg} {wide_bar} {figures}",
        40.. => "{msg} {wide_bar} {percent}%, {left}",
        28.. => "{msg} {percent}%, {left}",
        4.. => "{percent}%",
        _ => "",
    }
}

fn style(width: usize) -> ProgressStyle {
    let style = ProgressStyle::with_template(template(width)).unwrap_or_else(|_| ProgressStyle::default_bar());
    let all = |state: &ProgressState| (state.pos(), state.len().unwrap_or_default(), state.per_sec());
    style
        // Whole blocks only: parts of one are not in every font.
        .progress_chars("█░")
        .with_key("figures", move |state: &ProgressState, out: &mut dyn fmt::Write| {
            let (done, total, rate) = all(state);
            // Writing into indicatif's line can't fail.
            let _ = out.write_str(&figures(done, total, rate));
        })
        .with_key("left", move |state: &ProgressState, out: &mut dyn fmt::Write| {
            let (done, total, rate) = all(state);
            let _ = out.write_str(&left(done, total, rate));
        })
}

/// `241.4 MiB of 1.00 GiB, 120.0 MiB/s, 7 s left`; `rate` is in bytes a second.
fn figures(done: u64, total: u64, rate: f64) -> String {
    let left = left(done, total, rate);
    format!("{} of {}, {}, {left}", units::bytes(done), units::bytes(total), units::rate(rate))
}

/// How long the rest takes if it goes on like that.
fn left(done: u64, total: u64, rate: f64) -> String {
    let seconds = (total.saturating_sub(done) as f64 / rate).ceil();
    match seconds {
        // The last bytes are made durable, which takes as long as the disk takes.
        _ if done >= total => "finishing".into(),
        ..60.0 => format!("{seconds} s left"),
        60.0..3600.0 => format!("{} min {} s left", (seconds / 60.0).floor(), seconds % 60.0),
        3600.0..360_000.0 => {
            let minutes = (seconds / 60.0).ceil();
            format!("{} h {} min left", (minutes / 60.0).floor(), minutes % 60.0)
        }
        // Too slow to be told yet, or nothing has come.
        _ => "? left".into(),
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
    let rate = units::rate(bytes as f64 / seconds.max(1e-9));
    writeln!(out, "wrote {}: {tensors}{} in {seconds:.2} s ({rate})", EscapedPath(path), units::bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        const MIB: u64 = 1 << 20;
        assert_eq!(figures(0, 0, 0.0), "0 bytes of 0 bytes, 0 bytes/s, finishing");
        assert_eq!(figures(0, 64 * MIB, 0.0), "0 bytes of 64.0 MiB, 0 bytes/s, ? left");
        assert_eq!(figures(0, MIB, f64::NAN), "0 bytes of 1.00 MiB, ? bytes/s, ? left");
        assert_eq!(figures(241 * MIB, 1023 * MIB, 1e8), "241.0 MiB of 1023.0 MiB, 95.4 MiB/s, 9 s left");
        assert_eq!(left(0, 599, 10.0), "1 min 0 s left");
        assert_eq!(left(0, 3_599 * 7, 7.0), "59 min 59 s left");
        assert_eq!(left(0, 7_141, 1.0), "2 h 0 min left");
        assert_eq!(left(0, u64::MAX, 1.0), "? left");
        assert_eq!(left(5, 4, 1.0), "finishing");
    }

    /// Drawn as it would be on a terminal of that width.
    fn drawn(width: u16) -> String {
        let terminal = indicatif::InMemoryTerm::new(5, width);
        let bar =
            ProgressBar::with_draw_target(Some(1 << 40), ProgressDrawTarget::term_like(Box::new(terminal.clone())));
        bar.set_message("converting");
        bar.set_style(style(width.into()));
        bar.set_position(1 << 39);
        bar.tick();
        terminal.contents()
    }

    #[test]
    fn a_bar_takes_one_line_of_any_terminal() {
        for width in 1..200 {
            let drawn = drawn(width);
            assert!(!drawn.contains('\n'), "{width}: {drawn}");
        }
    }

    #[test]
    fn what_was_written() {
        let mut out = Vec::new();
        wrote(&mut out, Path::new("a\n\u{202e}\u{1b}[2J"), Some(1), 1 << 20, 0.5).unwrap();
        wrote(&mut out, Path::new("b"), None, 5, 0.0).unwrap();
        let shown = String::from_utf8(out).unwrap();
        assert_eq!(
            shown,
            "wrote a\\n\\u{202e}\\u{1b}[2J: 1 tensor, 1.00 MiB in 0.50 s (2.00 MiB/s)\n\
             wrote b: 5 bytes in 0.00 s (4.66 GiB/s)\n"
        );
    }
}
