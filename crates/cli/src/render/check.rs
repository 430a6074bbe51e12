//! What `check` prints.

use std::io::{self, Write};
use std::path::Path;

use clap::builder::styling::{AnsiColor, Style};
use gguf2st_gguf::{Check, Verdict};
use serde::ser::{Serialize, SerializeStruct as _, Serializer};

use super::json::Text;
use super::out::Look;
use super::table::{Column, Table};
use super::write_json;

/// A line a check: verdict, name, detail.
pub(crate) fn write_text(out: &mut impl Write, look: Look, checks: &[Check]) -> io::Result<()> {
    // One table a verdict, so that each has its colour; all of the same widths.
    let tables = [Verdict::Ok, Verdict::Warn, Verdict::Fail].map(|verdict| {
        let mut table = Table::new(look, [Column::new("", 4).style(style(verdict)), Column::new("", 24)], "");
        checks.iter().for_each(|check| table.fit(&cells(check)));
        table
    });
    checks.iter().try_for_each(|check| {
        let [ok, warn, fail] = &tables;
        let table = match check.verdict {
            Verdict::Ok => ok,
            Verdict::Warn => warn,
            Verdict::Fail => fail,
        };
        table.write_wrapped(out, &cells(check), &check.detail)
    })
}

fn cells(check: &Check) -> [String; 2] {
    [check.verdict.to_string(), check.name.to_owned()]
}

fn style(verdict: Verdict) -> Style {
    let (color, bold) = match verdict {
        Verdict::Ok => (AnsiColor::Green, false),
        Verdict::Warn => (AnsiColor::Yellow, true),
        Verdict::Fail => (AnsiColor::Red, true),
    };
    let style = color.on_default();
    if bold { style.bold() } else { style }
}

/// `{"path","verdict","checks":[{"name","verdict","detail"}…]}`; the verdict is that of the worst check.
pub(crate) fn write_checks_json(out: &mut impl Write, path: &Path, checks: &[Check]) -> io::Result<()> {
    write_json(out, &Checked { path, checks })
}

/// The worst verdict.
pub(crate) fn verdict(checks: &[Check]) -> Verdict {
    checks.iter().map(|check| check.verdict).max().unwrap_or(Verdict::Ok)
}

/// Verdicts in JSON are of one case.
fn name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Ok => "ok",
        Verdict::Warn => "warn",
        Verdict::Fail => "fail",
    }
}

struct Checked<'a> {
    path: &'a Path,
    checks: &'a [Check],
}

impl Serialize for Checked<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut document = serializer.serialize_struct("Checked", 3)?;
        document.serialize_field("path", &Text(self.path.as_os_str().as_encoded_bytes()))?;
        document.serialize_field("verdict", name(verdict(self.checks)))?;
        let lines: Vec<_> = self.checks.iter().map(Line).collect();
        document.serialize_field("checks", &lines)?;
        document.end()
    }
}

struct Line<'a>(&'a Check);

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut line = serializer.serialize_struct("Check", 3)?;
        line.serialize_field("name", self.0.name)?;
        line.serialize_field("verdict", name(self.0.verdict))?;
        line.serialize_field("detail", &self.0.detail)?;
        line.end()
    }
}
