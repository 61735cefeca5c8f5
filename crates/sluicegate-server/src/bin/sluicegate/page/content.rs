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
    /// The one that is shown first.
    pub(crate) first_picture: usize,
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
    /// The window in seconds.
    pub(crate) window: f64,
    /// Where the line is at first.
    pub(crate) limit: u64,
    /// Levels, with the clients and the requests of each.
    pub(crate) steps: Vec<(u64, u64, u64)>,
}

impl Picture {
    pub(crate) fn new(window: Duration, limit: u64, steps: Vec<(u64, u64, u64)>) -> Self {
        Self { clients: "clients", window: window.as_secs_f64(), limit, steps }
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
    fn names_are_short_and_change_no_order() {
        assert_eq!(shown("GET /a\u{202e}b"), "GET /a\\u{202e}b");
        assert_eq!(shown(&"é".repeat(1_000)).chars().count(), 161);
    }
}
