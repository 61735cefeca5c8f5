use std::time::Duration;

use serde::Serialize;

use super::traffic::TrafficContent;
use crate::terminal::escaped;

/// What a page shows.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Content {
    pub(crate) heading: String,
    pub(crate) summary: String,
    /// Names, values and classes of the large numbers.
    pub(crate) tiles: Vec<(&'static str, String, &'static str)>,
    pub(crate) traffic: TrafficContent,
    /// The clients by rank, in each window.
    pub(crate) pictures: Vec<Picture>,
    /// The window that is shown first.
    pub(crate) first_window: String,
    pub(crate) policies: Vec<PolicyContent>,
    /// A file of rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rules: Option<String>,
    /// How the figures were made, in sentences.
    pub(crate) how: Vec<String>,
}

/// Clients by rank, with a limit.
#[derive(Debug, Serialize)]
pub(crate) struct Picture {
    pub(crate) clients: &'static str,
    /// The window in words, such as `a minute`.
    pub(crate) window: String,
    /// Where the line is at first.
    pub(crate) limit: u64,
    /// Levels, with the clients and the requests of each.
    pub(crate) steps: Vec<(u64, u64, u64)>,
}

impl Picture {
    pub(crate) fn new(window: Duration, limit: u64, steps: Vec<(u64, u64, u64)>) -> Self {
        Self { clients: "clients", window: in_words(window), limit, steps }
    }
}

/// A window after `in`: `a minute`, `15 minutes`.
fn in_words(window: Duration) -> String {
    let seconds = window.as_secs();
    let units = [
        (86_400, "a day", "days"),
        (3_600, "an hour", "hours"),
        (60, "a minute", "minutes"),
        (1, "a second", "seconds"),
    ];
    let unit =
        units.into_iter().find(|(length, ..)| seconds > 0 && seconds.is_multiple_of(*length));
    match unit.filter(|_| window.subsec_nanos() == 0) {
        Some((length, one, _)) if seconds == length => one.to_owned(),
        Some((length, _, many)) => format!("{} {many}", seconds / length),
        None => format!("{window:?}"),
    }
}

/// A policy, and what it did.
#[derive(Debug, Serialize)]
pub(crate) struct PolicyContent {
    pub(crate) name: String,
    pub(crate) limit: String,
    pub(crate) rule: String,
    pub(crate) facts: Vec<(&'static str, String)>,
    pub(crate) refused: u64,
    pub(crate) over_time: OverTime,
    pub(crate) who: Vec<(String, u64)>,
    pub(crate) paths: Vec<(String, u64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) picture: Option<Picture>,
}

/// Refusals over time.
#[derive(Debug, Serialize)]
pub(crate) struct OverTime {
    pub(crate) seconds: f64,
    pub(crate) refused: Vec<u64>,
}

/// Text that clients have chosen, as short as a page needs it, and without what changes the order of characters.
pub(crate) fn shown(text: &str) -> String {
    const LENGTH: usize = 160;
    let mut short: String = text.chars().take(LENGTH).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    escaped(&short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_in_words_and_names_are_short() {
        for (millis, expected) in [
            (1_000, "a second"),
            (10_000, "10 seconds"),
            (60_000, "a minute"),
            (900_000, "15 minutes"),
            (3_600_000, "an hour"),
            (86_400_000, "a day"),
            (30 * 86_400_000, "30 days"),
            (1_500, "1.5s"),
        ] {
            assert_eq!(in_words(Duration::from_millis(millis)), expected);
        }
        assert_eq!(shown("GET /a\u{202e}b"), "GET /a\\u{202e}b");
        assert_eq!(shown(&"é".repeat(1_000)).chars().count(), 161);
    }
}
