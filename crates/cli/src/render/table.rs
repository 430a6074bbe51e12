//! Columns that stand below each other, written a row at a time: nothing is collected but widths.

use std::fmt::Display;
use std::io::{self, Write};

use clap::builder::styling::Style;

use super::out::Look;
use super::text::{columns, wrap};

/// Blanks between columns.
const GAP: usize = 2;
/// The last column is set below the others where it would be narrower.
const NARROWEST: usize = 24;
/// How far it is then set in.
const INDENT: usize = 4;

/// How a column stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// One of the columns before the last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    title: &'static str,
    align: Align,
    style: Style,
    width: usize,
    /// Cells may be longer; the others do not give way to them.
    widest: usize,
}

impl Column {
    pub(crate) fn new(title: &'static str, widest: usize) -> Self {
        Self { title, align: Align::Left, style: Style::new(), width: columns(title), widest }
    }

    pub(crate) fn right(self) -> Self {
        Self { align: Align::Right, ..self }
    }

    pub(crate) fn style(self, style: Style) -> Self {
        Self { style, ..self }
    }
}

/// `N` columns whose widths are [found first](Self::fit), and a last one that takes what is left of the line.
#[derive(Clone, Debug)]
pub(crate) struct Table<const N: usize> {
    columns: [Column; N],
    last: &'static str,
    look: Look,
    indent: usize,
}

impl<const N: usize> Table<N> {
    pub(crate) fn new(look: Look, columns: [Column; N], last: &'static str) -> Self {
        Self { columns, last, look, indent: 0 }
    }

    /// Sets the whole table in.
    pub(crate) fn indent(self, indent: usize) -> Self {
        Self { indent, ..self }
    }

    /// Makes the columns wide enough for a row. To be called for every row before the first is written.
    pub(crate) fn fit(&mut self, cells: &[String; N]) {
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            column.width = column.width.max(columns(cell)).min(column.widest.max(columns(column.title)));
        }
    }

    pub(crate) fn write_titles(&self, out: &mut impl Write) -> io::Result<()> {
        let plain = Self { columns: self.columns.map(|column| column.style(TITLE)), ..self.clone() };
        plain.write_row(out, &self.columns.map(|column| column.title.to_owned()), &self.look.paint(TITLE, self.last))
    }

    /// Writes a row whose last cell is put on as many lines as it takes.
    pub(crate) fn write_wrapped(&self, out: &mut impl Write, cells: &[String; N], last: &str) -> io::Result<()> {
        let at = self.last_column();
        let Some(width) = self.look.width else { return self.write_row(out, cells, last) };
        let overlong = self.columns.iter().zip(cells).any(|(column, cell)| columns(cell) > column.width);
        let narrow = width < at + NARROWEST;
        let at = if narrow { self.indent + INDENT } else { at };
        let lines = wrap(last, width.saturating_sub(at).max(1));
        if !narrow && !overlong {
            self.write_row(out, cells, lines[0])?;
        } else {
            self.write_cells(out, cells)?;
            writeln!(out, "\n{:at$}{}", "", lines[0])?;
        }
        lines[1..].iter().try_for_each(|line| writeln!(out, "{:at$}{line}", ""))
    }

    /// Writes a row on one line.
    pub(crate) fn write_row(
        &self,
        out: &mut impl Write,
        cells: &[String; N],
        last: &(impl Display + ?Sized),
    ) -> io::Result<()> {
        self.write_cells(out, cells)?;
        writeln!(out, "{last}")
    }

    fn write_cells(&self, out: &mut impl Write, cells: &[String; N]) -> io::Result<()> {
        write!(out, "{:1$}", "", self.indent)?;
        for (column, cell) in self.columns.iter().zip(cells) {
            let padding = column.width.saturating_sub(columns(cell));
            let (before, after) = match column.align {
                Align::Left => (0, padding + GAP),
                Align::Right => (padding, GAP),
            };
            write!(out, "{:before$}{}{:after$}", "", self.look.paint(column.style, cell), "")?;
        }
        Ok(())
    }

    fn last_column(&self) -> usize {
        self.indent + self.columns.iter().map(|column| column.width + GAP).sum::<usize>()
    }
}

/// Titles stand back behind what is below them.
const TITLE: Style = Style::new().dimmed();
