use std::time::Duration;

use http::{HeaderMap, header};
use sluicegate_throttle::Class;
use sluicegate_throttle::announce::{Announcement, FIELD};

use crate::outgoing::Context;

/// The level of admission that a server with `sluicegate-throttle` announces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Announced(Announcement);

impl Announced {
    /// What the response announces. A field that is malformed or was kept by a cache is none.
    pub(super) fn read(headers: &HeaderMap) -> Option<Self> {
        let mut lines = headers.get_all(FIELD).into_iter();
        let line = lines.next()?;
        if lines.next().is_some() || headers.contains_key(header::AGE) {
            return None;
        }
        Announcement::parse(line.to_str().ok()?).map(Self)
    }

    /// For how long this is to be believed: at most a minute.
    pub(super) const fn lasts(&self) -> Duration {
        self.0.lasts()
    }

    /// Whether a request of this context is admitted. Those of a class that is not known are left to the server.
    pub(super) fn admits(&self, context: Option<&Context>) -> bool {
        let rank = match context {
            Some(context) => context.rank(),
            None => Context::new().rank(),
        };
        // One of four.
        rank.is_none_or(|rank| self.0.admits(Class::at(rank as u8)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Announced> {
        let mut headers = HeaderMap::new();
        headers.insert(FIELD, text.parse().unwrap());
        Announced::read(&headers)
    }

    #[test]
    fn the_level_says_which_classes_are_admitted() {
        let level = read(r#"2;of=4;lowest="CRITICAL";t=3"#).unwrap();
        assert_eq!(level.lasts(), Duration::from_secs(3));
        let admits = |class: &'static str| level.admits(Some(&Context::new().criticality(class)));
        assert!(admits("CRITICAL_PLUS") && admits("critical") && level.admits(None));
        assert!(!admits("SHEDDABLE_PLUS") && !admits("SHEDDABLE"));
        assert!(admits("a class of its own"));
        assert!(!read("0;of=4").unwrap().admits(None));
        assert!(read("1;of=1").unwrap().admits(Some(&Context::new().criticality("SHEDDABLE"))));
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
