//! The streams that are open, and the time that passes for them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use metrics::{counter, describe_counter, describe_gauge, gauge};
use sluicegate_lease::Pool;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tonic::Status;

use super::message;
use super::quotas::{Quotas, ReportError, StreamId};
use super::unit::BucketUsage;
use super::wire::AssignmentMessage;
use crate::capacity::{BucketId, Masters, Shared};
use crate::service::Service;

/// What all streams share.
pub(super) struct QuotaStreams {
    service: Service,
    shared: Shared,
    state: Mutex<State>,
    /// One at a time sends, so that the assignments of a stream arrive in their order.
    turn: tokio::sync::Mutex<()>,
}

struct State {
    quotas: Quotas,
    streams: BTreeMap<StreamId, mpsc::Sender<Message>>,
    /// When the first of the orders was decided that are not sent yet.
    decided: Option<Instant>,
    /// The pauses of this process so far.
    pauses: u64,
}

/// A message to an Envoy.
pub(super) struct Message {
    pub(super) assignments: AssignmentMessage,
    /// It must not leave later than this.
    pub(super) until: Instant,
}

/// An Envoy that reads nothing loses its stream after this many messages.
const UNREAD: usize = 64;
const TICK: Duration = Duration::from_millis(100);
/// Assignments that have not left this long after they were decided never do: their streams end. They last from their
/// arrival on, so one from a process that stood still could outlive the mastership by that time. With as much on the
/// network, it is the second that the units reckon with.
const LATE: Duration = Duration::from_millis(500);

const STREAMS: &str = "sluicegate_quota_streams";
const BUCKETS: &str = "sluicegate_quota_buckets";
const REPORTS: &str = "sluicegate_quota_reports_total";
const IGNORED: &str = "sluicegate_quota_ignored_buckets_total";

impl QuotaStreams {
    /// Starts a task, which ends with the streams.
    pub(super) fn start(service: &Service, shared: &Shared) -> Arc<Self> {
        describe_gauge!(STREAMS, "Streams of the rate limit quota service.");
        describe_gauge!(
            BUCKETS,
            "Buckets that hold a part of a capacity, with those of lost streams."
        );
        describe_counter!(REPORTS, "Messages of Envoys with reports of usage.");
        describe_counter!(
            IGNORED,
            "Reported buckets that no capacity is for, or that are too large or too many."
        );
        let quotas = Quotas::new(shared.capacities());
        let streams = BTreeMap::new();
        let state = Mutex::new(State { quotas, streams, decided: None, pauses: 0 });
        let (service, shared) = (service.clone(), shared.clone());
        let streams =
            Arc::new(Self { service, shared, state, turn: tokio::sync::Mutex::default() });
        let weak = Arc::downgrade(&streams);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(TICK).await;
                let Some(streams) = weak.upgrade() else { return };
                streams.tick().await;
            }
        });
        streams
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream begins. Returns its assignments. `None` while the server stops.
    pub(super) fn open(
        &self,
        name: Option<&str>,
    ) -> Option<Result<(StreamId, mpsc::Receiver<Message>), ReportError>> {
        if self.service.is_stopping() {
            return None;
        }
        let mut state = self.state();
        Some(state.quotas.open(name).map(|id| {
            let (sender, receiver) = mpsc::channel(UNREAD);
            state.streams.insert(id, sender);
            (id, receiver)
        }))
    }

    pub(super) fn close(&self, id: StreamId) {
        let mut state = self.state();
        state.streams.remove(&id);
        state.quotas.close(id);
    }

    /// A stream has ended because of what came on it.
    pub(super) fn failed(&self, status: &Status) {
        self.service.health().failed("rlqs", "ended", &status.message());
    }

    /// A part of a message has come.
    pub(super) fn report(
        &self,
        id: StreamId,
        domain: &str,
        usages: Vec<(BucketId, BucketUsage)>,
    ) -> Result<(), ReportError> {
        let mut state = self.state();
        // Where an assignment was not sent, a report does not prove that it has arrived.
        if state.streams.get(&id).is_none_or(mpsc::Sender::is_closed) {
            return Ok(());
        }
        let ignored = self
            .divide(&mut state, |quotas, now, pool| quotas.report(now, id, domain, usages, pool))?;
        if ignored > 0 {
            counter!(IGNORED).increment(ignored as u64);
        }
        Ok(())
    }

    /// An Envoy has to forget the buckets with these ids, which this server does not know.
    pub(super) fn forget(&self, id: StreamId, ids: Vec<Bytes>) {
        if ids.is_empty() {
            return;
        }
        counter!(IGNORED).increment(ids.len() as u64);
        let mut state = self.state();
        let Some(stream) = state.streams.get(&id) else { return };
        // Not in turn with assignments, which are for other buckets.
        let until = Instant::now() + LATE;
        let message = Message { assignments: message::abandonment(ids), until };
        if stream.try_send(message).is_err() {
            state.streams.remove(&id);
        }
    }

    /// A whole message has come. Assignments are sent before this returns.
    pub(super) async fn answer(&self) {
        counter!(REPORTS).increment(1);
        self.deliver().await;
    }

    /// Whether too many Envoys wait to be written down for the next master. No further one is taken then.
    pub(super) fn is_behind(&self) -> bool {
        self.shared.leases().is_behind()
    }

    async fn tick(&self) {
        self.pass_time();
        self.deliver().await;
        let state = self.state();
        gauge!(STREAMS).set(state.quotas.streams() as f64);
        gauge!(BUCKETS).set(state.quotas.buckets() as f64);
    }

    fn pass_time(&self) {
        let mut state = self.state();
        let other = self.shared.masters().and_then(Masters::other);
        if self.service.is_stopping() || other.is_some() {
            // Envoys go on with what they have, and connect to another server.
            state.streams.clear();
        }
        state.quotas.set_capacities(self.shared.capacities());
        self.divide(&mut state, |quotas, now, pool| quotas.tick(now, pool));
    }

    /// Uses the pool, after streams of a reign that is over have ended.
    fn divide<T>(
        &self,
        state: &mut State,
        divide: impl FnOnce(&mut Quotas, u64, &mut Pool) -> T,
    ) -> T {
        let State { quotas, streams, decided, pauses } = state;
        let paused = std::mem::replace(pauses, self.shared.pauses());
        if *pauses != paused {
            // Nobody knows which of the last assignments have left before the pause.
            std::mem::take(streams).into_keys().for_each(|id| quotas.close(id));
        }
        decided.get_or_insert_with(Instant::now);
        self.shared.with(|pool, now| {
            if quotas.follow(pool.fence()) {
                streams.clear();
            }
            divide(quotas, now, pool)
        })
    }

    /// Sends what was decided. As every answer of a master, it leaves only after the next master can know of it, and
    /// while this server still is the master.
    async fn deliver(&self) {
        let _turn = self.turn.lock().await;
        let (orders, fence, decided) = self.state().take_orders();
        if orders.is_empty() {
            return;
        }
        let until = decided + LATE;
        let is_confirmed = match fence {
            Some(fence) => {
                let confirmed = timeout_at(until, self.shared.leases().confirm(fence)).await;
                confirmed.is_ok_and(|confirmed| confirmed.is_ok())
            }
            // Without a master nothing is assigned, and buckets may always be forgotten.
            None => true,
        };
        let mut state = self.state();
        for (id, assignments) in orders {
            let Some(stream) = state.streams.get(&id) else { continue };
            if !is_confirmed || stream.try_send(Message { assignments, until }).is_err() {
                // The stream ends, and its Envoy begins another.
                state.streams.remove(&id);
            }
        }
    }
}

impl State {
    /// The messages to send, the reign in which they were decided, and since when.
    fn take_orders(&mut self) -> (Vec<(StreamId, AssignmentMessage)>, Option<u64>, Instant) {
        let orders = self.quotas.orders().map(|(id, orders)| (id, message::response(&orders)));
        let orders = orders.collect();
        let decided = self.decided.take().unwrap_or_else(Instant::now);
        (orders, self.quotas.fence(), decided)
    }
}
