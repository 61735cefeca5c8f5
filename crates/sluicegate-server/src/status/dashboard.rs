use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sluicegate_core::observe::Watch;

use super::capacity::{Capacity, Sources};
use super::document::{Keys, PendingStatus, Refused, RefusedBy, Status};
use super::history::History;
use super::latency::Latency;
use super::numbers::Numbers;
use super::peaks::PeaksStatus;
use super::store::Source;
use crate::admin::metrics::Metrics;
use crate::health::Health;
use crate::policies::Policies;

/// The most keys of each policy that are shown.
const MOST_KEYS: usize = 20;

/// The most lines about limits in force.
const MOST_LINES: usize = 500;

/// Files are compared this often at most, because it takes a while if they are large.
const EVERY: Duration = Duration::from_secs(5);

/// How often counters are read.
const READ: Duration = Duration::from_secs(1);

/// Everything that a status is made of. Clones are the same dashboard.
#[derive(Debug, Clone)]
pub(crate) struct Dashboard(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    started: Instant,
    policies: Policies,
    watch: Option<Watch>,
    health: Arc<Health>,
    store: Source,
    latency: Latency,
    capacity: Sources,
    history: Mutex<Option<History>>,
    /// The last comparison of the files with what is in force, and when it was made.
    compared: Mutex<Option<(Duration, Vec<PendingStatus>)>>,
}

impl Dashboard {
    /// A dashboard of these policies. Without a watch, it shows no keys.
    pub(crate) fn new(
        policies: &Policies,
        store: Source,
        watch: Option<&Watch>,
        health: &Arc<Health>,
    ) -> Self {
        Self(Arc::new(Inner {
            started: Instant::now(),
            policies: policies.clone(),
            watch: watch.cloned(),
            health: Arc::clone(health),
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

    /// The policies that are shown.
    pub(crate) fn policies(&self) -> &Policies {
        &self.0.policies
    }

    pub(crate) fn show_capacity(&self, source: impl Fn() -> Capacity + Send + Sync + 'static) {
        self.0.capacity.add(source);
    }

    /// Reads the counters of `metrics` once a second, and keeps the metrics tidy. Never completes.
    pub(crate) async fn follow(self, metrics: Metrics) {
        let reading = async {
            loop {
                self.read(&metrics.render());
                tokio::time::sleep(READ).await;
            }
        };
        tokio::join!(reading, metrics.clone().keep_tidy());
    }

    /// Reads the counters from the text of the metrics.
    fn read(&self, metrics: &str) {
        let numbers = Numbers::read(metrics);
        let mut history = self.0.history.lock().unwrap_or_else(PoisonError::into_inner);
        let history = history.get_or_insert_default();
        history.add(self.uptime(), numbers, self.0.latency.requests(), self.0.latency.counts());
    }

    /// The state of the server. Reads the files of policies, so it may take a while.
    pub(crate) fn status(&self) -> Status {
        let Inner { policies, watch, health, .. } = &*self.0;
        let watch = watch.as_ref();
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
            stopping: health.is_stopping(),
            counting,
            requests,
            seconds,
            minutes,
            policies: counted,
            keys: watch.map_or(Keys::Unknown, keys),
            refused: watch.map(refused).unwrap_or_default(),
            latency,
            failed_calls: health.failed_calls(),
            store: self.0.store.status(errors),
            capacity: self.0.capacity.read(),
            in_force,
            in_force_more,
            pending: self.pending(policies),
        }
    }

    /// The keys of each limit by their highest counts, in the order of the limits' first requests. Looks at thousands of keys.
    pub(crate) fn peaks(&self) -> Vec<PeaksStatus> {
        let all = self.0.watch.as_ref().map(Watch::peaks).unwrap_or_default();
        all.into_iter().map(PeaksStatus::from).collect()
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
