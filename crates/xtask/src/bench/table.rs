//! The tables that the programs print.

use std::fmt;

use super::cell::Cell;

/// A Markdown table, and the text below it.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) title: String,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Paragraphs.
    notes: Vec<String>,
    /// Whether the line before was empty.
    after_a_gap: bool,
}

/// All tables that a program printed, each below its `### title`.
pub(super) fn printed_in(text: &str) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("### ") {
            tables.push(Table { title: title.trim().to_owned(), ..Table::default() });
        } else if let Some(table) = tables.last_mut() {
            table.add(line.trim());
        }
    }
    tables.retain(|table| !table.rows.is_empty());
    tables
}

impl Table {
    fn add(&mut self, line: &str) {
        let Some(row) = line.strip_prefix('|') else { return self.note(line) };
        let row = row.strip_suffix('|').unwrap_or(row);
        let cells: Vec<_> = row.split('|').map(|cell| cell.trim().to_owned()).collect();
        if self.head.is_empty() {
            self.head = cells;
        } else if !is_rule(&cells) {
            self.rows.push(cells);
        }
    }

    fn note(&mut self, line: &str) {
        match self.notes.last_mut() {
            _ if line.is_empty() => {}
            Some(paragraph) if !self.after_a_gap => *paragraph += &format!("\n{line}"),
            _ => self.notes.push(line.to_owned()),
        }
        self.after_a_gap = line.is_empty();
    }

    /// The contenders and the cases in which they are compared. Contenders are in the columns or in the rows,
    /// wherever sluicegate is.
    pub(super) fn matrix(&self) -> Matrix<'_> {
        let (columns, rows) = (self.head.get(1..).unwrap_or_default(), self.names());
        let columns: Vec<_> = columns.iter().map(String::as_str).collect();
        let cell = |row: usize, column: usize| {
            let text = self.rows[row].get(column + 1).map_or("", String::as_str);
            (text, Cell::read(text))
        };
        let across = columns.iter().any(|name| is_ours(name));
        let (contenders, cases) = if across { (columns, rows) } else { (rows, columns) };
        let cells = (0..contenders.len())
            .map(|contender| {
                let cell =
                    |case| if across { cell(case, contender) } else { cell(contender, case) };
                (0..cases.len()).map(cell).collect()
            })
            .collect();
        Matrix { contenders, cases, cells }
    }

    fn names(&self) -> Vec<&str> {
        self.rows.iter().map(|row| row.first().map_or("", String::as_str)).collect()
    }
}

/// The table without the spaces that align it in a terminal.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        f.write_str(&line(&self.head))?;
        writeln!(f, "| --- |{}", " ---: |".repeat(self.head.len().saturating_sub(1)))?;
        self.rows.iter().try_for_each(|row| f.write_str(&line(row)))?;
        self.notes.iter().try_for_each(|note| write!(f, "\n{note}\n"))
    }
}

/// The contenders and the cases.
#[derive(Debug)]
pub(super) struct Matrix<'a> {
    pub(super) contenders: Vec<&'a str>,
    pub(super) cases: Vec<&'a str>,
    /// For each contender, its cells: the text and its figure.
    pub(super) cells: Vec<Vec<(&'a str, Option<Cell>)>>,
}

pub(super) fn is_ours(name: &str) -> bool {
    name.starts_with("sluicegate")
}

fn is_rule(cells: &[String]) -> bool {
    cells.iter().all(|cell| !cell.is_empty() && cell.chars().all(|c| c == '-' || c == ':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "
Not about any table.

### The table, ns

| keys         | sluicegate |       governor |
| ---          |     ---: |           ---: |
| 1 × `u64`    |     12.0 |    9.0 (8–9.5) |
| 1000 × `u64` |     13.0 |              – |

Both threads
were busy.

Both.

### Chosen, but silent


### The layer

| service | request |
| --- | ---: |
| sluicegate, bare | 30 |
| governor | 20 |
";

    #[test]
    fn tables_are_read_and_written_without_the_spaces_of_a_terminal() {
        let tables = printed_in(PRINTED);
        let titles: Vec<_> = tables.iter().map(|table| &*table.title).collect();
        assert_eq!(titles, ["The table, ns", "The layer"]);
        let expected = "\
| keys | sluicegate | governor |
| --- | ---: | ---: |
| 1 × `u64` | 12.0 | 9.0 (8–9.5) |
| 1000 × `u64` | 13.0 | – |

Both threads
were busy.

Both.
";
        assert_eq!(tables[0].to_string(), expected);
        let again = format!("### The table, ns\n\n{expected}");
        assert_eq!(printed_in(&again)[0].to_string(), expected);
    }

    #[test]
    fn contenders_may_be_in_columns_or_in_rows() {
        let tables = printed_in(PRINTED);
        let across = tables[0].matrix();
        assert_eq!(across.contenders, ["sluicegate", "governor"]);
        assert_eq!(across.cases, ["1 × `u64`", "1000 × `u64`"]);
        assert_eq!(across.cells[1][0].0, "9.0 (8–9.5)");
        assert_eq!(across.cells[1][1], ("–", None));

        let down = tables[1].matrix();
        assert_eq!(down.contenders, ["sluicegate, bare", "governor"]);
        assert_eq!(down.cases, ["request"]);
        assert_eq!(down.cells[1][0].1, Cell::read("20"));
    }
}
