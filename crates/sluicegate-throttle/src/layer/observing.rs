//! What the operator sees: events, a span around each wait, a histogram of waits, how well costs are predicted, and the names
//! of the flows that wait.

use std::collections::{HashMap, HashSet};
use std::fmt;
#[cfg(feature = "metrics")]
use std::sync::OnceLock;

use foldhash::fast::FixedState;
#[cfg(feature = "metrics")]
use metrics::{Histogram, Unit, describe_histogram, histogram};
use sluicegate_core::key::KeyBuf;
use sluicegate_core::observe::ShowKeys;

use super::snapshot::{KeySnapshot, UnreadCounts};
#[cfg(feature = "metrics")]
use crate::class::Class;
use crate::class::Classes;
use crate::scheduler::{Running, Shed};

/// How the throttle reports to its operator.
#[derive(Debug)]
pub(super) struct Observing {
    pub(super) name: String,
    /// The names of the partitions.
    pub(super) partitions: Vec<String>,
    pub(super) show: ShowKeys,
    pub(super) meter: Meter,
}

#[cfg_attr(
    not(feature = "tracing"),
    expect(unused_variables, clippy::unused_self, reason = "without the feature nobody is told")
)]
impl Observing {
    /// A request is shed.
    pub(super) fn report(&self, classes: &Classes, shed: &Shed) {
        #[cfg(feature = "tracing")]
        tracing::debug!(
            throttle = self.name,
            class = classes.name(shed.class),
            reason = shed.reason.as_str(),
            retry_after_ms = shed.retry_after / 1_000,
            "a request is shed"
        );
    }

    /// Warns that classes, deadlines or keys of requests could not be read, with the counts so far. Without counts, it does
    /// nothing.
    #[inline]
    pub(super) fn warn_of_unread(&self, unread: Option<UnreadCounts>) {
        #[cfg(feature = "tracing")]
        if let Some(all) = unread {
            tracing::warn!(
                throttle = self.name,
                classes = all.classes,
                deadlines = all.deadlines,
                keys = all.keys,
                "classes, deadlines or keys of requests cannot be read: their defaults are used"
            );
        }
    }
}

/// The `tracing` span `throttle`, around the time in which a request waits. Without the feature `tracing` it is nothing.
#[derive(Debug, Default)]
pub(super) struct WaitSpan {
    /// Boxed, because it is larger than all the rest of a place in the queue, and `None` where nothing records it.
    #[cfg(feature = "tracing")]
    span: Option<Box<tracing::Span>>,
}

impl WaitSpan {
    pub(super) fn new() -> Self {
        Self {
            #[cfg(feature = "tracing")]
            span: Some(tracing::info_span!("throttle"))
                .filter(|span| !span.is_disabled())
                .map(Box::new),
        }
    }

    /// Runs `run` within the span.
    pub(super) fn in_scope<T>(&self, run: impl FnOnce() -> T) -> T {
        #[cfg(feature = "tracing")]
        let _entered = self.span.as_deref().map(tracing::Span::enter);
        run()
    }
}

/// A histogram of waits by class. It is looked up once and kept, so install the recorder before the first request.
/// Without the feature `metrics` it is empty.
#[derive(Default)]
pub(super) struct Meter {
    #[cfg(feature = "metrics")]
    waits: OnceLock<Box<[Histogram]>>,
}

#[cfg_attr(
    not(feature = "metrics"),
    expect(
        unused_variables,
        clippy::unused_self,
        reason = "without the feature nothing is measured"
    )
)]
impl Meter {
    /// A request that waited is started.
    pub(super) fn waited(&self, throttle: &str, classes: &Classes, running: &Running) {
        #[cfg(feature = "metrics")]
        {
            let waits = self.waits.get_or_init(|| registered(throttle, classes));
            waits[running.class().rank()].record(running.waited() as f64 / 1e6);
        }
    }
}

#[cfg(feature = "metrics")]
fn registered(throttle: &str, classes: &Classes) -> Box<[Histogram]> {
    describe_histogram!(
        "sluicegate_throttle_wait_seconds",
        Unit::Seconds,
        "How long requests that were queued waited until they were started, by class."
    );
    let class = |rank| {
        let class = classes.name(Class::at(rank as u8)).to_owned();
        histogram!("sluicegate_throttle_wait_seconds", "throttle" => throttle.to_owned(), "class" => class)
    };
    (0..classes.len()).map(class).collect()
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meter")
    }
}

/// How many keys are counted separately. All others are counted together. Metrics have the same number of labels for
/// policies.
const KEYS: usize = 64;

/// How well costs are predicted: for each of the first keys, and for the rest together.
#[derive(Debug, Default)]
pub(super) struct Accuracy {
    rows: HashMap<u64, KeySnapshot, FixedState>,
    others: KeySnapshot,
}

impl Accuracy {
    /// A request with this key has come. `name` is what is shown of the key.
    pub(super) fn see(&mut self, key: u64, name: impl FnOnce() -> Option<String>) {
        if self.rows.len() < KEYS && !self.rows.contains_key(&key) {
            self.rows.insert(key, KeySnapshot { key: name(), ..KeySnapshot::default() });
        }
    }

    /// A request with this key has ended.
    pub(super) fn learn(&mut self, key: u64, predicted: u64, actual: u64) {
        let row = self.rows.get_mut(&key).unwrap_or(&mut self.others);
        row.add(1, predicted, actual, predicted.abs_diff(actual));
    }

    pub(super) fn all(&self) -> KeySnapshot {
        let mut all = self.others.clone();
        for row in self.rows.values() {
            all.add(row.requests, row.predicted_cost, row.actual_cost, row.error);
        }
        all
    }

    /// The keys that are counted separately, and then the rest. Keys without a measured request are left out.
    pub(super) fn by_key(&self) -> impl Iterator<Item = &KeySnapshot> {
        self.rows.values().chain([&self.others]).filter(|row| row.requests > 0)
    }
}

impl KeySnapshot {
    fn add(&mut self, requests: u64, predicted: u64, actual: u64, error: u64) {
        self.requests += requests;
        self.predicted_cost = self.predicted_cost.saturating_add(predicted);
        self.actual_cost = self.actual_cost.saturating_add(actual);
        self.error = self.error.saturating_add(error);
    }
}

/// How many names of waiting flows are kept: eight times those of eight classes with 64 queues each.
const FLOWS: usize = 4_096;

/// The name of a request's key, if keys are shown.
#[derive(Debug, Clone)]
pub(super) struct Names {
    pub(super) flow: Option<KeyBuf>,
    pub(super) key: Option<KeyBuf>,
}

/// The keys of waiting flows, if keys are shown.
#[derive(Debug, Default)]
pub(super) struct FlowNames(HashMap<u64, KeyBuf, FixedState>);

impl FlowNames {
    /// Remembers the name of a waiting flow. `waiting` lists all waiting flows; names of other flows are dropped to
    /// make room.
    pub(super) fn add(&mut self, flow: u64, key: KeyBuf, waiting: impl FnOnce() -> HashSet<u64>) {
        if self.0.len() >= FLOWS && !self.0.contains_key(&flow) {
            let waiting = waiting();
            self.0.retain(|flow, _| waiting.contains(flow));
            // More flows than queues: they are shown without their names.
            if self.0.len() >= FLOWS {
                self.0.clear();
            }
        }
        self.0.insert(flow, key);
    }

    pub(super) fn name(&self, flow: u64) -> Option<&KeyBuf> {
        self.0.get(&flow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_keys_takes_bounded_memory_and_none_is_lost() {
        let mut accuracy = Accuracy::default();
        for key in 0..10_000 {
            accuracy.see(key, || Some(key.to_string()));
            accuracy.learn(key, 3, 5);
            accuracy.learn(key, 7, 5);
        }
        assert_eq!(accuracy.by_key().count(), KEYS + 1);
        let all = accuracy.all();
        assert_eq!((all.requests, all.predicted_cost, all.actual_cost), (20_000, 100_000, 100_000));
        assert_eq!(all.error, 40_000, "errors in both directions do not cancel out");
    }

    #[test]
    fn names_of_flows_that_are_gone_make_room() {
        let mut names = FlowNames::default();
        for flow in 0..100_000 {
            names.add(flow, KeyBuf::of("customer"), || HashSet::from([1, 2]));
            assert!(names.0.len() <= FLOWS);
        }
        assert!(names.name(1).is_some() && names.name(3).is_none());
    }
}
