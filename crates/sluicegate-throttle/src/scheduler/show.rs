use std::time::Duration;

use super::capacity::{Capacity, Concurrency};
use super::{Counts, QueuedFlow, Scheduler};
use crate::class::Class;

/// What it is doing at present.
impl Scheduler {
    /// How many requests are queued.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether no request is queued.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The cost of all queued requests together.
    pub const fn cost(&self) -> u64 {
        self.cost
    }

    /// The cost that the queue holds.
    pub const fn bound(&self) -> u64 {
        self.bound
    }

    /// How many requests of this class are queued, and their cost together.
    pub fn queued(&self, class: Class) -> (usize, u64) {
        let queues = self.lanes.of(self.rank(class)).iter();
        queues.fold((0, 0), |(len, cost), queue| (len + queue.len, cost + queue.cost))
    }

    /// The flows of this class that wait, in no order. There are at most as many as a class has queues for its flows,
    /// in each partition.
    pub fn flows(&self, class: Class) -> impl Iterator<Item = QueuedFlow> + '_ {
        self.lanes.flows(self.rank(class))
    }

    /// How many requests run.
    pub const fn running(&self) -> usize {
        self.running
    }

    /// How many requests may run at once; `None` where the capacity is a rate.
    pub fn limit(&self) -> Option<usize> {
        match &self.capacity {
            Capacity::Rate(_) => None,
            Capacity::InFlight(limit) => Some(limit.limit()),
        }
    }

    /// Whether as many requests run as may run at once.
    #[cfg(feature = "_layer")]
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.limit().is_some_and(|limit| self.running >= limit)
    }

    /// The cost that drains in each period; `None` where the capacity is work in flight.
    pub const fn rate(&self) -> Option<(u64, Duration)> {
        match &self.capacity {
            Capacity::Rate(rate) => Some(rate.parts()),
            Capacity::InFlight(_) => None,
        }
    }

    /// An adaptive limit's estimate of a request's time in an unloaded server, in microseconds. `None` while it is
    /// unknown, and if the algorithm or the capacity has no such estimate.
    pub fn baseline(&self) -> Option<u64> {
        match &self.capacity {
            Capacity::InFlight(Concurrency::Adaptive(algorithm)) => algorithm.baseline(),
            _ => None,
        }
    }

    /// What a [partition](super::SchedulerBuilder::partitions) uses, counted from 0.
    pub fn partition(&self, partition: u8) -> Option<PartitionUse> {
        let at = self.partitions.at(Some(partition));
        let limit = self.limit().filter(|_| at > 0)?;
        Some(PartitionUse {
            running: self.partitions.running(at),
            waiting: self.partitions.waiting(at),
            guaranteed: self.partitions.guaranteed(at, limit),
        })
    }

    /// Numbers of requests, by what happened to them.
    pub fn counts(&self) -> Counts {
        self.counts.iter().fold(Counts::default(), Counts::plus)
    }

    /// Numbers of requests of this class, by what happened to them.
    pub fn counts_of(&self, class: Class) -> Counts {
        self.counts[self.rank(class)]
    }

    /// How many classes are admitted, the most critical first. A class is admitted if less than half of its requests
    /// were shed in the last second, or in the last 2,000 requests of all classes. A caller that knows this number need
    /// not send requests of the other classes.
    pub const fn admitted_classes(&self, now: u64) -> usize {
        self.level.admitted(now, self.lanes.classes())
    }

    fn rank(&self, class: Class) -> usize {
        class.rank().min(self.lanes.classes() - 1)
    }
}

/// What a partition of the work in flight uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartitionUse {
    /// How many of its requests run.
    pub running: usize,
    /// How many of its requests are queued.
    pub waiting: usize,
    /// How many of its requests may run, regardless of the other partitions.
    pub guaranteed: usize,
}
