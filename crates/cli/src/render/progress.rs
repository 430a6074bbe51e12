//! How far long work has come, on standard error: a bar on a terminal, a line now and then elsewhere, or objects of
//! JSON. Work that takes less than a second shows nothing but, in JSON, its end.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use gguf2st_convert::CurrentShard;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use serde::Serialize;

use super::{out, units, write_json};
use crate::args::{GlobalArgs, ProgressChoice};

/// Work that is done before that needs no progress.
const SILENT: Duration = Duration::from_secs(1);

/// Between two lines where there is no terminal.
const PAUSE: Duration = Duration::from_secs(5);

/// Between two objects of JSON.
const BEAT: Duration = Duration::from_secs(1);

/// Between two drawings of a bar.
const TICK: Duration = Duration::from_millis(100);

/// The progress of one piece of work. Told of bytes from any thread; a thread of its own shows it, so that
/// those that work never wait for a terminal, and it goes on while nothing advances.
#[derive(Debug)]
pub(crate) struct Progress {
    start: Instant,
    done: Arc<AtomicU64>,
    /// Dropping the sender ends the thread.
    display: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Begins work on so many bytes; `verb` says what is done to them.
    pub(crate) fn new(verb: &'static str, total: u64, global: GlobalArgs) -> Self {
        Self::of_shards(verb, total, None, global)
    }

    /// Begins work on files one after the other: which it is at, and how many there are.
    pub(crate) fn of_shards(
        verb: &'static str,
        total: u64,
        shards: Option<(CurrentShard, usize)>,
        global: GlobalArgs,
    ) -> Self {
        let start = Instant::now();
        let done = Arc::new(AtomicU64::new(0));
        let work = Work { verb, total, shards, start, done: Arc::clone(&done) };
        let display = form(global, out::stderr_obeys()).and_then(|form| {
            let (sender, ended) = channel();
            let show = move || match form {
                Form::Bar => work.draw(&ended),
                Form::Lines => work.tell(&ended),
                Form::Json => work.report(&ended),
            };
            // Without a thread to spare there is no progress to be seen, only to be made.
            Some((sender, thread::Builder::new().name("progress".into()).spawn(show).ok()?))
        });
        Self { start, done, display }
    }

    pub(crate) fn advance(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Takes the bar away; gives the seconds since the start.
    pub(crate) fn finish(mut self) -> f64 {
        self.end();
        self.start.elapsed().as_secs_f64()
    }

    fn end(&mut self) {
        if let Some((sender, thread)) = self.display.take() {
            drop(sender);
            // If it panicked, it has said so.
            let _ = thread.join();
        }
    }
}

/// An error leaves no half-drawn bar behind.
impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Bar,
    Lines,
    Json,
}

/// What is asked for by name holds with `--quiet` too.
fn form(global: GlobalArgs, terminal: bool) -> Option<Form> {
    match global.progress {
        ProgressChoice::Bar => Some(Form::Bar),
        ProgressChoice::Lines => Some(Form::Lines),
        ProgressChoice::Json => Some(Form::Json),
        ProgressChoice::None => None,
        ProgressChoice::Auto if global.quiet => None,
        ProgressChoice::Auto => Some(if terminal { Form::Bar } else { Form::Lines }),
    }
}

/// What the display knows of the work.
struct Work {
    verb: &'static str,
    total: u64,
    shards: Option<(CurrentShard, usize)>,
    start: Instant,
    done: Arc<AtomicU64>,
}

impl Work {
    /// The number of the file that is being made, and of how many.
    fn shard(&self) -> Option<(usize, usize)> {
        let (current, count) = self.shards.as_ref()?;
        Some((current.get()?, *count))
    }

    /// What is being done: `converting`, `converting shard 3 of 7`.
    fn what(&self) -> String {
        match self.shard() {
            Some((number, count)) => format!("{} shard {number} of {count}", self.verb),
            None => self.verb.to_owned(),
        }
    }

    fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed).min(self.total)
    }

    /// Draws a bar over and over until the work has ended.
    fn draw(&self, ended: &Receiver<()>) {
        if goes_on(ended, SILENT) {
            let bar = ProgressBar::with_draw_target(Some(self.total), ProgressDrawTarget::stderr())
                .with_style(style(out::stderr_width()))
                .with_elapsed(self.start.elapsed());
            loop {
                // The longest figures leave no room for more on a line of 80.
                let verb = || self.verb.to_owned();
                bar.set_message(if out::stderr_width() < 110 { verb() } else { self.what() });
                bar.set_position(self.done());
                if !goes_on(ended, TICK) {
                    break;
                }
            }
            bar.finish_and_clear();
        }
    }

    /// Writes a line now and then until the work has ended.
    fn tell(&self, ended: &Receiver<()>) {
        let mut pause = SILENT;
        while goes_on(ended, pause) {
            let done = self.done();
            let rate = done as f64 / self.start.elapsed().as_secs_f64();
            // Nobody to tell of a failure of standard error.
            let _ = writeln!(io::stderr(), "gguf2st: {} {}", self.what(), figures(done, self.total, rate));
            pause = PAUSE;
        }
    }

    /// Writes an object a second, and one at the end.
    fn report(&self, ended: &Receiver<()>) {
        loop {
            let goes_on = goes_on(ended, BEAT);
            let mut state = State::new(self.done(), self.total, self.start.elapsed().as_secs_f64());
            state.shard = self.shard().map(|(number, _)| number);
            let mut line = Vec::new();
            // Numbers into memory: that can't fail; and nobody is there to be told of a failure of standard error.
            let _ = write_json(&mut line, &state);
            let _ = io::stderr().write_all(&line);
            if !goes_on {
                break;
            }
        }
    }
}

/// What programs are told.
#[derive(Debug, PartialEq, Serialize)]
struct State {
    /// Bytes.
    done: u64,
    /// Bytes.
    total: u64,
    /// Since the start.
    bytes_per_second: u64,
    /// If it goes on like that; `None` where nothing has come yet.
    seconds_left: Option<u64>,
    /// The number of the file that is being made, from one, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    shard: Option<usize>,
}

impl State {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts of floats saturate")]
    fn new(done: u64, total: u64, seconds: f64) -> Self {
        let rate = done as f64 / seconds.max(1e-9);
        let left = ((total - done) as f64 / rate).ceil();
        Self {
            done,
            total,
            bytes_per_second: rate as u64,
            seconds_left: if done >= total { Some(0) } else { left.is_finite().then_some(left as u64) },
            shard: None,
        }
    }
}

/// Waits; whether the work still goes on then.
fn goes_on(ended: &Receiver<()>, pause: Duration) -> bool {
    ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout)
}

/// As much as fits on one line of so many columns, since what wraps flickers. The longest figures are
/// `9999 bytes of 1023.9 MiB, 1023.9 MiB/s, 59 min 59 s left`.
fn template(width: usize) -> &'static str {
    match width {
        80.. => "{msg} {wide_bar} {figures}",
        48.. => "{msg} {wide_bar} {percent}%, {left}",
        34.. => "{msg} {percent}%, {left}",
        4.. => "{percent}%",
        _ => "",
    }
}

fn style(width: usize) -> ProgressStyle {
    let style = ProgressStyle::with_template(template(width)).unwrap_or_else(|_| ProgressStyle::default_bar());
    // Since the start: indicatif's own rate takes the first position for a leap.
    let rate = |state: &ProgressState| state.pos() as f64 / state.elapsed().as_secs_f64();
    let all = move |state: &ProgressState| (state.pos(), state.len().unwrap_or_default(), rate(state));
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

    #[test]
    fn objects() {
        let state = |done, total| State::new(done, total, 2.0);
        let json = |state| serde_json::to_string(&state).unwrap();
        assert_eq!(json(state(4, 9)), r#"{"done":4,"total":9,"bytes_per_second":2,"seconds_left":3}"#);
        assert_eq!(state(0, 9).seconds_left, None);
        assert_eq!(state(9, 9).seconds_left, Some(0));
        assert_eq!(state(0, 0).seconds_left, Some(0));
        let of_shards = State { shard: Some(3), ..state(9, 9) };
        assert!(json(of_shards).ends_with(r#""seconds_left":0,"shard":3}"#));
    }

    #[test]
    fn forms() {
        let form = |quiet, progress, terminal| {
            form(GlobalArgs { quiet, color: crate::args::ColorChoice::Auto, progress }, terminal)
        };
        assert_eq!(form(false, ProgressChoice::Auto, true), Some(Form::Bar));
        assert_eq!(form(false, ProgressChoice::Auto, false), Some(Form::Lines));
        assert_eq!(form(true, ProgressChoice::Auto, true), None);
        assert_eq!(form(true, ProgressChoice::Json, true), Some(Form::Json));
        assert_eq!(form(false, ProgressChoice::None, true), None);
    }

    /// Half of 1 TiB after 10,000 s, drawn as it would be on a terminal of that width.
    fn drawn(width: u16) -> String {
        let terminal = indicatif::InMemoryTerm::new(5, width);
        let bar =
            ProgressBar::with_draw_target(Some(1 << 40), ProgressDrawTarget::term_like(Box::new(terminal.clone())));
        let bar = bar.with_elapsed(Duration::from_secs(10_000)).with_message("converting");
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
        assert_eq!(
            drawn(90),
            "converting ██████████████░░░░░░░░░░░░░░ 512.0 GiB of 1.00 TiB, 52.4 MiB/s, 2 h 47 min left"
        );
        assert_eq!(drawn(50), "converting █████████░░░░░░░░░ 50%, 2 h 47 min left");
        assert_eq!(drawn(36).trim_end(), "converting 50%, 2 h 47 min left");
        assert_eq!(drawn(33).trim_end(), "50%");
    }
}
