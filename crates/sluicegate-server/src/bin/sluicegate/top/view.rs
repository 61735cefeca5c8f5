//! Draws the state of a server. What is drawn depends on the state and the size of the terminal only.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;
use ratatui::widgets::{Paragraph, RenderDirection, Sparkline};
use sluicegate_server::status::Status;

use super::report::{Line, heading, lines};
use crate::terminal::escaped;

/// The height of the sparklines, which are only drawn on a terminal that is high enough.
const SPARK: u16 = 2;
const HIGH_ENOUGH: u16 = 16;

/// The width of the names of the sparklines, and of the sparklines: a minute.
const LABEL: u16 = 8;
const SECONDS: u16 = 60;

/// What is known of a server.
#[derive(Debug, Default)]
pub(super) struct View {
    /// Its last answer.
    pub(super) status: Option<Status>,
    /// Why there is no newer one.
    pub(super) trouble: Option<String>,
    /// The first line that is shown.
    pub(super) from: usize,
    /// The lines of the last answer, for a terminal of this width: they are laid out once, and not for each key.
    pub(super) laid_out: Option<(u16, Vec<Line>)>,
}

/// Draws the whole screen. Scrolls back if there is nothing at the place that was scrolled to.
pub(super) fn draw(frame: &mut Frame<'_>, view: &mut View) {
    let mut rest = frame.area();
    let title = view.status.as_ref().map_or_else(|| "sluicegate".to_owned(), heading);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    frame.render_widget(Paragraph::new(title).style(bold), take(&mut rest, 1));
    let keys = take_last(&mut rest);
    frame.render_widget(Paragraph::new("q ends, arrows scroll").style(Modifier::DIM), keys);
    if let Some(trouble) = &view.trouble {
        let text = format!("asking again: {trouble}");
        let line = Paragraph::new(text).style(Style::new().fg(Color::Red));
        frame.render_widget(line, take(&mut rest, 1));
    }
    let Some(status) = &view.status else {
        if view.trouble.is_none() {
            frame.render_widget(Paragraph::new("connecting"), rest);
        }
        return;
    };
    if frame.area().height >= HIGH_ENOUGH {
        for (name, seconds, color) in [
            ("served", seconds(status, "served"), Color::Green),
            ("refused", seconds(status, "refused"), Color::Red),
        ] {
            let area = take(&mut rest, SPARK);
            frame.render_widget(Paragraph::new(name), area);
            let spark = Sparkline::default().data(&seconds).style(Style::new().fg(color));
            let label = LABEL.min(area.width);
            let width = (area.width - label).min(SECONDS);
            let area = Rect { x: area.x + label, width, ..area };
            frame.render_widget(spark.direction(RenderDirection::RightToLeft), area);
        }
    }
    view.laid_out.take_if(|(width, _)| *width != rest.width);
    let (_, lines) =
        view.laid_out.get_or_insert_with(|| (rest.width, lines(status, Some(rest.width))));
    view.from = view.from.min(lines.len().saturating_sub(usize::from(rest.height)));
    let shown = lines.iter().skip(view.from).take(usize::from(rest.height));
    let shown = shown.map(|line| {
        let style = if line.is_title { bold } else { Style::new() };
        ratatui::text::Line::styled(line.text.as_str(), style)
    });
    frame.render_widget(Paragraph::new(shown.collect::<Vec<_>>()), rest);
}

/// The requests in each second, the latest first.
fn seconds(status: &Status, what: &str) -> Vec<u64> {
    let seconds = status.seconds.get(what).into_iter().flatten().rev();
    // Sparklines multiply by the height.
    seconds.map(|requests| (*requests).min(u64::from(u32::MAX))).collect()
}

/// The first lines, which the rest is without.
fn take(rest: &mut Rect, height: u16) -> Rect {
    let height = height.min(rest.height);
    let taken = Rect { height, ..*rest };
    (rest.y, rest.height) = (rest.y + height, rest.height - height);
    taken
}

/// The last line, which the rest is without.
fn take_last(rest: &mut Rect) -> Rect {
    let height = rest.height.min(1);
    rest.height -= height;
    Rect { y: rest.y + rest.height, height, ..*rest }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::json;

    use super::*;

    fn status() -> Status {
        serde_json::from_value(json!({
            "version": "1.2.3", "uptime_seconds": 7300, "counting": true, "keys": "shown",
            "requests": { "served": { "total": 12345, "per_second": 40.0 },
                "refused": { "total": 7, "per_second": 2.5 }, "failed": { "total": 0, "per_second": 0.5 } },
            "seconds": { "served": [1, 2, u64::MAX], "refused": [0, u64::MAX] },
            "policies": [{
                "policy": "login", "limits": ["5/minute"], "rule": "by ip",
                "verdicts": { "admitted": { "total": 12345, "per_second": 40.0 },
                    "refused": { "total": 7, "per_second": 2.5 } },
                "served": [1, 2, u64::MAX], "refused": [0, u64::MAX],
            }, { "policy": "\u{1b}[2J", "served": [u64::MAX] }],
            "refused": [{ "policy": "login", "refusals": 7, "keys": [
                { "who": "\u{1b}]0;owned\u{7}\nroot\u{202e}", "at_least": 5, "at_most": 7 },
            ] }],
            "latency": { "measured": 3, "p50_us": 2, "p90_us": 3, "p99_us": 1500, "max_us": 2000 },
            "store": { "kind": "redis", "breaker": "open", "errors": { "too_slow": 3 } },
            "in_force": ["login: by address", "  5/minute"],
            "pending": [{ "files": "rules", "problems": ["rules.toml:1:1: what\u{1b}c"] }],
        }))
        .expect("a status")
    }

    fn drawn(view: &mut View, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        terminal.draw(|frame| draw(frame, view)).expect("a drawing");
        let cells = terminal.backend().buffer().content();
        let rows = cells.chunks(usize::from(width.max(1)));
        rows.map(|row| row.iter().map(ratatui::buffer::Cell::symbol).collect()).collect()
    }

    fn view() -> View {
        View { status: Some(status()), ..View::default() }
    }

    #[test]
    fn rates_and_policies_are_on_an_ordinary_terminal() {
        let text = drawn(&mut view(), 80, 24).join("\n");
        for expected in [
            "sluicegate 1.2.3, up 2 h",
            "served 40/s, refused 2.5/s, failed 0.5/s, p99 1.5 ms, store redis",
            "      40        2.5  login      admitted 12,345, refused 7",
            "  5 to 7",
            "9 in 10 within    3 µs",
            "half within",
        ] {
            assert!(text.contains(expected), "{expected} is not in:\n{text}");
        }
    }

    #[test]
    fn calls_that_failed_before_a_decision_are_in_the_terminal_and_none_are_not_told() {
        let rows = |total: u64, measured: u64| {
            let mut status = status();
            status.failed_calls.total = total;
            status.latency.measured = measured;
            let rows = drawn(&mut View { status: Some(status), ..View::default() }, 100, 60);
            rows.into_iter().filter(|row| row.contains("failed before")).collect::<Vec<_>>()
        };
        for measured in [3, 0] {
            let shown = rows(1_234, measured);
            assert_eq!(shown.len(), 1, "{shown:?}");
            assert!(
                shown[0].contains("before a decision") && shown[0].contains("1,234"),
                "{shown:?}"
            );
        }
        assert_eq!(rows(0, 3), [""; 0]);
    }

    #[test]
    fn a_narrow_terminal_shows_numbers_and_names() {
        let text = drawn(&mut view(), 40, 20).join("\n");
        assert!(text.contains("      40        2.5  login"), "{text}");
        assert!(text.contains("refused most"), "{text}");
    }

    #[test]
    fn terminals_of_any_size_are_drawn_on() {
        for width in 0..24 {
            for height in 0..24 {
                drawn(&mut view(), width, height);
                drawn(&mut View::default(), width, height);
                let trouble = Some("no answer".to_owned());
                drawn(&mut View { trouble, ..view() }, width, height);
            }
        }
        drawn(&mut view(), 500, 300);
    }

    #[test]
    fn what_a_key_or_a_policy_would_do_to_the_terminal_is_shown_and_not_done() {
        let rows = drawn(&mut view(), 200, 60);
        let text = rows.join("\n");
        for escaped in
            [r"\u{1b}]0;owned\u{7}\nroot\u{202e}", r"\u{1b}[2J", r"rules.toml:1:1: what\u{1b}c"]
        {
            assert!(text.contains(escaped), "{escaped} is not in:\n{text}");
        }
        let is_harmful = |char: char| char.is_control() || char == '\u{202e}';
        assert!(!rows.iter().any(|row| row.contains(is_harmful)), "{text}");
    }

    #[test]
    fn a_server_that_is_away_is_shown_with_what_is_known() {
        let trouble = Some("127.0.0.1:6070: cannot reach the server".to_owned());
        let text = drawn(&mut View { trouble, ..view() }, 80, 24).join("\n");
        assert!(text.contains("asking again: 127.0.0.1:6070: cannot reach the server"), "{text}");
        assert!(text.contains("login"), "{text}");
        assert!(drawn(&mut View::default(), 80, 24)[1].starts_with("connecting"));
    }

    #[test]
    fn scrolling_ends_at_the_last_line() {
        let mut view = View { from: usize::MAX, ..view() };
        let rows = drawn(&mut view, 80, 10);
        assert!(rows[8].contains("5/minute"), "{rows:?}");
        assert!(view.from > 0 && view.from < 100);
    }
}

// Numbers as people read them.

/// With commas between thousands.
pub(super) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
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

// Rows of text in columns. What came from the server is escaped here, and nowhere else is it written.

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
mod table_tests {
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
