//! Tables as kubectl prints them, and the words in their cells.

use pintle_core::text;

/// The width of what is wrapped where the standard output is no terminal.
const WIDTH: usize = 100;

/// The longest cell, in bytes: a condition's message.
const CELL_BYTES_MAX: usize = 4096;

/// What stands in a cell that has no value.
const NONE: &str = "<none>";

/// A table: a head, and rows under it, each of which may have text below.
#[derive(Debug)]
pub(super) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    cells: Vec<String>,
    below: Vec<String>,
}

impl Table {
    /// A table without rows.
    pub(super) fn new(head: &[&'static str]) -> Self {
        Self { head: head.to_vec(), rows: Vec::new() }
    }

    /// Adds a row. An empty cell is shown as [`NONE`].
    pub(super) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(Row { cells: cells.map(cell).into(), below: Vec::new() });
    }

    /// Adds text below the last row.
    pub(super) fn below(&mut self, text: &str) {
        if let Some(row) = self.rows.last_mut() {
            row.below.push(text::clean(text, CELL_BYTES_MAX));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as text. What stands below a row is indented and wrapped to the width; a row never is.
    pub(super) fn text(&self, width: usize) -> String {
        let cells = self.rows.iter().map(|row| &row.cells);
        let mut widths: Vec<usize> = self.head.iter().map(|name| name.len()).collect();
        for row in cells {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(textwrap::core::display_width(cell));
            }
        }
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let mut line = String::new();
            for (cell, width) in cells.zip(&widths) {
                let padding = width.saturating_sub(textwrap::core::display_width(cell)) + 3;
                line.push_str(cell);
                line.push_str(&" ".repeat(padding));
            }
            format!("{}\n", line.trim_end())
        };
        let mut text = line(&mut self.head.iter().copied());
        for row in &self.rows {
            text.push_str(&line(&mut row.cells.iter().map(String::as_str)));
            row.below.iter().for_each(|below| text.push_str(&wrapped(below, "  ", width)));
        }
        text
    }
}

/// A cell: one line without what a terminal would obey, since much of it was written by others.
fn cell(value: String) -> String {
    match text::clean(&value, CELL_BYTES_MAX) {
        empty if empty.is_empty() => NONE.into(),
        cell => cell,
    }
}

/// Text in lines of at most this many columns, each behind the indent. A word that is longer stays whole, so that it can be copied.
fn wrapped(text: &str, indent: &str, width: usize) -> String {
    let options = textwrap::Options::new(width)
        .initial_indent(indent)
        .subsequent_indent(indent)
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::fill(text, options) + "\n"
}

/// How many columns there are for text that is wrapped.
pub(super) fn width() -> usize {
    use std::io::IsTerminal as _;
    if std::io::stdout().is_terminal() { textwrap::termwidth() } else { WIDTH }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_each_other_three_spaces_apart() {
        let mut table = Table::new(&["NAME", "READY"]);
        table.row(["a-long-name".into(), "True".into()]);
        table.row(["ä".into(), String::new()]);
        assert_eq!(table.text(80), "NAME          READY\na-long-name   True\nä             <none>\n");
    }

    #[test]
    fn what_stands_below_a_row_is_wrapped_and_no_word_is_broken() {
        let mut table = Table::new(&["NAME"]);
        table.row(["a".into()]);
        table.below("one two three four-and-twenty-blackbirds");
        assert_eq!(table.text(12), "NAME\na\n  one two\n  three\n  four-and-twenty-blackbirds\n");
    }

    #[test]
    fn a_cell_has_nothing_that_a_terminal_would_obey() {
        let mut table = Table::new(&["MESSAGE"]);
        table.row(["\u{1b}[31mred\nline".into()]);
        assert_eq!(table.text(80), "MESSAGE\n[31mred line\n");
    }
}
