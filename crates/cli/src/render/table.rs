//! Columns that stand below each other, written a row at a time: nothing is collected but widths.

use std::fmt::{Display, Write as _};
use std::io::{self, Write};

use clap::builder::styling::Style;

use super::out::Look;
use super::text::{columns, wrap};

/// Blanks between columns.
const GAP: usize = 2;
/// What does not fit into the last column is set below the others where that column is narrower.
const NARROWEST: usize = 24;
/// How far it is then set in.
const INDENT: usize = 4;
/// Nothing is aligned where the last column would be narrower.
const CRAMPED: usize = 8;

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
    shown: bool,
}

impl Column {
    pub(crate) fn new(title: &'static str, widest: usize) -> Self {
        Self { title, align: Align::Left, style: Style::new(), width: columns(title), widest, shown: true }
    }

    pub(crate) fn right(self) -> Self {
        Self { align: Align::Right, ..self }
    }

    pub(crate) fn style(self, style: Style) -> Self {
        Self { style, ..self }
    }

    /// Leaves it out where it would say nothing.
    pub(crate) fn only_if(self, shown: bool) -> Self {
        Self { shown, ..self }
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
        let titles = Self { columns: self.columns.map(|column| column.style(TITLE)), ..self.clone() };
        let line = titles.line(&self.columns.map(|column| column.title.to_owned()));
        if self.last.is_empty() {
            return writeln!(out, "{}", line.trim_end());
        }
        writeln!(out, "{line}{}", self.look.paint(TITLE, self.last))
    }

    /// Writes a row whose last cell is put on as many lines as it takes, on none if it is empty.
    pub(crate) fn write_wrapped(&self, out: &mut impl Write, cells: &[String; N], last: &str) -> io::Result<()> {
        let line = self.line(cells);
        if last.is_empty() {
            return writeln!(out, "{}", line.trim_end());
        }
        let at = self.last_column();
        let Some(width) = self.look.width else { return writeln!(out, "{line}{last}") };
        let start = self.start(cells);
        if start + columns(last) <= width {
            return writeln!(out, "{line}{last}");
        }
        let narrow = width < at + NARROWEST;
        let at = if narrow { self.indent + INDENT } else { at };
        let lines = wrap(last, width.saturating_sub(at).max(1));
        if narrow || start > at {
            writeln!(out, "{}\n{:at$}{}", line.trim_end(), "", lines[0])?;
        } else {
            writeln!(out, "{line}{}", lines[0])?;
        }
        lines[1..].iter().try_for_each(|line| writeln!(out, "{:at$}{line}", ""))
    }

    /// Writes a row on one line, the last cell as it comes.
    pub(crate) fn write_row(&self, out: &mut impl Write, cells: &[String; N], last: &impl Display) -> io::Result<()> {
        writeln!(out, "{}{last}", self.line(cells))
    }

    /// A row up to its last cell.
    fn line(&self, cells: &[String; N]) -> String {
        let mut line = " ".repeat(self.indent);
        for (column, cell) in self.shown(cells) {
            let padding = if self.cramped() { 0 } else { column.width.saturating_sub(columns(cell)) };
            let (before, after) = match column.align {
                Align::Left => (0, padding + GAP),
                Align::Right => (padding, GAP),
            };
            // Writing to a String can't fail.
            let _ = write!(line, "{:before$}{}{:after$}", "", self.look.paint(column.style, cell), "");
        }
        line
    }

    fn shown<'a>(&'a self, cells: &'a [String; N]) -> impl Iterator<Item = (&'a Column, &'a String)> {
        self.columns.iter().zip(cells).filter(|(column, _)| column.shown)
    }

    /// Where the last column begins.
    fn last_column(&self) -> usize {
        let shown = self.columns.iter().filter(|column| column.shown);
        self.indent + shown.map(|column| column.width + GAP).sum::<usize>()
    }

    /// Where the last cell of a row begins: further on, where a cell is longer than its column.
    fn start(&self, cells: &[String; N]) -> usize {
        let width = |(column, cell): (&Column, &String)| {
            let least = if self.cramped() { 0 } else { column.width };
            columns(cell).max(least) + GAP
        };
        self.indent + self.shown(cells).map(width).sum::<usize>()
    }

    /// Whether the terminal is too narrow for the columns that are found so far.
    pub(crate) fn cramped(&self) -> bool {
        // Without a title the last column holds a remark here and there, which may stand below.
        let least = if self.last.is_empty() { self.last_column() - GAP } else { self.last_column() + CRAMPED };
        self.look.width.is_some_and(|width| width < least)
    }
}

/// Titles stand back behind what is below them.
const TITLE: Style = Style::new().dimmed();

#[cfg(test)]
mod tests {
    use super::*;

    fn written(width: Option<usize>, rows: &[(&str, &str)]) -> String {
        let cells = |name: &str| [name.to_owned()];
        let mut table = Table::new(Look { color: false, width }, [Column::new("key", 8)], "value");
        rows.iter().for_each(|(name, _)| table.fit(&cells(name)));
        let mut out = Vec::new();
        table.write_titles(&mut out).unwrap();
        rows.iter().for_each(|(name, last)| table.write_wrapped(&mut out, &cells(name), last).unwrap());
        String::from_utf8(out).unwrap()
    }

    const ROWS: &[(&str, &str)] =
        &[("name", "a few words that are long"), ("模型", "1"), ("overlong_key", "more of these words"), ("none", "")];

    #[test]
    fn without_a_terminal_a_row_is_a_line() {
        assert_eq!(
            written(None, ROWS),
            "key       value\nname      a few words that are long\n模型      1\noverlong_key  more of these words\nnone\n"
        );
    }

    #[test]
    fn a_wide_terminal_wraps_the_last_column() {
        assert_eq!(
            written(Some(34), ROWS),
            "key       value\n\
             name      a few words that are\n          long\n\
             模型      1\n\
             overlong_key  more of these words\n\
             none\n"
        );
    }

    #[test]
    fn a_cramped_one_aligns_nothing() {
        assert_eq!(
            written(Some(15), ROWS),
            "key  value\n\
             name\n    a few words\n    that are\n    long\n\
             模型  1\n\
             overlong_key\n    more of\n    these words\n\
             none\n"
        );
    }

    #[test]
    fn without_a_last_column_the_others_take_the_whole_line() {
        let written = |width| {
            let look = Look { color: false, width: Some(width) };
            let mut table = Table::new(look, [Column::new("key", 8), Column::new("n", 8).right()], "");
            let cells = ["name".to_owned(), "1000".to_owned()];
            table.fit(&cells);
            let mut out = Vec::new();
            table.write_titles(&mut out).unwrap();
            table.write_wrapped(&mut out, &cells, "").unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(10), "key      n\nname  1000\n");
        assert_eq!(written(9), "key  n\nname  1000\n");
    }

    #[test]
    fn a_narrow_one_sets_it_below_where_it_does_not_fit() {
        assert_eq!(
            written(Some(20), ROWS),
            "key       value\n\
             name\n    a few words that\n    are long\n\
             模型      1\n\
             overlong_key\n    more of these\n    words\n\
             none\n"
        );
    }
}
