//! Rows of text in columns. What came from the server is escaped here, and nowhere else is it written.

use ratatui::text::Span;

use crate::terminal::{escaped, with_commas};

/// Rows of cells. The last column is text of any length; the ones before it are lined up.
pub(super) struct Table {
    /// How many columns are numbers, from the first one on.
    numbers: usize,
    rows: Vec<Vec<String>>,
}

/// The space between columns.
const GAP: usize = 2;

/// The most rows that are laid out for a terminal: a hundred screens. A pool of leases may have ten thousand clients.
const MOST_ROWS: usize = 2_000;

impl Table {
    pub(super) fn new(numbers: usize) -> Self {
        Self { numbers, rows: Vec::new() }
    }

    pub(super) fn row<const COLUMNS: usize>(&mut self, cells: [&str; COLUMNS]) {
        self.rows.push(cells.into_iter().map(escaped).collect());
    }

    /// The rows as text. If there is a width, columns before the last one take at most half of it, the last one is no
    /// longer than it, and there are no more rows than anybody scrolls through.
    pub(super) fn lines(&self, width: Option<u16>) -> Vec<String> {
        let most = width.map_or(usize::MAX, |width| usize::from(width / 2).max(1));
        let shown = width.map_or(self.rows.len(), |_| self.rows.len().min(MOST_ROWS));
        let mut widths = Vec::new();
        for cells in &self.rows[..shown] {
            widths.resize(widths.len().max(cells.len()), 0);
            for (widest, cell) in widths.iter_mut().zip(cells) {
                *widest = wide(cell).min(most).max(*widest);
            }
        }
        let line = |cells: &Vec<String>| {
            let mut line = String::new();
            for (at, (cell, widest)) in cells.iter().zip(&widths).enumerate() {
                let is_last = at + 1 == cells.len();
                let cell = match (is_last, width) {
                    (false, _) => cut(cell, *widest),
                    (true, Some(width)) => cell.chars().take(width.into()).collect(),
                    (true, None) => cell.clone(),
                };
                let space = " ".repeat(widest.saturating_sub(wide(&cell)));
                match (is_last, at < self.numbers) {
                    (true, _) => line.push_str(&cell),
                    (false, true) => line.extend([&*space, &*cell]),
                    (false, false) => line.extend([&*cell, &*space]),
                }
                line.push_str(&" ".repeat(if is_last { 0 } else { GAP }));
            }
            line
        };
        let mut lines: Vec<_> = self.rows[..shown].iter().map(line).collect();
        if let more @ 1.. = self.rows.len() - shown {
            lines.push(format!("and {more} more lines: `top --once` prints all of them"));
        }
        lines
    }
}

/// How many cells of a terminal the text takes.
fn wide(text: &str) -> usize {
    Span::raw(text).width()
}

/// At most this much of the text.
fn cut(text: &str, width: usize) -> String {
    if wide(text) <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for char in text.chars() {
        kept.push(char);
        if wide(&kept) >= width {
            kept.pop();
            break;
        }
    }
    kept + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_lined_up_and_long_texts_cut() {
        let mut table = Table::new(1);
        table.row(["times", "key", "policy"]);
        table.row(["5", "192.0.2.7", "login"]);
        table.row(["1,000", "日本", "all"]);
        assert_eq!(
            table.lines(None),
            ["times  key        policy", "    5  192.0.2.7  login", "1,000  日本       all"]
        );
        assert_eq!(table.lines(Some(10))[1], "    5  192.…  login");
        for width in 0..12 {
            table.lines(Some(width));
        }
    }

    #[test]
    fn a_terminal_gets_no_more_than_anybody_reads_and_a_pipe_gets_everything() {
        let mut table = Table::new(0);
        let long = "x".repeat(100_000);
        for _ in 0..3_000 {
            table.row(["name", &long[..1_000]]);
        }
        table.row(["name", &long]);
        let lines = table.lines(Some(80));
        assert_eq!(lines.len(), MOST_ROWS + 1);
        assert!(lines.iter().all(|line| line.len() <= 40 + GAP + 80), "{lines:?}");
        assert_eq!(lines[MOST_ROWS], "and 1001 more lines: `top --once` prints all of them");
        let lines = table.lines(None);
        assert_eq!((lines.len(), lines[3_000].len()), (3_001, 4 + GAP + 100_000));
    }
}

// Numbers as people read them.

/// With commas between thousands.
pub(super) fn count(value: u64) -> String {
    with_commas(&value.to_string())
}

/// With one digit behind the point if it is small.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
pub(super) fn rate(value: f64) -> String {
    match value {
        value if value < 10.0 && value.fract() != 0.0 => format!("{value:.1}"),
        value => count(value.round() as u64),
    }
}

/// A time in microseconds, or a dash.
pub(super) fn time(us: Option<u64>) -> String {
    match us {
        None => "-".to_owned(),
        Some(us @ 0..1_000) => format!("{us} µs"),
        Some(us @ 1_000..1_000_000) => format!("{}.{} ms", us / 1_000, us / 100 % 10),
        Some(us) => format!("{}.{} s", us / 1_000_000, us / 100_000 % 10),
    }
}

/// A span in seconds.
pub(super) fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod numbers_tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_extremes_do_not_panic() {
        assert_eq!(
            (count(0), count(999), count(1_234_567)),
            ("0".into(), "999".into(), "1,234,567".into())
        );
        assert_eq!(
            (rate(0.25), rate(3.0), rate(1_234.6)),
            ("0.2".into(), "3".into(), "1,235".into())
        );
        assert_eq!((time(Some(999)), time(Some(1_250))), ("999 µs".into(), "1.2 ms".into()));
        assert_eq!((time(Some(2_500_000)), time(None)), ("2.5 s".into(), "-".into()));
        assert_eq!(
            (span(119), span(120), span(200_000)),
            ("119 s".into(), "2 min".into(), "2 days".into())
        );
        for value in [f64::MAX, -1e300, f64::NAN, f64::INFINITY] {
            assert!(!rate(value).is_empty());
        }
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
        assert!(!time(Some(u64::MAX)).is_empty() && !span(u64::MAX).is_empty());
    }
}
