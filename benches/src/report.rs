use std::fmt::Display;

use crate::Turns;

/// Columns at least this wide stand under one another in a terminal as well.
const WIDTH: usize = 20;

/// A table of Markdown, printed row by row.
#[derive(Debug)]
pub struct Table {
    first: usize,
}

impl Table {
    /// Prints the head, and has `rows` print the rest, if the command line asks for this title.
    pub fn print<const N: usize>(
        turns: &Turns,
        title: &str,
        columns: [&str; N],
        rows: impl FnOnce(&Self),
    ) {
        if !turns.wants(title) {
            return;
        }
        let table = Self { first: 40 };
        println!("\n### {title}\n");
        let [first, columns @ ..] = &columns[..] else { return };
        table.row(first, columns);
        table.row("---", &vec!["---:"; columns.len()]);
        rows(&table);
    }

    /// Prints one row.
    pub fn row<T: Display>(&self, name: &str, cells: &[T]) {
        print!("| {name:first$} |", first = self.first);
        for cell in cells {
            print!(" {:>WIDTH$} |", cell.to_string());
        }
        println!();
    }
}
