//! What ran, what did not and why: printed as it happens and once more at the end.

use std::fmt;
use std::time::{Duration, Instant};

use crate::Result;

/// How a step ended.
pub(crate) enum Outcome {
    Passed,
    /// It can't run on this machine, and that is no fault of the project.
    NotRun(String),
    Failed(String),
}

impl From<Result<()>> for Outcome {
    fn from(done: Result<()>) -> Self {
        match done {
            Ok(()) => Self::Passed,
            Err(error) => Self::Failed(error.to_string()),
        }
    }
}

struct Line {
    name: String,
    outcome: Outcome,
    took: Duration,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, outcome, took } = self;
        match outcome {
            Outcome::Passed => write!(f, "passed: {name} ({:.1} s)", took.as_secs_f64()),
            Outcome::NotRun(why) => write!(f, "not run here: {name}: {why}"),
            Outcome::Failed(why) => write!(f, "FAILED: {name}: {why}"),
        }
    }
}

#[derive(Default)]
pub(crate) struct Report(Vec<Line>);

impl Report {
    /// Runs a step; says whether what builds on it can follow.
    pub(crate) fn step(&mut self, name: impl Into<String>, step: impl FnOnce() -> Outcome) -> bool {
        let name = name.into();
        println!("\n== {name}");
        let start = Instant::now();
        let outcome = step();
        let line = Line { name, outcome, took: start.elapsed() };
        println!("{line}");
        let sound = !matches!(line.outcome, Outcome::Failed(_));
        self.0.push(line);
        sound
    }

    /// The summary; an error where a step failed.
    pub(crate) fn end(self) -> Result<()> {
        println!("\n== summary");
        for line in &self.0 {
            println!("{line}");
        }
        match self.0.iter().filter(|line| matches!(line.outcome, Outcome::Failed(_))).count() {
            0 => Ok(()),
            failed => Err(format!("{failed} of {} steps failed", self.0.len()).into()),
        }
    }
}
