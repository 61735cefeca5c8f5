use std::time::Duration;

use super::capacity::{Capacity, Concurrency, Rate};
use super::codel::Codel;
use super::shares::{Partitions, Shares};
use super::wait::QueueSize;
use super::{Instruction, Scheduler};
use crate::adaptive::Algorithm;
use crate::error::{ConfigError, MAX_CLASSES, MAX_PARTITIONS};

/// Queues for the flows of each class, as in Kubernetes. If there are more flows than queues, flows share queues.
const FLOW_QUEUES: usize = 64;

/// Keys whose run times are remembered, unless told otherwise.
const KEYS: usize = 1_024;

/// Settings of a [`Scheduler`].
#[derive(Debug)]
#[must_use]
pub struct SchedulerBuilder {
    capacity: Option<Result<Capacity, ConfigError>>,
    pub(super) size: QueueSize,
    dearest: u64,
    pub(super) classes: usize,
    pub(super) weights: Option<Box<[u64]>>,
    pub(super) flow_queues: usize,
    pub(super) late_after: Option<u64>,
    pub(super) codel: Option<Codel>,
    partitions: Vec<f64>,
    pub(super) keys: usize,
}

impl SchedulerBuilder {
    pub(super) const fn new() -> Self {
        Self {
            capacity: None,
            size: QueueSize::Cost(0),
            dearest: 0,
            classes: 4,
            weights: None,
            flow_queues: FLOW_QUEUES,
            late_after: None,
            codel: None,
            partitions: Vec::new(),
            keys: KEYS,
        }
    }

    /// Drains at a rate: a total cost of `cost` in each `period`, which is at most a year. For a rate of requests, offer
    /// each with a cost of 1.
    pub fn rate(self, cost: u64, period: Duration) -> Self {
        self.one_capacity(Rate::new(cost, period).map(Capacity::Rate))
    }

    /// Drains by work in flight: at most `requests` run at once.
    pub fn in_flight(self, requests: usize) -> Self {
        let limit = Capacity::InFlight(Concurrency::Fixed(requests));
        self.one_capacity(if requests > 0 { Ok(limit) } else { Err(ConfigError::NoCapacity) })
    }

    /// Drains by work in flight, up to the limit that `algorithm` has learnt. The time of a request is measured from
    /// the moment it leaves the queue.
    pub fn adaptive(self, algorithm: impl Algorithm + 'static) -> Self {
        self.one_capacity(Ok(Capacity::InFlight(Concurrency::Adaptive(Box::new(algorithm)))))
    }

    fn one_capacity(mut self, capacity: Result<Capacity, ConfigError>) -> Self {
        let is_first = self.capacity.is_none();
        self.capacity = Some(if is_first { capacity } else { Err(ConfigError::TwoCapacities) });
        self
    }

    /// The total cost of requests that the queue holds. Values above 2⁶² count as 2⁶².
    pub const fn queue(mut self, cost: u64) -> Self {
        self.size = QueueSize::Cost(cost);
        self
    }

    /// Sizes the queue for what the capacity drains in this time, instead of for a [cost](Self::queue). For work in
    /// flight, costs then are the microseconds for which requests run. Costs are estimates, so a request is shed when it
    /// has waited for an eighth longer than this. In a queue that is not full, a request that has waited for three quarters
    /// of it is started before more critical ones. That does not go with [`weights`](Self::weights) and
    /// [`freshest_when_late`](Self::freshest_when_late): with a rate, a request is then shed after twice the time.
    pub fn queue_time(mut self, time: Duration) -> Self {
        self.size = QueueSize::Time(micros(time));
        self
    }

    /// The cost of the most expensive request that will be offered. It has to fit into the queue.
    pub const fn dearest(mut self, cost: u64) -> Self {
        self.dearest = cost;
        self
    }

    /// How many classes there are; four by default.
    pub const fn classes(mut self, classes: usize) -> Self {
        self.classes = classes;
        self
    }

    /// Gives each class a share of the capacity while all of them wait, the most critical class first. Without weights,
    /// a class is served only while no higher class waits.
    pub fn weights(mut self, weights: impl IntoIterator<Item = u32>) -> Self {
        self.weights = Some(weights.into_iter().take(MAX_CLASSES + 1).map(Into::into).collect());
        self
    }

    /// How many queues each class has for its flows; 64 by default. If there are more flows, they share queues.
    pub const fn flow_queues(mut self, queues: usize) -> Self {
        self.flow_queues = queues;
        self
    }

    /// Serves a flow's freshest request first while its oldest has waited for longer than this. By default, the
    /// oldest is always served first.
    pub fn freshest_when_late(mut self, after: Duration) -> Self {
        self.late_after = Some(micros(after));
        self
    }

    /// Drops requests that waited for more than twice `target`, after an `interval` in which every request of their
    /// class waited for longer than `target`. folly uses 5 and 100 milliseconds. Off by default.
    pub fn codel(mut self, target: Duration, interval: Duration) -> Self {
        self.codel = Some(Codel::new(micros(target), micros(interval)));
        self
    }

    /// Guarantees each partition its share of the work in flight: 0.25 is a quarter. There are at most
    /// [`MAX_PARTITIONS`](crate::MAX_PARTITIONS), and their shares are at most 1 together. [`Offer::partition`] says
    /// which partition a request belongs to.
    ///
    /// A request starts at once while its partition runs fewer requests than its share of the limit, rounded up. It
    /// then starts before more critical requests of other partitions. Idle places are lent to all other partitions, by
    /// class. They are given back as requests end, because running requests are never stopped. Until then, more
    /// requests than the limit can run: at most the limit and all guaranteed places together.
    ///
    /// [`Offer::partition`]: super::Offer::partition
    pub fn partitions(mut self, shares: impl IntoIterator<Item = f64>) -> Self {
        self.partitions = shares.into_iter().take(MAX_PARTITIONS + 1).collect();
        self
    }

    /// How many [keys](super::Offer::key) the run times of requests are remembered for; 1,024 by default.
    pub const fn predicted_keys(mut self, keys: usize) -> Self {
        self.keys = keys;
        self
    }

    /// The scheduler.
    ///
    /// # Errors
    ///
    /// When the settings cannot work: no capacity or two of them, a queue that the most expensive request does not fit
    /// into, or a weight of zero. Every error is a sentence that says what to change.
    pub fn build(self) -> Result<Scheduler, ConfigError> {
        self.checked()
            .map(|(capacity, partitions, settings)| Scheduler::new(capacity, partitions, settings))
    }

    /// The capacity, the partitions and the other settings, if they go together.
    fn checked(mut self) -> Result<(Capacity, Partitions, Self), ConfigError> {
        let capacity = self.capacity.take().unwrap_or(Err(ConfigError::NoCapacity))?;
        let bound = self.size.cost(&capacity);
        if bound == 0 {
            return Err(ConfigError::NoQueue);
        }
        if self.dearest > bound {
            return Err(ConfigError::QueueTooSmall(self.dearest, bound));
        }
        if !(1..=MAX_CLASSES).contains(&self.classes) {
            return Err(ConfigError::Classes(self.classes));
        }
        if let Some(weights) = &self.weights {
            if weights.len() != self.classes {
                return Err(ConfigError::Weights(weights.len(), self.classes));
            }
            if weights.contains(&0) {
                return Err(ConfigError::ZeroWeight);
            }
        }
        if !(1..=1_024).contains(&self.flow_queues) {
            return Err(ConfigError::FlowQueues(self.flow_queues));
        }
        if self.codel.as_ref().is_some_and(|codel| !codel.makes_sense()) {
            return Err(ConfigError::Codel);
        }
        if matches!(capacity, Capacity::Rate(_)) && !self.partitions.is_empty() {
            return Err(ConfigError::PartitionedRate);
        }
        Ok((capacity, Partitions::new(&self.partitions)?, self))
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl Scheduler {
    /// Changes the settings. Queued requests stay in the queue and running requests go on. The pace of requests, an
    /// adaptive limit, and the turns of classes and flows are kept. Requests that can start now are started;
    /// instructions are added to `out`.
    ///
    /// A queue that becomes smaller keeps its requests, and takes no others until there is room again.
    ///
    /// # Errors
    ///
    /// When the new settings cannot work, or have another kind of capacity, or another number of classes, partitions or
    /// flow queues. Nothing changes then.
    pub fn reconfigure(
        &mut self,
        now: u64,
        builder: SchedulerBuilder,
        out: &mut Vec<Instruction>,
    ) -> Result<(), ConfigError> {
        let (capacity, partitions, new) = self.accepted(builder)?;
        self.drain(now, out);
        let has_waiting = self.len > 0;
        if let Capacity::Rate(rate) = &mut self.capacity {
            // The time until now drains at the rate that it had.
            rate.advance(now, has_waiting);
        }
        match (&mut self.capacity, capacity) {
            (Capacity::Rate(rate), Capacity::Rate(new)) => rate.change(&new),
            (Capacity::InFlight(limit), Capacity::InFlight(mut new)) => {
                if let (Concurrency::Adaptive(old), Concurrency::Adaptive(new)) =
                    (&*limit, &mut new)
                {
                    new.start_at(old.learnt());
                }
                *limit = new;
            }
            _ => {}
        }
        self.size = new.size;
        self.resize();
        self.stale_at = 0;
        self.late_after = new.late_after;
        self.partitions.change(&partitions);
        match (&mut self.shares, new.weights) {
            (Some(shares), Some(weights)) => shares.change(weights),
            (shares, weights) => *shares = weights.map(Shares::new),
        }
        for queue in self.lanes.all_mut() {
            match (&mut queue.codel, &new.codel) {
                (Some(codel), Some(new)) => codel.change(new),
                (codel, new) => codel.clone_from(new),
            }
        }
        self.drain(now, out);
        Ok(())
    }

    /// Changes the rate to this cost in each second. Requests that can start now are started.
    #[cfg(feature = "_layer")]
    pub(crate) fn change_rate(&mut self, now: u64, cost: u64, out: &mut Vec<Instruction>) {
        let has_waiting = self.len > 0;
        if let Capacity::Rate(rate) = &mut self.capacity {
            if let Ok(new) = Rate::new(cost.max(1), Duration::from_secs(1)) {
                rate.advance(now, has_waiting);
                rate.change(&new);
                self.resize();
                self.drain(now, out);
            }
        }
    }

    /// Checks whether [`reconfigure`](Self::reconfigure) would accept the settings.
    #[cfg(feature = "_layer")]
    pub(crate) fn check(&self, builder: SchedulerBuilder) -> Result<(), ConfigError> {
        self.accepted(builder).map(|_| ())
    }

    /// The parts of settings that this scheduler can change to.
    fn accepted(
        &self,
        builder: SchedulerBuilder,
    ) -> Result<(Capacity, Partitions, SchedulerBuilder), ConfigError> {
        let (capacity, partitions, new) = builder.checked()?;
        let is_rate = |capacity: &Capacity| matches!(capacity, Capacity::Rate(_));
        let parts = [
            ("kind of capacity", is_rate(&self.capacity) == is_rate(&capacity)),
            ("number of classes", self.lanes.classes() == new.classes),
            ("number of partitions", self.partitions.len() == partitions.len()),
            ("number of flow queues", self.lanes.flow_queues() == new.flow_queues),
        ];
        match parts.into_iter().find(|(_, is_same)| !is_same) {
            Some((part, _)) => Err(ConfigError::Fixed(part)),
            None => Ok((capacity, partitions, new)),
        }
    }
}
