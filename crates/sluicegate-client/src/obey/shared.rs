use std::sync::Arc;
use std::time::Duration;

use sluicegate::clock::Clock;
use sluicegate::key::KeyBuf;

use super::row::{Line, ServerRow};
use super::signal::Signal;
use super::standing::{Rules, Turn};
use crate::error::Refused;
use crate::outgoing::{AnyKey, Origin, OutgoingRequest, OutgoingResponse, OutgoingView, Target};
use crate::table::{RowKey, Table};

/// What all services of a layer share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) table: Table<ServerRow>,
    pub(super) clock: Clock,
    pub(super) wait: Duration,
    /// Most requests that wait for one server.
    pub(super) waiting: usize,
    pub(super) rules: Rules,
    pub(super) key: Option<AnyKey>,
}

/// Whom a request is counted with: its origin, and the rest of its key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Server {
    origin: RowKey,
    rest: Option<RowKey>,
    whole: RowKey,
}

/// The right to send a request. Dropped, it says that no response came.
#[derive(Debug)]
pub(super) struct Permit {
    shared: Arc<Shared>,
    server: Server,
    turn: Turn,
}

/// What a request is told.
pub(super) enum Answer {
    Send(Permit),
    /// Ask again after this time, or at the next news. No news can make it shorter if it is final.
    Wait {
        time: Duration,
        is_final: bool,
    },
    Full,
}

impl Shared {
    pub(super) fn server(&self, request: &impl OutgoingRequest) -> Server {
        let rest = self.key.as_ref().map(|key| {
            let rest = KeyBuf::from_view(key, &OutgoingView::new(request));
            // A key that is not there is one of its own.
            self.table.key(&rest.unwrap_or_default())
        });
        self.server_of(request.target(), rest)
    }

    fn server_of(&self, target: Target<'_>, rest: Option<RowKey>) -> Server {
        let origin = self.table.key(&KeyBuf::of(Origin::parts(target)));
        let whole = rest.map_or(origin, |rest| self.table.both(origin, rest));
        Server { origin, rest, whole }
    }

    /// Whether a request may be sent. One that has not waited does not overtake those that wait.
    pub(super) fn ask(self: &Arc<Self>, server: &Server, has_waited: bool) -> Answer {
        let now = self.clock.now();
        let asked = self.table.with(server.whole, now, |row| {
            if row.waiting > 0 && !has_waited {
                // It waits for as long as the first one, at least.
                let wait = row.standing.not_before().saturating_sub(now);
                return (Turn::Wait(Duration::from_micros(wait)), wait > 0);
            }
            (row.standing.ask(now, &self.rules), row.standing.is_final(now))
        });
        match asked {
            None => Answer::Full,
            Some((Turn::Wait(time), is_final)) => Answer::Wait { time, is_final },
            Some((turn, _)) => Answer::Send(Permit { shared: self.clone(), server: *server, turn }),
        }
    }

    /// A place in the line.
    pub(super) fn join(self: &Arc<Self>, server: &Server) -> Result<Place, Refused> {
        let joined = self.table.with(server.whole, self.clock.now(), |row| {
            (row.waiting < self.waiting).then(|| row.join())
        });
        match joined.flatten() {
            Some(line) => Ok(Place { shared: self.clone(), server: *server, line }),
            None => Err(Refused::new("too many requests wait for its server", None)),
        }
    }
}

impl Permit {
    /// Notes the response.
    pub(super) fn observe(self, response: &impl OutgoingResponse) {
        let shared = &self.shared;
        let now = shared.clock.now();
        let since_epoch = Duration::from_micros(now);
        let signal = Signal::read(response.status(), response.headers(), since_epoch);
        let random = fastrand::u32(..);
        let Some(other) = self.other_source(response) else {
            shared.table.with(self.server.whole, now, |row| {
                row.standing.observe(now, &signal, self.turn, &shared.rules, random);
                row.tell();
            });
            return self.forget();
        };
        // A redirect led to another origin: it speaks for itself. The first one has served.
        shared.table.with(other.whole, now, |row| {
            row.standing.hear(now, &signal, &shared.rules, random);
            row.tell();
        });
        let served = Signal::default();
        shared.table.with_known(self.server.whole, |row| {
            row.standing.observe(now, &served, self.turn, &shared.rules, random);
            row.tell();
        });
        self.forget();
    }

    /// The server that a response comes from, if it is another one.
    fn other_source(&self, response: &impl OutgoingResponse) -> Option<Server> {
        let source = self.shared.server_of(response.source()?, self.server.rest);
        (source.origin != self.server.origin).then_some(source)
    }

    /// Ends without telling anything.
    fn forget(mut self) {
        self.turn = Turn::Wait(Duration::ZERO);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if matches!(self.turn, Turn::Wait(_)) {
            return;
        }
        self.shared.table.with_known(self.server.whole, |row| {
            row.standing.give_up(self.turn);
            row.tell();
        });
    }
}

/// A place in the queue of a server. Dropping it frees the place.
#[derive(Debug)]
pub(super) struct Place {
    shared: Arc<Shared>,
    server: Server,
    pub(super) line: Arc<Line>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.table.with_known(self.server.whole, |row| row.leave());
    }
}
