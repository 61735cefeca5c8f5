use http::{HeaderMap, header};
use sluicegate_throttle::Class;
use sluicegate_throttle::announce::{Announcement, FIELD};

use super::history::History;
use crate::outgoing::Context;
use crate::table::{Row, Worth};

/// What is known of one server.
#[derive(Debug, Default)]
pub(super) struct Server {
    /// Made with the first request.
    pub(super) history: Option<Box<History>>,
    /// What it announced, and until when that holds.
    pub(super) announced: Option<(Announcement, u64)>,
    /// When the last request was sent.
    pub(super) sent: u64,
    /// Since when requests have been sent that it has not answered; 0 if it has answered since.
    pub(super) silent: u64,
    /// How many microseconds it usually takes to accept a request; 0 if that is not known.
    pub(super) usual: u64,
}

impl Row for Server {
    fn worth(&self, now: u64) -> Worth {
        match &self.history {
            Some(history) if !history.is_empty(now) => Worth::Something(history.requests().into()),
            _ => Worth::Nothing,
        }
    }
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Accepted,
    Rejected,
}

impl Server {
    pub(super) fn note(&mut self, now: u64, sent: u64, ended: Ended) {
        let Some(history) = &mut self.history else { return };
        // Only now: a request that waits further in says nothing of the server.
        history.request(now);
        match ended {
            Ended::Rejected => history.reject(now),
            Ended::Accepted => {
                history.accept(now);
                let took = now.saturating_sub(sent).max(1);
                self.usual = match self.usual {
                    0 => took,
                    usual => (7 * usual + took).div_ceil(8),
                };
            }
        }
    }
}

/// The level of admission that a server with `sluicegate-throttle` announces. A field that is malformed or was kept by a
/// cache is none.
pub(super) fn announced(headers: &HeaderMap) -> Option<Announcement> {
    let mut lines = headers.get_all(FIELD).into_iter();
    let line = lines.next()?;
    if lines.next().is_some() || headers.contains_key(header::AGE) {
        return None;
    }
    Announcement::parse(line.to_str().ok()?)
}

/// Whether a request of this context is admitted. Those of a class that is not known are left to the server.
pub(super) fn admits(level: &Announcement, context: Option<&Context>) -> bool {
    let rank = context.map_or_else(|| Context::new().rank(), Context::rank);
    // One of four.
    rank.is_none_or(|rank| level.admits(Class::at(rank as u8)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn read(text: &str) -> Option<Announcement> {
        let mut headers = HeaderMap::new();
        headers.insert(FIELD, text.parse().unwrap());
        announced(&headers)
    }

    #[test]
    fn the_level_says_which_classes_are_admitted() {
        let level = read(r#"2;of=4;lowest="CRITICAL";t=3"#).unwrap();
        assert_eq!(level.lasts(), Duration::from_secs(3));
        let admits =
            |class: &'static str| super::admits(&level, Some(&Context::new().criticality(class)));
        assert!(admits("CRITICAL_PLUS") && admits("critical") && super::admits(&level, None));
        assert!(!admits("SHEDDABLE_PLUS") && !admits("SHEDDABLE"));
        assert!(admits("a class of its own"));
        assert!(!super::admits(&read("0;of=4").unwrap(), None));
        assert!(super::admits(
            &read("1;of=1").unwrap(),
            Some(&Context::new().criticality("SHEDDABLE"))
        ));
    }

    #[test]
    fn what_is_no_level_says_nothing() {
        for text in [
            "",
            "2",
            "5;of=4",
            "-1;of=4",
            "2;of=0",
            "2;of=x",
            "2;of=4;t=-1",
            "a;of=4",
            "2;of=4,",
            "2.5;of=4",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(read("2;of=4;t=999999999999999").unwrap().lasts(), Duration::from_secs(60));
    }
}
