use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::clock::Clock;
use sluicegate_core::observe::ShowKeys;

use super::has_room::HasRoom;
use super::meter::Meter;
use super::observing::Observing;
use super::partition::Partition;
use super::processors::Processors;
use super::requests::Requests;
use super::shared::{Shared, State};
use super::snapshot::Snapshot;
use super::throttle_layer::ThrottleLayer;
use super::unit::{Reported, Unit};
use crate::adaptive::Algorithm;
use crate::class::Classes;
use crate::error::ConfigError;
use crate::predict::Predictor;
use crate::scheduler::{Scheduler, SchedulerBuilder};

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
    /// Settings of a throttle, to be changed.
    pub fn builder() -> ThrottleBuilder {
        ThrottleBuilder::new()
    }

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

    /// Changes settings while requests wait and run: the size of the capacity, the queue, weights, the shares of
    /// partitions, the order, CoDel. No request is lost, and learnt costs and an adaptive limit are kept. Requests for
    /// which the new capacity has room start at once.
    ///
    /// A queue that becomes smaller keeps its requests, and takes no others until there is room again. The name, the
    /// clock, [`first_cost`](ThrottleBuilder::first_cost), [`predicted_keys`](ThrottleBuilder::predicted_keys) and
    /// [`show_keys`](ThrottleBuilder::show_keys) stay as they were made.
    ///
    /// # Errors
    ///
    /// When the new settings cannot work, or have another kind of capacity, other classes or other partitions. Nothing
    /// changes then.
    ///
    /// ```
    /// use std::time::Duration;
    /// use sluicegate_throttle::Throttle;
    ///
    /// let settings = |places| Throttle::builder().in_flight(places).queue(Duration::from_millis(200));
    /// let throttle = settings(100).build()?;
    /// throttle.reconfigure(settings(150))?;
    /// assert_eq!(throttle.snapshot().limit, Some(150));
    /// # Ok::<(), sluicegate_throttle::ConfigError>(())
    /// ```
    pub fn reconfigure(&self, settings: ThrottleBuilder) -> Result<(), ConfigError> {
        let Settled { scheduler, processors, classes, unit, reported, partitions, .. } =
            settings.settle()?;
        let shared = &self.shared;
        if shared.unit != unit {
            return Err(ConfigError::Fixed("kind of capacity"));
        }
        if shared.reported != reported {
            return Err(ConfigError::Fixed("meaning of reported costs"));
        }
        if shared.classes != classes {
            return Err(ConfigError::Fixed("list of classes"));
        }
        if shared.observing.partitions != partitions {
            return Err(ConfigError::Fixed("list of partitions"));
        }
        shared.reconfigure(scheduler, processors.as_ref())
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
    pub fn has_room(&self) -> HasRoom {
        HasRoom(Arc::clone(&self.shared))
    }
}

impl fmt::Debug for Throttle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Throttle").field("snapshot", &self.snapshot()).finish()
    }
}

/// Settings of a [`Throttle`]: one capacity, a queue, and optional settings.
#[derive(Debug)]
#[must_use]
pub struct ThrottleBuilder {
    scheduler: SchedulerBuilder,
    unit: Unit,
    processors: Option<Processors>,
    queue: Option<Duration>,
    queue_cost: Option<u64>,
    classes: Classes,
    first_cost: u64,
    keys: usize,
    reported: Reported,
    clock: Option<Clock>,
    name: String,
    partitions: Vec<(String, f64)>,
    show: ShowKeys,
    problem: Option<ConfigError>,
}

impl ThrottleBuilder {
    fn new() -> Self {
        Self {
            scheduler: Scheduler::builder(),
            unit: Unit::Requests,
            processors: None,
            queue: None,
            queue_cost: None,
            classes: Classes::four(),
            first_cost: 1_000,
            keys: 1_024,
            reported: Reported::Instead,
            clock: None,
            name: String::from("throttle"),
            partitions: Vec::new(),
            show: ShowKeys::Hidden,
            problem: None,
        }
    }

    /// Starts this many requests in each second, evenly spaced: the classical leaky bucket. Each request costs 1.
    pub fn requests_per_second(self, requests: u64) -> Self {
        self.rate(requests, Unit::Requests)
    }

    /// Starts requests of this total cost in each second, in your own unit: handlers report what a request has cost as
    /// [`Cost`](sluicegate_core::Cost) or [`RunningCost`](sluicegate_core::cost::RunningCost) in the extensions of
    /// their responses.
    pub fn cost_per_second(self, cost: u64) -> Self {
        self.rate(cost, Unit::Reported)
    }

    /// Starts requests that need this share of the processors that handlers can use. Take 1.0, unless something else needs
    /// the rest: what does not fit into a smaller share is shed, however idle the processors are. Handlers can use as many
    /// processors as the process may, but not more than the runtimes that serve the throttle's requests have worker
    /// threads: one for a runtime of one thread. The throttle learns that from its requests. Limits of containers count if the standard library sees them.
    ///
    /// The cost of a request is the time that its handler and its body are polled, in microseconds. Work on other
    /// threads and in databases is counted only where handlers [report](Self::reported_cost) it.
    pub fn cpu(mut self, share: f64) -> Self {
        if !(share > 0.0 && share <= 1.0) {
            self.problem = Some(ConfigError::Share);
            return self;
        }
        let processors = self.processors.insert(Processors::new(share));
        let cost = processors.cost_per_second();
        self.rate(cost, Unit::PollTime)
    }

    fn rate(mut self, per_second: u64, unit: Unit) -> Self {
        self.scheduler = self.scheduler.rate(per_second, Duration::from_secs(1));
        self.unit = unit;
        self
    }

    /// Runs at most this many requests at once. The cost of a request is the time from its start to the end of its body,
    /// in microseconds, because it holds one of the places for so long. A [`Cost`](sluicegate_core::Cost) that a handler
    /// reports is not counted.
    pub fn in_flight(mut self, requests: usize) -> Self {
        self.scheduler = self.scheduler.in_flight(requests);
        self.unit = Unit::PlaceTime;
        self
    }

    /// Limits the requests that run at once to the number that `algorithm` has learnt. Use
    /// [`Bandwidth::default()`](crate::adaptive::Bandwidth) unless you need another one. Costs are as with
    /// [`in_flight`](Self::in_flight), and the size of the [queue](Self::queue) follows the limit.
    pub fn adaptive(mut self, algorithm: impl Algorithm + 'static) -> Self {
        self.unit = Unit::PlaceTime;
        self.scheduler = self.scheduler.adaptive(algorithm);
        self
    }

    /// Sizes the queue for what the capacity drains in this time: no request waits for much longer. Costs are estimates,
    /// so a request is shed when it has waited for an eighth more: see [`SchedulerBuilder::queue_time`].
    pub const fn queue(mut self, time: Duration) -> Self {
        self.queue = Some(time);
        self
    }

    /// Sizes the queue for this total cost, instead of for a [time](Self::queue). Requests may then wait for any time.
    pub const fn queue_cost(mut self, cost: u64) -> Self {
        self.queue_cost = Some(cost);
        self
    }

    /// The cost of the most expensive request. A queue that is too small for it is an error.
    pub fn dearest(mut self, cost: u64) -> Self {
        self.scheduler = self.scheduler.dearest(cost);
        self
    }

    /// The classes of criticality; [four](Classes::four) by default.
    pub fn classes(mut self, classes: Classes) -> Self {
        self.classes = classes;
        self
    }

    /// Gives each class a share of the capacity: see [`SchedulerBuilder::weights`].
    pub fn weights(mut self, weights: impl IntoIterator<Item = u32>) -> Self {
        self.scheduler = self.scheduler.weights(weights);
        self
    }

    /// Serves the freshest request of a flow first when its oldest is late: see
    /// [`SchedulerBuilder::freshest_when_late`].
    pub fn freshest_when_late(mut self, after: Duration) -> Self {
        self.scheduler = self.scheduler.freshest_when_late(after);
        self
    }

    /// Drops requests that waited for too long in a standing queue: see [`SchedulerBuilder::codel`].
    pub fn codel(mut self, target: Duration, interval: Duration) -> Self {
        self.scheduler = self.scheduler.codel(target, interval);
        self
    }

    /// The expected cost of the very first requests; 1,000 by default, which is a millisecond if time is measured.
    pub const fn first_cost(mut self, cost: u64) -> Self {
        self.first_cost = cost;
        self
    }

    /// How many keys the costs and the run times of requests are remembered for; 1,024 by default.
    pub fn predicted_keys(mut self, keys: usize) -> Self {
        self.keys = keys;
        self.scheduler = self.scheduler.predicted_keys(keys);
        self
    }

    /// Whether a cost that a handler reports replaces the measured time or is added to it.
    pub const fn reported_cost(mut self, reported: Reported) -> Self {
        self.reported = reported;
        self
    }

    /// Guarantees the requests of this partition a share of the work in flight, which others may borrow while it is
    /// idle: see [`SchedulerBuilder::partitions`]. [`partition_by`](ThrottleLayer::partition_by) says which requests
    /// belong to it. All shares together are at most 1.
    pub fn partition(mut self, name: impl Into<String>, share: f64) -> Self {
        self.partitions.push((name.into(), share));
        self
    }

    /// The name of the throttle in metrics, events and the snapshot; `throttle` by default.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// What the [snapshot](Throttle::snapshot) shows of the keys of flows and predictions. They may hold addresses and
    /// credentials, so they are hidden by default.
    pub fn show_keys(mut self, show: ShowKeys) -> Self {
        self.show = show;
        self
    }

    /// Uses this clock, such as a [`ManualClock`](sluicegate_core::ManualClock) in tests.
    pub fn clock(mut self, clock: impl Into<Clock>) -> Self {
        self.clock = Some(clock.into());
        self
    }

    /// The throttle.
    ///
    /// # Errors
    ///
    /// When the settings cannot work. Every error is a sentence that says what to change.
    pub fn build(self) -> Result<Throttle, ConfigError> {
        let Settled { scheduler, processors, classes, unit, reported, partitions, builder } =
            self.settle()?;
        let scheduler = scheduler.build()?;
        let first_cost = if unit == Unit::Requests { 1 } else { builder.first_cost };
        let predictor = Predictor::new(builder.keys, first_cost);
        let state = State::new(scheduler, predictor, processors);
        let clock = builder.clock.unwrap_or_default();
        let observing = Observing {
            name: builder.name,
            partitions,
            show: builder.show,
            meter: Meter::default(),
        };
        let shared = Shared::new(state, classes, clock, unit, reported, observing);
        Ok(Throttle { shared: Arc::new(shared) })
    }

    fn settle(mut self) -> Result<Settled, ConfigError> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let partitions = std::mem::take(&mut self.partitions);
        let (partitions, shares): (Vec<_>, Vec<_>) = partitions.into_iter().unzip();
        let twice = |at: &usize| partitions[..*at].contains(&partitions[*at]);
        if let Some(at) = (0..partitions.len()).find(twice) {
            return Err(ConfigError::PartitionTwice(partitions[at].clone()));
        }
        let scheduler = match (self.queue_cost, self.queue) {
            (Some(cost), _) => self.scheduler.queue(cost),
            (None, Some(time)) => self.scheduler.queue_time(time),
            (None, None) => self.scheduler,
        };
        let scheduler = scheduler.classes(self.classes.len()).partitions(shares);
        let builder = Rest {
            first_cost: self.first_cost,
            keys: self.keys,
            clock: self.clock,
            name: self.name,
            show: self.show,
        };
        let (classes, unit, reported) = (self.classes, self.unit, self.reported);
        let processors = self.processors;
        Ok(Settled { scheduler, processors, classes, unit, reported, partitions, builder })
    }
}

/// Settings whose parts fit each other.
struct Settled {
    scheduler: SchedulerBuilder,
    processors: Option<Processors>,
    classes: Classes,
    unit: Unit,
    reported: Reported,
    /// The names of the partitions.
    partitions: Vec<String>,
    builder: Rest,
}

/// What is read once, when a throttle is made.
struct Rest {
    first_cost: u64,
    keys: usize,
    clock: Option<Clock>,
    name: String,
    show: ShowKeys,
}
