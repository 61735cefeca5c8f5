use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sluicegate_core::observe::Watch;

use super::capacity::{Capacity, Sources};
use super::document::{Keys, PendingStatus, Refused, RefusedBy, Status};
use super::history::History;
use super::latency::Latency;
use super::numbers::Numbers;
use super::store::Source;
use crate::policies::Policies;

/// The most keys of each policy that are shown.
const MOST_KEYS: usize = 20;

/// The most lines about limits in force.
const MOST_LINES: usize = 500;

/// Files are compared this often at most, because it takes a while if they are large.
const EVERY: Duration = Duration::from_secs(5);

/// Everything that a status is made of, besides the service itself. Clones are the same dashboard.
#[derive(Debug, Clone)]
pub(crate) struct Dashboard(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    started: Instant,
    store: Source,
    latency: Latency,
    capacity: Sources,
    history: Mutex<Option<History>>,
    /// The last comparison of the files with what is in force, and when it was made.
    compared: Mutex<Option<(Duration, Vec<PendingStatus>)>>,
}

impl Dashboard {
    pub(crate) fn new(store: Source) -> Self {
        Self(Arc::new(Inner {
            started: Instant::now(),
            store,
            latency: Latency::new(),
            capacity: Sources::default(),
            history: Mutex::default(),
            compared: Mutex::default(),
        }))
    }

    /// Measures decisions.
    pub(crate) fn latency(&self) -> &Latency {
        &self.0.latency
    }

    pub(crate) fn show_capacity(&self, source: impl Fn() -> Capacity + Send + Sync + 'static) {
        self.0.capacity.add(source);
    }

    /// Reads the counters from the text of the metrics, once a second.
    pub(crate) fn read(&self, metrics: &str) {
        let numbers = Numbers::read(metrics);
        let mut history = self.0.history.lock().unwrap_or_else(PoisonError::into_inner);
        let history = history.get_or_insert_default();
        history.add(self.uptime(), numbers, self.0.latency.requests(), self.0.latency.counts());
    }

    /// The state of the server. Reads the files of policies, so it may take a while.
    pub(crate) fn status(&self, policies: &Policies, watch: Option<&Watch>) -> Status {
        let history = self.0.history.lock().unwrap_or_else(PoisonError::into_inner);
        let counting = history.is_some();
        let (mut counted, latency, errors) = match &*history {
            Some(history) => (history.policies(), history.latency(), history.store_errors()),
            None => Default::default(),
        };
        let (requests, seconds, minutes) = match &*history {
            Some(history) => (history.requests(), history.seconds(), history.minutes()),
            None => Default::default(),
        };
        drop(history);
        policies.explain(&mut counted);
        let mut in_force = policies.describe();
        let in_force_more = in_force.len().saturating_sub(MOST_LINES) as u64;
        in_force.truncate(MOST_LINES);
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_seconds: self.uptime().as_secs(),
            counting,
            requests,
            seconds,
            minutes,
            policies: counted,
            keys: watch.map_or(Keys::Unknown, keys),
            refused: watch.map(refused).unwrap_or_default(),
            latency,
            store: self.0.store.status(errors),
            capacity: self.0.capacity.read(),
            in_force,
            in_force_more,
            pending: self.pending(policies),
            ..Status::default()
        }
    }

    /// Compares the files with what is in force, unless that was done a moment ago.
    fn pending(&self, policies: &Policies) -> Vec<PendingStatus> {
        let now = self.uptime();
        let mut compared = self.0.compared.lock().unwrap_or_else(PoisonError::into_inner);
        compared.take_if(|(at, _)| now.saturating_sub(*at) >= EVERY);
        compared.get_or_insert_with(|| (now, policies.pending())).1.clone()
    }

    fn uptime(&self) -> Duration {
        self.0.started.elapsed()
    }
}

fn keys(watch: &Watch) -> Keys {
    if watch.is_redacted() { Keys::Digests } else { Keys::Shown }
}

fn refused(watch: &Watch) -> Vec<RefusedBy> {
    let policies = watch.snapshot().into_iter();
    let policies = policies.filter(|policy| policy.refusals > 0);
    policies
        .map(|policy| RefusedBy {
            policy: policy.policy,
            refusals: policy.refusals,
            keys: policy
                .keys
                .into_iter()
                .take(MOST_KEYS)
                .map(|key| Refused { who: key.who, at_least: key.at_least, at_most: key.at_most })
                .collect(),
        })
        .collect()
}
