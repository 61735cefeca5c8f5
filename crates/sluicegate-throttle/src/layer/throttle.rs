use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::condition::HasCapacity;
use sluicegate_core::observe::ShowKeys;

use super::criticality::Partition;
use super::requests::Requests;
use super::shared::{Shared, State};
use super::snapshot::{ClassSnapshot, FlowSnapshot, PartitionSnapshot, Snapshot};
use super::throttle_layer::ThrottleLayer;
use crate::class::Class;
use crate::error::ConfigError;
use crate::scheduler::QueuedFlow;

/// Protects a service from overload. Clones, and all layers that it makes, share one queue and one capacity.
///
/// ```
/// use std::time::Duration;
/// use sluicegate_throttle::{Class, Throttle};
///
/// // At most 100 requests run at once. The queue holds what they do in a fifth of a second.
/// let throttle = Throttle::builder().in_flight(100).queue(Duration::from_millis(200)).build()?;
/// let layer = throttle.layer();
/// assert_eq!(throttle.snapshot().queued, 0);
/// # let _ = layer;
/// # Ok::<(), sluicegate_throttle::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct Throttle {
    pub(super) shared: Arc<Shared>,
}

impl Throttle {
    /// A layer that lets requests through as this throttle starts them: `.layer(throttle.layer())` in tower and axum,
    /// `.wrap(throttle.layer())` in actix-web.
    pub fn layer(&self) -> ThrottleLayer {
        let shared = &self.shared;
        let lowest = shared.classes.lowest();
        let requests = Requests::new(lowest, Arc::clone(&shared.hash), shared.shows_keys());
        ThrottleLayer::new(Arc::clone(shared), requests)
    }

    /// The partition with this name.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub fn partition(&self, name: &str) -> Result<Partition, ConfigError> {
        let known = self.shared.observing.partitions.iter().position(|known| known == name);
        // At most eight partitions.
        let partition = known.map(|at| Partition(at as u8));
        partition.ok_or_else(|| ConfigError::UnknownPartition(name.to_owned()))
    }

    /// What it is doing at present.
    pub fn snapshot(&self) -> Snapshot {
        self.shared.snapshot()
    }

    /// A condition for elastic limits: holds while no request waits.
    ///
    /// ```
    /// use std::time::Duration;
    /// use sluicegate::{Ip, Limit, when};
    /// use sluicegate_throttle::Throttle;
    ///
    /// let throttle = Throttle::builder().in_flight(10).queue(Duration::from_millis(200)).build()?;
    /// // Up to ten times as much while no request waits. Both limits have the same name and share one budget.
    /// let elastic = when(throttle.has_room(), Limit::per_minute(1_000).named("api"))
    ///     .otherwise(Limit::per_minute(100).named("api"))
    ///     .by(Ip::peer());
    /// # let _ = elastic;
    /// # Ok::<(), sluicegate_throttle::ConfigError>(())
    /// ```
    pub fn has_room(&self) -> HasCapacity<impl Fn() -> bool + Clone + Send + Sync + 'static> {
        let shared = Arc::clone(&self.shared);
        HasCapacity::from_fn(move || shared.has_capacity())
    }
}

/// The flows that are shown of each class.
const FLOWS: usize = 10;

impl Shared {
    /// Whether the keys of requests are shown anywhere.
    const fn shows_keys(&self) -> bool {
        !matches!(self.observing.show, ShowKeys::Hidden)
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let now = self.now();
        let state = self.lock();
        let scheduler = &state.scheduler;
        let sums = state.accuracy.all();
        let mut keys: Vec<_> = state.accuracy.by_key().cloned().collect();
        keys.sort_by_key(|key| Reverse(key.actual_cost));
        // At most eight classes.
        let classes = (0..self.classes.len()).map(|rank| self.class(&state, Class::at(rank as u8)));
        Snapshot {
            name: self.observing.name.clone(),
            classes: classes.collect(),
            admitted_classes: scheduler.admitted_classes(now),
            queued: scheduler.len(),
            queued_cost: scheduler.cost(),
            queue_bound: scheduler.bound(),
            running: scheduler.running(),
            limit: scheduler.limit(),
            cost_per_second: scheduler
                .rate()
                .map(|(cost, period)| cost as f64 / period.as_secs_f64()),
            baseline: scheduler.baseline().map(Duration::from_micros),
            counts: scheduler.counts(),
            unreadable: state.unread,
            predicted_cost: sums.predicted_cost,
            actual_cost: sums.actual_cost,
            prediction_error: sums.error,
            partitions: self.partitions(&state),
            keys,
        }
    }

    fn partitions(&self, state: &State) -> Vec<PartitionSnapshot> {
        let names = self.observing.partitions.iter().zip(0..);
        let partition = |(name, at): (&String, u8)| {
            let [running, waiting, guaranteed] = state.scheduler.partition(at)?;
            Some(PartitionSnapshot { name: name.clone(), running, waiting, guaranteed })
        };
        names.filter_map(partition).collect()
    }

    fn class(&self, state: &State, class: Class) -> ClassSnapshot {
        let (requests, cost) = state.scheduler.queued(class);
        let mut flows: Vec<_> = state.scheduler.flows(class).collect();
        flows.sort_unstable_by_key(|flow| Reverse(flow.cost));
        let name = |flow| self.observing.show.show(state.flow_names.name(flow)?);
        let flow = |QueuedFlow { flow, requests, cost }| FlowSnapshot {
            flow: flow.and_then(name),
            requests,
            cost,
        };
        let flows = flows.into_iter().take(FLOWS).map(flow);
        ClassSnapshot {
            name: self.classes.name(class).to_owned(),
            requests,
            cost,
            counts: state.scheduler.counts_of(class),
            flows: flows.collect(),
        }
    }
}

impl fmt::Debug for Throttle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Throttle").field("snapshot", &self.snapshot()).finish()
    }
}
