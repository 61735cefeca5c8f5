use std::sync::Arc;
use std::time::Duration;

use sluicegate::clock::Clock;
use sluicegate::key::KeyBuf;

use super::latency::Latencies;
use crate::outgoing::{AnyKey, Origin, OutgoingRequest, OutgoingView};
use crate::retry::Budget;
use crate::retry::repeat::Repeatable;
use crate::table::{RowKey, Table};

/// What all services of a layer share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) table: Table<Latencies>,
    pub(super) clock: Clock,
    pub(super) key: Option<AnyKey>,
    pub(super) percentile: f64,
    pub(super) budget: Arc<Budget>,
    pub(super) repeatable: Repeatable,
}

/// Where the time of a request is noted.
#[derive(Debug)]
pub(super) struct Watched {
    shared: Arc<Shared>,
    key: RowKey,
    /// When the request left.
    sent: Option<u64>,
}

impl Shared {
    /// The row of `request`. A request without the key shares that of its origin.
    pub(super) fn watch(self: &Arc<Self>, request: &impl OutgoingRequest) -> Watched {
        let origin = self.table.key(Origin::parts(request.target()));
        let own = |key: &AnyKey| KeyBuf::from_view(key, &OutgoingView::new(request)).ok();
        let key = match self.key.as_ref().and_then(own) {
            Some(own) => self.table.key((origin, own)),
            None => origin,
        };
        Watched { shared: self.clone(), key, sent: None }
    }
}

impl Watched {
    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(super) const fn has_left(&self) -> bool {
        self.sent.is_some()
    }

    /// Notes that the request leaves. Returns after which time its response is late, if that is known.
    pub(super) fn leaves(&mut self) -> Option<Duration> {
        let now = self.shared.clock.now();
        self.sent = Some(now);
        self.shared.budget.deposit();
        let late = self.shared.table.with(self.key, now, |row| row.late(now));
        late.flatten().map(Duration::from_micros)
    }

    /// Notes that there is a response, or that of a copy. The request itself takes as long at least.
    pub(super) fn answered(&mut self) {
        self.note(Latencies::note);
    }

    fn note(&mut self, note: impl FnOnce(&mut Latencies, u64, u64, f64)) {
        let Some(sent) = self.sent.take() else { return };
        let (now, percentile) = (self.shared.clock.now(), self.shared.percentile);
        let micros = now.saturating_sub(sent);
        self.shared.table.with(self.key, now, |row| note(row, now, micros, percentile));
    }

    /// Ends without telling anything: a failure says nothing of how long responses take.
    pub(super) const fn failed(&mut self) {
        self.sent = None;
    }
}

/// Nobody waits any longer.
impl Drop for Watched {
    fn drop(&mut self) {
        self.note(Latencies::note_missing);
    }
}
