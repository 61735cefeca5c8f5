use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::layer::Shared;
use super::server_row::Line;
use super::signal::Signal;
use super::standing::Turn;
use crate::call::{end, until, within};
use crate::error::{BoxError, Refused};
use crate::outgoing::{Origin, OutgoingRequest, OutgoingResponse, OutgoingView, Target};
use crate::table::RowKey;
use sluicegate::key::KeyBuf;

/// Whom a request is counted with: its origin, and the rest of its key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Server {
    origin: RowKey,
    rest: Option<RowKey>,
    whole: RowKey,
}

/// The right to send a request. Dropped, it says that no response came.
#[derive(Debug)]
pub struct Permit {
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
        let rest = self.settings.key.as_ref().map(|key| {
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
        let now = self.settings.clock.now();
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
        let joined = self.table.with(server.whole, self.settings.clock.now(), |row| {
            (row.waiting < self.settings.waiting).then(|| row.join())
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
        let now = shared.settings.clock.now();
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

/// Waits for a turn in the order of arrival, for `patience` at most.
///
/// Without a permit the request may go, uncounted: the table has no room for its server.
pub(super) async fn turn(
    shared: Arc<Shared>,
    server: Server,
    patience: Duration,
) -> Result<Option<Permit>, BoxError> {
    let clock = shared.settings.clock.clone();
    let deadline = end(&clock, patience);
    let left = || until(&clock, deadline);

    let place = shared.join(&server)?;
    let front = place.line.front.acquire();
    let Some(front) = within(&clock, left(), front).await else {
        return Err(too_long(None).into());
    };
    // The semaphore is never closed.
    let _front = front.ok();
    loop {
        // Before it asks, so that news between the answer and the wait is not missed.
        let mut news = pin!(place.line.news.notified());
        news.as_mut().enable();
        let (time, is_final) = match shared.ask(&server, true) {
            Answer::Send(permit) => return Ok(Some(permit)),
            Answer::Full => return Ok(None),
            Answer::Wait { time, is_final } => (time, is_final),
        };
        let left = left();
        if left.is_zero() || (is_final && time > left) {
            return Err(too_long(Some(time)).into());
        }
        within(&clock, time.min(left), news).await;
    }
}

/// The refusal of a request that would have to wait for too long.
pub(super) fn too_long(time: Option<Duration>) -> Refused {
    Refused::new("its server asks for a longer wait than it has time for", time)
}
