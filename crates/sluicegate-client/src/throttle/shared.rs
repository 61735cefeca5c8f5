use std::time::Duration;

use sluicegate::clock::Clock;
use sluicegate::key::KeyBuf;

use super::announced::Announced;
use super::history::History;
use crate::error::Refused;
use crate::outgoing::{AnyKey, Context, OutgoingRequest, OutgoingView};
use crate::table::{Row, RowKey, Table, Worth};

/// What all services of a layer share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) table: Table<Server>,
    pub(super) clock: Clock,
    pub(super) key: AnyKey,
    pub(super) k: f64,
    pub(super) from: u32,
    pub(super) most: f64,
    pub(super) window: Duration,
}

/// What is known of one server.
#[derive(Debug, Default)]
pub(super) struct Server {
    /// Made with the first request.
    history: Option<Box<History>>,
    /// What it announced, and until when that holds.
    announced: Option<(Announced, u64)>,
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
    /// Whom a request is counted with. Requests without the key are counted together.
    pub(super) fn key(&self, request: &impl OutgoingRequest) -> RowKey {
        let key = KeyBuf::from_view(&self.key, &OutgoingView::new(request));
        self.table.key(&key.unwrap_or_default())
    }

    /// Whether a request may be sent, by a random number from 0 to 1.
    pub(super) fn admit(
        &self,
        key: RowKey,
        request: &impl OutgoingRequest,
        random: f64,
    ) -> Result<u64, Refused> {
        let now = self.clock.now();
        let context = Context::of(request);
        let admitted = self.table.with(key, now, |server| {
            let history = server.history.get_or_insert_with(|| Box::new(History::new(self.window)));
            let rejection = history.rejection(now, self.k).min(self.most);
            let wants = history.requests();
            if let Some((level, until)) = &server.announced {
                if now < *until && !level.admits(context.as_ref()) {
                    // It says nothing of the requests of other classes.
                    let wait = Duration::from_micros(until - now);
                    return Err(Refused::new("its server sheds requests of its class", Some(wait)));
                }
            }
            let is_probe = now.saturating_sub(server.sent) >= PROBE;
            if wants < self.from || random >= rejection || is_probe {
                server.sent = now;
                if server.silent == 0 {
                    server.silent = now;
                }
                return Ok(now);
            }
            history.request(now);
            Err(Refused::new("its server rejects more than it accepts", None))
        });
        // Without a row, nothing is known.
        admitted.unwrap_or(Ok(now))
    }

    /// Notes how a request ended that was sent at this instant.
    pub(super) fn ended(&self, key: RowKey, sent: u64, ended: Ended, announced: Option<Announced>) {
        let now = self.clock.now();
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
        let now = self.clock.now();
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
