use std::time::Duration;

use http::{HeaderMap, header};
use sluicegate::key::KeyBuf;
use sluicegate_throttle::Class;
use sluicegate_throttle::announce::{Announcement, FIELD};

use super::history::History;
use super::layer::AdaptiveThrottleBuilder;
use crate::error::Refused;
use crate::outgoing::{Context, OutgoingRequest, OutgoingView};
use crate::table::{Row, RowKey, Table, Worth};

/// What all services of a layer share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: AdaptiveThrottleBuilder,
    pub(super) table: Table<Server>,
}

/// What is known of one server.
#[derive(Debug, Default)]
pub(super) struct Server {
    /// Made with the first request.
    history: Option<Box<History>>,
    /// What it announced, and until when that holds.
    announced: Option<(Announcement, u64)>,
    /// When the last request was sent.
    sent: u64,
    /// Since when requests have been sent that it has not answered; 0 if it has answered since.
    silent: u64,
    /// How many microseconds it usually takes to accept a request; 0 if that is not known.
    usual: u64,
}

/// A request is sent in each second, whatever has become of the others.
const PROBE: u64 = 1_000_000;

/// A request that its caller gives up says something of the server if it was under way, or the server was silent, for
/// this many times as long as the server usually takes, and this many microseconds. Callers that hang up earlier have
/// changed their minds.
const TIMES: u64 = 2;
const LEAST: u64 = 10_000;

/// The same for a server that has not accepted anything yet, in microseconds.
const UNKNOWN: u64 = 50_000;

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

impl Shared {
    pub(super) fn new(settings: AdaptiveThrottleBuilder) -> Self {
        Self { table: Table::new(settings.servers), settings }
    }

    /// Whom a request is counted with. Requests without the key are counted together.
    pub(super) fn key(&self, request: &impl OutgoingRequest) -> RowKey {
        let key = KeyBuf::from_view(&self.settings.key, &OutgoingView::new(request));
        self.table.key(&key.unwrap_or_default())
    }

    /// Whether a request may be sent, by a random number from 0 to 1.
    pub(super) fn admit(
        &self,
        key: RowKey,
        request: &impl OutgoingRequest,
        random: f64,
    ) -> Result<u64, Refused> {
        let now = self.settings.clock.now();
        let context = Context::of(request);
        let admitted = self.table.with(key, now, |server| {
            let history =
                server.history.get_or_insert_with(|| Box::new(History::new(self.settings.window)));
            let rejection = history.rejection(now, self.settings.k).min(self.settings.most);
            let wants = history.requests();
            if let Some((level, until)) = &server.announced {
                if now < *until && !admits(level, context.as_ref()) {
                    // It says nothing of the requests of other classes.
                    let wait = Duration::from_micros(until - now);
                    return Err(Refused::new("its server sheds requests of its class", Some(wait)));
                }
            }
            // Whatever the share: a program of one request a second would not see for minutes that the server is back.
            let is_probe = now.saturating_sub(server.sent) >= PROBE;
            if wants < self.settings.from || random >= rejection || is_probe {
                server.sent = now;
                if server.silent == 0 {
                    server.silent = now;
                }
                return Ok(now);
            }
            // What is held back counts as wanted, or the share would fall as soon as it is obeyed.
            history.request(now);
            Err(Refused::new("its server rejects more than it accepts", None))
        });
        // Without a row, nothing is known.
        admitted.unwrap_or(Ok(now))
    }

    /// Notes how a request ended that was sent at this instant.
    pub(super) fn ended(
        &self,
        key: RowKey,
        sent: u64,
        ended: Ended,
        announced: Option<Announcement>,
    ) {
        let now = self.settings.clock.now();
        self.table.with_known(key, |server| {
            server.silent = 0;
            server.note(now, sent, ended);
            server.announced = announced.map(|level| {
                let until = now.saturating_add(level.lasts().as_micros() as u64);
                (level, until)
            });
        });
    }

    /// Notes that the caller of a request that was sent at this instant has given it up.
    pub(super) fn given_up(&self, key: RowKey, sent: u64) {
        let now = self.settings.clock.now();
        self.table.with_known(key, |server| {
            let patience = match server.usual {
                0 => UNKNOWN,
                usual => (TIMES * usual).max(LEAST),
            };
            let since = if server.silent == 0 { sent } else { sent.min(server.silent) };
            if now.saturating_sub(since) >= patience {
                server.note(now, sent, Ended::Rejected);
            }
        });
    }
}

impl Server {
    fn note(&mut self, now: u64, sent: u64, ended: Ended) {
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
fn admits(level: &Announcement, context: Option<&Context>) -> bool {
    let rank = context.map_or_else(|| Context::new().rank(), Context::rank);
    // One of four.
    rank.is_none_or(|rank| level.admits(Class::at(rank as u8)))
}

#[cfg(test)]
mod tests {
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
