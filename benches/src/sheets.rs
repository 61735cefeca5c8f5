use std::fmt::Display;

use crate::{Table, Turns};

/// Tables whose rows come in another order than they are printed. Limiters filled with ten million keys are measured
/// for all tables before they are dropped.
#[derive(Debug, Default)]
pub struct Sheets(Vec<Sheet>);

#[derive(Debug)]
struct Sheet {
    title: String,
    columns: Vec<String>,
    rows: Vec<(String, Vec<String>)>,
    note: Option<&'static str>,
}

impl Sheets {
    /// Adds a row to the table with that title and those columns.
    pub fn row<C: Display>(&mut self, title: &str, columns: &[&str], name: &str, cells: &[C]) {
        let at = self.0.iter().position(|sheet| sheet.title == title).unwrap_or_else(|| {
            let columns = columns.iter().map(ToString::to_string).collect();
            self.0.push(Sheet { title: title.to_owned(), columns, rows: Vec::new(), note: None });
            self.0.len() - 1
        });
        let cells = cells.iter().map(ToString::to_string).collect();
        self.0[at].rows.push((name.to_owned(), cells));
    }

    /// Puts a note below the table with that title, if there is one.
    pub fn note(&mut self, title: &str, note: &'static str) {
        if let Some(sheet) = self.0.iter_mut().find(|sheet| sheet.title == title) {
            sheet.note = Some(note);
        }
    }

    /// Prints all tables, in the order in which they were begun.
    pub fn print(self, turns: &Turns) {
        for Sheet { title, columns, rows, note } in self.0 {
            let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
            Table::print_columns(turns, &title, &columns, |table| {
                rows.iter().for_each(|(name, cells)| table.row(name, cells));
                if let Some(note) = note.filter(|_| turns.is_measuring()) {
                    println!("\n{note}");
                }
            });
        }
    }
}
