use std::fmt::Display;

use crate::Turns;

/// Wide enough for the names of all rows.
const FIRST: usize = 40;

/// Columns at least this wide are aligned in a terminal as well.
const WIDTH: usize = 20;

/// A table of Markdown, printed row by row.
#[derive(Debug)]
pub struct Table {
    silent: bool,
}

impl Table {
    /// Prints the head, and has `rows` print the rest, if the command line asks for this title.
    pub fn print<const N: usize>(
        turns: &Turns,
        title: &str,
        columns: [&str; N],
        rows: impl FnOnce(&Self),
    ) {
        Self::print_columns(turns, title, &columns, rows);
    }

    /// The same, with columns that are counted only when it runs.
    pub fn print_columns(turns: &Turns, title: &str, columns: &[&str], rows: impl FnOnce(&Self)) {
        if !turns.wants(title) {
            return;
        }
        // A row that ran only once, and cold, is not shown.
        let table = Self { silent: !turns.is_measuring() };
        println!("\n### {title}\n");
        let [first, columns @ ..] = columns else { return };
        table.row(first, columns);
        table.row("---", &vec!["---:"; columns.len()]);
        rows(&table);
    }

    /// Prints one row.
    pub fn row<T: Display>(&self, name: &str, cells: &[T]) {
        if self.silent {
            return;
        }
        print!("| {name:FIRST$} |");
        for cell in cells {
            print!(" {:>WIDTH$} |", cell.to_string());
        }
        println!();
    }
}
