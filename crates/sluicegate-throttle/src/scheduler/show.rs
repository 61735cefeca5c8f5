use std::time::Duration;

use super::capacity::{Capacity, Concurrency};
use super::shares::Partition;
use super::{QueuedFlow, Scheduler, ShedReason};
use crate::class::Class;
use crate::error::MAX_CLASSES;

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

    /// How many requests of a [partition](super::SchedulerBuilder::partitions), counted from 0, run and wait, and how many
    /// may run regardless of the other partitions.
    pub fn partition(&self, partition: u8) -> Option<[usize; 3]> {
        let at = self.partitions.at(Some(partition));
        let guaranteed = self.partitions.guaranteed(at, self.limit().filter(|_| at > 0)?);
        let Partition { running, waiting, .. } = *self.partitions.get(at);
        Some([running, waiting, guaranteed])
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
    /// were shed because of the load in the last second, or in the last 2,000 requests of all classes. Requests that are
    /// shed for their flow's share, or for a deadline that they would have missed without waiting, do not count. A caller that
    /// knows this number need not send requests of the other classes.
    pub const fn admitted_classes(&self, now: u64) -> usize {
        self.level.admitted(now, self.lanes.classes())
    }

    fn rank(&self, class: Class) -> usize {
        class.rank().min(self.lanes.classes() - 1)
    }
}

/// Numbers of requests since the scheduler was made, by what happened to them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Offered: the sum of started, shed, cancelled and still queued requests.
    pub offered: u64,
    /// Started when they were offered, without waiting.
    pub at_once: u64,
    /// Put into the queue.
    pub queued: u64,
    /// Started, at once or out of the queue.
    pub started: u64,
    /// Refused, by reason, in the order of [`ShedReason::ALL`].
    pub shed: [u64; ShedReason::ALL.len()],
    /// Removed from the queue because the client had gone.
    pub cancelled: u64,
    /// Total cost of ended requests: the measured cost, or the predicted one if nothing was measured.
    pub cost: u64,
}

impl Counts {
    /// How many requests were refused for `reason`.
    pub const fn shed_for(&self, reason: ShedReason) -> u64 {
        self.shed[reason as usize]
    }

    /// How many requests were refused.
    pub fn all_shed(&self) -> u64 {
        self.shed.iter().sum()
    }

    /// How many requests were refused because of what their client sent, and not because of the load. One client could otherwise
    /// have it announced that no class is admitted, or hide that the others are shed.
    fn shed_by_client(&self) -> u64 {
        use ShedReason::{NeverFits, Share};
        self.shed_for(NeverFits) + self.shed_for(Share)
    }

    pub(super) fn plus(mut self, other: &Self) -> Self {
        self.offered += other.offered;
        self.at_once += other.at_once;
        self.queued += other.queued;
        self.started += other.started;
        self.shed.iter_mut().zip(other.shed).for_each(|(sum, shed)| *sum += shed);
        self.cancelled += other.cancelled;
        self.cost = self.cost.saturating_add(other.cost);
        self
    }
}

/// A window ends after a second, or after this many requests: the constants of DAGOR (Zhou et al., "Overload Control
/// for Scaling WeChat Microservices", 2018).
const WINDOW: u64 = 1_000_000;
const REQUESTS: u64 = 2_000;

/// A window with fewer requests of a class says nothing about that class.
const FEWEST: u64 = 4;

/// How many classes are admitted, the most critical first. A class is admitted if less than half of its requests were
/// shed in the last window.
#[derive(Debug)]
pub(super) struct Level {
    since: u64,
    offers: u64,
    /// Offered and shed requests of each class when the window began.
    before: [(u64, u64); MAX_CLASSES],
    /// Requests of each class that would have been too late on an idle server.
    hopeless: [u64; MAX_CLASSES],
    admitted: usize,
}

impl Level {
    pub(super) const fn new(classes: usize) -> Self {
        let (before, hopeless) = ([(0, 0); MAX_CLASSES], [0; MAX_CLASSES]);
        Self { since: 0, offers: 0, before, hopeless, admitted: classes }
    }

    /// A request is about to be offered.
    pub(super) fn observe(&mut self, now: u64, classes: &[Counts]) {
        self.offers += 1;
        // After a step of the clock back, a new window begins.
        let is_past = now.checked_sub(self.since).is_none_or(|time| time >= WINDOW);
        let is_over = is_past || self.offers > REQUESTS;
        if !is_over {
            return;
        }
        // Counts from before a quiet time say nothing about the present.
        let is_recent = now.saturating_sub(self.since) < 2 * WINDOW;
        let mut admitted = classes.len();
        // From the least critical on, so that the most critical class that is shed sets the level.
        for (rank, class) in classes.iter().enumerate().rev() {
            let (offered, shed) = self.before[rank];
            let by_client = class.shed_by_client() + self.hopeless[rank];
            let all = (class.offered - by_client, class.all_shed() - by_client);
            let (offered, shed) = (all.0 - offered, all.1 - shed);
            self.before[rank] = all;
            if offered >= FEWEST && shed * 2 > offered && is_recent {
                admitted = rank;
            }
        }
        (self.admitted, self.since, self.offers) = (admitted, now, 1);
    }

    /// A request is refused for its deadline, whatever waits.
    pub(super) const fn note_hopeless(&mut self, rank: usize) {
        self.hopeless[rank] += 1;
    }

    /// How many classes are admitted. After a time without requests, all of them are.
    pub(super) const fn admitted(&self, now: u64, classes: usize) -> usize {
        if now.saturating_sub(self.since) < 2 * WINDOW { self.admitted } else { classes }
    }
}
