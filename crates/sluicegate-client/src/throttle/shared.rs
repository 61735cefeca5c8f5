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

impl Shared {
    /// Whom a request is counted with. Requests without the key are counted together.
    pub(super) fn key(&self, request: &impl OutgoingRequest) -> RowKey {
        let key = KeyBuf::from_view(&self.key, &OutgoingView::new(request));
        self.table.key(key.unwrap_or_default())
    }

    /// Whether a request may be sent, by a random number from 0 to 1.
    pub(super) fn admit(
        &self,
        key: RowKey,
        request: &impl OutgoingRequest,
        random: f64,
    ) -> Result<(), Refused> {
        let now = self.clock.now();
        let context = Context::of(request);
        let admitted = self.table.with(key, now, |server| {
            let history = server.history.get_or_insert_with(|| Box::new(History::new(self.window)));
            let rejection = history.rejection(now, self.k).min(self.most);
            let wants = history.requests();
            if let Some((level, until)) = &server.announced {
                if now < *until && !level.admits(context.as_ref()) {
                    history.request(now);
                    let wait = Duration::from_micros(until - now);
                    return Err(Refused::new("its server sheds requests of its class", Some(wait)));
                }
            }
            if wants < self.from || random >= rejection {
                return Ok(());
            }
            history.request(now);
            Err(Refused::new("its server rejects more than it accepts", None))
        });
        // Without a row, nothing is known.
        admitted.unwrap_or(Ok(()))
    }

    /// Notes how a request ended that was sent.
    pub(super) fn ended(&self, key: RowKey, ended: Ended, announced: Option<Announced>) {
        let now = self.clock.now();
        self.table.with_known(key, |server| {
            if let Some(history) = &mut server.history {
                // Only now: a request that waits further in says nothing of the server.
                history.request(now);
                if ended == Ended::Accepted {
                    history.accept(now);
                }
            }
            server.announced = announced.map(|level| {
                let until = now.saturating_add(level.lasts().as_micros() as u64);
                (level, until)
            });
        });
    }
}
