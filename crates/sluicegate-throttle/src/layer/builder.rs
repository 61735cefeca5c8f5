use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::clock::Clock;
use sluicegate_core::observe::ShowKeys;

use super::observing::{Meter, Observing};
use super::processors::Processors;
use super::shared::{Shared, State};
use super::throttle::Throttle;
use super::unit::{Reported, Unit};
use crate::adaptive::Algorithm;
use crate::class::Classes;
use crate::error::ConfigError;
use crate::predict::Predictor;
use crate::scheduler::{Scheduler, SchedulerBuilder};

/// Settings of a [`Throttle`]: one capacity, a queue, and optional settings.
#[derive(Debug)]
#[must_use]
pub struct ThrottleBuilder {
    scheduler: SchedulerBuilder,
    unit: Unit,
    processors: Option<Processors>,
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

impl Throttle {
    /// Settings of a throttle, to be changed.
    pub fn builder() -> ThrottleBuilder {
        ThrottleBuilder::new()
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
        let (scheduler, processors) = self.changes(settings)?;
        self.shared.reconfigure(scheduler, processors.as_ref())
    }

    /// Checks whether [`reconfigure`](Self::reconfigure) would accept these settings. Nothing changes.
    ///
    /// # Errors
    ///
    /// Like [`reconfigure`](Self::reconfigure).
    pub fn check(&self, settings: ThrottleBuilder) -> Result<(), ConfigError> {
        let (scheduler, _) = self.changes(settings)?;
        self.shared.check(scheduler)
    }

    /// The settings that can change, if no other differs.
    fn changes(
        &self,
        mut settings: ThrottleBuilder,
    ) -> Result<(SchedulerBuilder, Option<Processors>), ConfigError> {
        let (scheduler, partitions) = settings.settle()?;
        let shared = &self.shared;
        if shared.unit != settings.unit {
            return Err(ConfigError::Fixed("kind of capacity"));
        }
        if shared.reported != settings.reported {
            return Err(ConfigError::Fixed("meaning of reported costs"));
        }
        if shared.classes != settings.classes {
            return Err(ConfigError::Fixed("list of classes"));
        }
        if shared.observing.partitions != partitions {
            return Err(ConfigError::Fixed("list of partitions"));
        }
        Ok((scheduler, settings.processors))
    }
}

impl ThrottleBuilder {
    fn new() -> Self {
        Self {
            scheduler: Scheduler::builder(),
            unit: Unit::Requests,
            processors: None,
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
    pub fn queue(mut self, time: Duration) -> Self {
        self.scheduler = self.scheduler.queue_time(time);
        self
    }

    /// Sizes the queue for this total cost, instead of for a [time](Self::queue). Requests may then wait for any time.
    pub fn queue_cost(mut self, cost: u64) -> Self {
        self.scheduler = self.scheduler.queue(cost);
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
    /// idle: see [`SchedulerBuilder::partitions`]. [`partition_by`](super::ThrottleLayer::partition_by) says which requests
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
    pub fn build(mut self) -> Result<Throttle, ConfigError> {
        let (scheduler, partitions) = self.settle()?;
        let first_cost = if self.unit == Unit::Requests { 1 } else { self.first_cost };
        let predictor = Predictor::new(self.keys, first_cost);
        let state = State::new(scheduler.build()?, predictor, self.processors);
        let Self { name, show, classes, unit, reported, .. } = self;
        let observing = Observing { name, partitions, show, meter: Meter::default() };
        let clock = self.clock.unwrap_or_default();
        let shared = Shared::new(state, classes, clock, unit, reported, observing);
        Ok(Throttle { shared: Arc::new(shared) })
    }

    /// Takes the settings of the scheduler and the names of the partitions out.
    fn settle(&mut self) -> Result<(SchedulerBuilder, Vec<String>), ConfigError> {
        if let Some(problem) = self.problem.take() {
            return Err(problem);
        }
        let partitions = std::mem::take(&mut self.partitions);
        let (names, shares): (Vec<_>, Vec<_>) = partitions.into_iter().unzip();
        let twice = |at: &usize| names[..*at].contains(&names[*at]);
        if let Some(at) = (0..names.len()).find(twice) {
            return Err(ConfigError::PartitionTwice(names[at].clone()));
        }
        let scheduler = std::mem::replace(&mut self.scheduler, Scheduler::builder());
        Ok((scheduler.classes(self.classes.len()).partitions(shares), names))
    }
}
