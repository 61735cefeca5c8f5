//! The streams that are open, and the time that passes for them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metrics::{counter, describe_counter, describe_gauge, gauge};
use tokio::sync::mpsc;
use tonic::Status;

use super::message;
use super::quotas::{Quotas, ReportError, StreamId};
use super::unit::BucketUsage;
use super::wire::AssignmentMessage;
use crate::capacity::{BucketId, Capacities, Shared};
use crate::service::Service;

/// What all streams share.
pub(super) struct QuotaStreams {
    service: Service,
    shared: Shared,
    state: Mutex<State>,
}

struct State {
    quotas: Quotas,
    capacities: Arc<Capacities>,
    streams: BTreeMap<StreamId, mpsc::Sender<AssignmentMessage>>,
}

/// An Envoy that reads nothing loses its stream after this many messages.
const UNREAD: usize = 64;
const TICK: Duration = Duration::from_millis(100);

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
            "Reported buckets that no capacity is for, or that are too many."
        );
        let capacities = shared.capacities();
        let quotas = Quotas::new(Arc::clone(&capacities));
        let state = Mutex::new(State { quotas, capacities, streams: BTreeMap::new() });
        let streams = Arc::new(Self { service: service.clone(), shared: shared.clone(), state });
        let weak = Arc::downgrade(&streams);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(TICK).await;
                let Some(streams) = weak.upgrade() else { return };
                streams.tick();
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
    ) -> Option<Result<(StreamId, mpsc::Receiver<AssignmentMessage>), ReportError>> {
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
        let State { quotas, .. } = &mut *state;
        let ignored = self.shared.with(|pool, now| quotas.report(now, id, domain, usages, pool))?;
        if ignored > 0 {
            counter!(IGNORED).increment(ignored as u64);
        }
        Ok(())
    }

    /// A whole message has come. Assignments are sent before this returns.
    pub(super) fn answer(&self) {
        counter!(REPORTS).increment(1);
        self.state().deliver();
    }

    fn tick(&self) {
        let mut state = self.state();
        if self.service.is_stopping() {
            // Envoys go on with what they have, and connect to another server.
            state.streams.clear();
        }
        let capacities = self.shared.capacities();
        if !Arc::ptr_eq(&capacities, &state.capacities) {
            state.capacities = Arc::clone(&capacities);
            state.quotas.set_capacities(capacities);
        }
        let State { quotas, .. } = &mut *state;
        self.shared.with(|pool, now| quotas.tick(now, pool));
        state.deliver();
        gauge!(STREAMS).set(state.quotas.streams() as f64);
        gauge!(BUCKETS).set(state.quotas.buckets() as f64);
    }
}

impl State {
    fn deliver(&mut self) {
        for (id, orders) in self.quotas.orders() {
            let Some(stream) = self.streams.get(&id) else { continue };
            if stream.try_send(message::response(&orders)).is_err() {
                // The stream ends, and its Envoy begins another.
                self.streams.remove(&id);
            }
        }
    }
}
