//! Draws the state of a server. What is drawn depends on the state and the size of the terminal only.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::widgets::{Paragraph, RenderDirection, Sparkline};
use sluicegate_server::status::Status;

use super::report::{Line, heading, lines};

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
    let is_high = frame.area().height >= HIGH_ENOUGH && view.status.is_some();
    let spark = if is_high { SPARK } else { 0 };
    let heights = [1, u16::from(view.trouble.is_some()), spark, spark];
    let [top, told, served, refused, rest, keys] = Layout::vertical(
        heights
            .map(Constraint::Length)
            .into_iter()
            .chain([Constraint::Fill(1), Constraint::Length(1)]),
    )
    .areas(frame.area());
    let title = view.status.as_ref().map_or_else(|| "sluicegate".to_owned(), heading);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    frame.render_widget(Paragraph::new(title).style(bold), top);
    frame.render_widget(Paragraph::new("q ends, arrows scroll").style(Modifier::DIM), keys);
    if let Some(trouble) = &view.trouble {
        let text = format!("asking again: {trouble}");
        let line = Paragraph::new(text).style(Style::new().fg(Color::Red));
        frame.render_widget(line, told);
    }
    let Some(status) = &view.status else {
        if view.trouble.is_none() {
            frame.render_widget(Paragraph::new("connecting"), rest);
        }
        return;
    };
    if is_high {
        for (name, area, color) in
            [("served", served, Color::Green), ("refused", refused, Color::Red)]
        {
            let seconds = seconds(status, name);
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
