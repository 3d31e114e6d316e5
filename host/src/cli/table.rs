//! Tables as kubectl prints them, and the words in their cells.

use pintle_core::text;
use textwrap::core::display_width;

/// The longest cell, in bytes: a condition's message.
const CELL_BYTES_MAX: usize = 4096;

/// What stands in a cell that has no value.
const NONE: &str = "<none>";

/// A table: a head, and rows under it, each of which may have text below.
#[derive(Debug)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
    /// The lines below each row.
    below: Vec<String>,
}

impl Table {
    /// A table without rows.
    pub(super) fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(ToString::to_string).collect()], below: vec![String::new()] }
    }

    /// Adds a row. An empty cell is shown as [`NONE`].
    pub(super) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(cell).into());
        self.below.push(String::new());
    }

    /// Adds a line below the last row. It is not wrapped: a command that is broken in two cannot be copied.
    pub(super) fn below(&mut self, line: &str) {
        if let Some(below) = self.below.last_mut() {
            below.push_str(&format!("  {}\n", text::clean(line, CELL_BYTES_MAX)));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    /// The table as text.
    pub(super) fn text(&self) -> String {
        let mut widths: Vec<usize> = Vec::new();
        for row in &self.rows {
            widths.resize(row.len(), 0);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(display_width(cell));
            }
        }
        let line = |(row, below): (&Vec<String>, &String)| {
            let pad = |(cell, width): (&String, &usize)| {
                format!("{cell}{}", " ".repeat(width - display_width(cell) + 3))
            };
            let line: String = row.iter().zip(&widths).map(pad).collect();
            format!("{}\n{below}", line.trim_end())
        };
        self.rows.iter().zip(&self.below).map(line).collect()
    }
}

/// A cell: one line without what a terminal would obey, since much of it was written by others.
fn cell(value: String) -> String {
    match text::clean(&value, CELL_BYTES_MAX) {
        empty if empty.is_empty() => NONE.into(),
        cell => cell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_each_other_three_spaces_apart_and_text_below_a_row_is_no_cell() {
        let mut table = Table::new(&["NAME", "READY"]);
        table.row(["a-long-name".into(), "True".into()]);
        table.below("one line, and as long as it is");
        table.row(["ä".into(), String::new()]);
        assert_eq!(
            table.text(),
            "NAME          READY\na-long-name   True\n  one line, and as long as it is\nä             <none>\n"
        );
    }

    #[test]
    fn a_cell_has_nothing_that_a_terminal_would_obey() {
        let mut table = Table::new(&["MESSAGE"]);
        table.row(["\u{1b}[31mred\nline".into()]);
        assert_eq!(table.text(), "MESSAGE\n[31mred line\n");
    }
}
