//! The part that decides: who waits, who starts, who is refused.
//!
//! A [`Scheduler`] knows no clock, no runtime and no request. Time is passed in, as microseconds since any moment, and
//! instructions come out. The layer, the tests and the simulation drive the same code.
//!
//! ```
//! use std::time::Duration;
//! use sluicegate_throttle::Class;
//! use sluicegate_throttle::scheduler::{Instruction, Offer, Offered, Outcome, Scheduler};
//!
//! let mut scheduler = Scheduler::builder().in_flight(1).queue(10).build()?;
//! let mut instructions = Vec::new();
//! let offer = |class| Offer { class, flow: 0, cost: 4, deadline: None };
//!
//! // The first request runs, so the second waits.
//! let first = match scheduler.offer(0, offer(Class::SHEDDABLE), &mut instructions) {
//!     Offered::Start(running) => running,
//!     other => panic!("{other:?}"),
//! };
//! let second = match scheduler.offer(0, offer(Class::CRITICAL), &mut instructions) {
//!     Offered::Queued(id) => id,
//!     other => panic!("{other:?}"),
//! };
//!
//! // When the first is done, the second starts.
//! scheduler.done(1_000, first, None, Outcome::Success, &mut instructions);
//! assert!(matches!(&instructions[..], [Instruction::Start(id, _)] if *id == second));
//! # Ok::<(), sluicegate_throttle::ConfigError>(())
//! ```

mod builder;
mod capacity;
mod class_queue;
mod codel;
mod evict;
mod instruction;
mod sharding;
mod slab;
#[cfg(test)]
mod tests;
mod wait;

use self::capacity::{Capacity, Concurrency};
use self::class_queue::ClassQueue;
use self::slab::{Entry, Index, Slab};
use self::wait::Pace;
use crate::adaptive::Sample;
use crate::class::Class;

pub use self::builder::SchedulerBuilder;
pub use self::instruction::{
    Counts, Instruction, Offer, Offered, Outcome, Running, Shed, ShedReason,
};
pub use self::slab::Id;

/// A queue bounded in cost, drained at a capacity.
///
/// Every operation takes constant time in the number of queued requests, apart from evictions: one looks at as many
/// requests as it may evict.
#[derive(Debug)]
pub struct Scheduler {
    capacity: Capacity,
    bound: u64,
    classes: Box<[ClassQueue]>,
    shares: Option<Shares>,
    late_after: Option<u64>,
    slab: Slab,
    cost: u64,
    len: usize,
    running: usize,
    pace: Pace,
    counts: Counts,
    /// Room for the requests that may be evicted, kept from one eviction to the next.
    victims: Vec<(Index, u64)>,
}

impl Scheduler {
    /// Memory that each queued request takes here, in bytes. The memory of requests that have left is used again.
    pub const BYTES_PER_REQUEST: usize = Slab::BYTES;

    /// Settings of a scheduler, to be changed.
    pub fn builder() -> SchedulerBuilder {
        SchedulerBuilder::new()
    }

    fn new(
        capacity: Capacity,
        bound: u64,
        classes: Box<[ClassQueue]>,
        weights: Option<Box<[u64]>>,
        late_after: Option<u64>,
    ) -> Self {
        Self {
            capacity,
            bound,
            classes,
            shares: weights.map(Shares::new),
            late_after,
            slab: Slab::default(),
            cost: 0,
            len: 0,
            running: 0,
            pace: Pace::default(),
            counts: Counts::default(),
            victims: Vec::new(),
        }
    }

    /// Offers a request. Instructions for queued requests are added to `out`.
    pub fn offer(&mut self, now: u64, offer: Offer, out: &mut Vec<Instruction>) -> Offered {
        self.drain(now, out);
        self.counts.offered += 1;
        let rank = offer.class.rank().min(self.classes.len() - 1);
        let cost = offer.cost.max(1);
        let wait = self.predicted_wait(rank, offer.flow, now);
        let end = now.saturating_add(wait).saturating_add(self.pace.run_time(cost));
        if offer.deadline.is_some_and(|deadline| end > deadline) {
            return self.refuse(ShedReason::Deadline, rank);
        }
        if self.len == 0 && self.is_free(now) {
            return Offered::Start(self.start(now, rank, cost, 0));
        }
        if cost > self.bound {
            return self.refuse(ShedReason::NeverFits, rank);
        }
        if self.cost.saturating_add(cost) > self.bound {
            self.shed_expired(now, out);
            let excess = self.cost.saturating_add(cost).saturating_sub(self.bound);
            if excess > 0 && !self.evict(rank, excess, out) {
                return self.refuse(ShedReason::Full, rank);
            }
        }
        let queue = self.classes[rank].queue_for(offer.flow);
        // At most eight classes.
        let id = self.slab.insert(Entry::new(rank as u8, queue, cost, now, offer.deadline));
        if let (Some(shares), 0) = (&mut self.shares, self.classes[rank].len) {
            shares.join(rank);
        }
        let index = self.slab.index(id);
        self.classes[rank].push(&mut self.slab, index);
        self.cost += cost;
        self.len += 1;
        Offered::Queued(id)
    }

    /// A request has ended. `actual` is what it has cost, if that was measured; without it, its predicted cost stays.
    /// Instructions for queued requests are added to `out`.
    pub fn done(
        &mut self,
        now: u64,
        running: Running,
        actual: Option<u64>,
        outcome: Outcome,
        out: &mut Vec<Instruction>,
    ) {
        self.running -= 1;
        let cost = actual.unwrap_or(running.cost);
        let has_waiting = self.len > 0;
        if let Capacity::Rate(rate) = &mut self.capacity {
            rate.advance(now, has_waiting);
            rate.settle(running.cost, cost, has_waiting);
        }
        let time = now.saturating_sub(running.started);
        if outcome == Outcome::Success {
            self.pace.learn(time, cost);
        }
        let is_overload = outcome == Outcome::Overload;
        if let Capacity::InFlight(Concurrency::Adaptive(algorithm)) = &mut self.capacity {
            if is_overload || outcome == Outcome::Success {
                let in_flight = running.in_flight;
                algorithm.update(Sample { now, time, in_flight, is_overload });
            }
        }
        self.drain(now, out);
    }

    /// A request that was told to start has not been, because its client has gone: all that it took is given back.
    pub fn not_started(&mut self, now: u64, running: Running, out: &mut Vec<Instruction>) {
        self.counts.started -= 1;
        self.counts.cancelled += 1;
        self.done(now, running, Some(0), Outcome::Cancelled, out);
    }

    /// Takes a request out of the queue, because its client has gone: its cost is free at once. Returns whether it was
    /// still queued.
    pub fn cancel(&mut self, id: Id) -> bool {
        let Some(index) = self.slab.find(id) else { return false };
        self.take(index);
        self.counts.cancelled += 1;
        true
    }

    /// Starts what can be started now, and drops what is too late. Instructions are added to `out`. Call it at
    /// [`next_at`](Self::next_at).
    pub fn drain(&mut self, now: u64, out: &mut Vec<Instruction>) {
        while self.len > 0 && self.is_free(now) {
            self.drop_stale_ends(now, out);
            let late = self.late_after.map(|after| now.saturating_sub(after));
            let Some(rank) = self.next_class() else { return };
            let Some(index) = self.classes[rank].next(&self.slab, late) else { return };
            let entry = self.slab.entry(index);
            let (cost, queue, waited) = (entry.cost, entry.queue, now.saturating_sub(entry.since));
            let end = now.saturating_add(self.pace.run_time(cost));
            if entry.deadline.is_some_and(|deadline| end > deadline) {
                self.shed(index, ShedReason::Deadline, out);
                continue;
            }
            if self.classes[rank].codel.as_mut().is_some_and(|codel| codel.drops(now, waited)) {
                self.shed(index, ShedReason::Stale, out);
                continue;
            }
            self.classes[rank].spend(queue, cost);
            if let Some(shares) = &mut self.shares {
                shares.spend(rank, cost);
            }
            let id = self.take(index);
            let running = self.start(now, rank, cost, waited);
            out.push(Instruction::Start(id, running));
        }
    }

    /// When to call [`drain`](Self::drain) next, in microseconds. `None` while nobody waits, or while the end of a
    /// running request is what starts the next one.
    pub fn next_at(&self) -> Option<u64> {
        match &self.capacity {
            Capacity::Rate(rate) if self.len > 0 => Some(rate.free_at()),
            _ => None,
        }
    }

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
        let class = &self.classes[class.rank().min(self.classes.len() - 1)];
        (class.len, class.cost)
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

    /// How many requests went which way.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    fn is_free(&mut self, now: u64) -> bool {
        match &mut self.capacity {
            Capacity::Rate(rate) => {
                rate.advance(now, self.len > 0);
                rate.is_free()
            }
            Capacity::InFlight(limit) => self.running < limit.limit(),
        }
    }

    fn next_class(&self) -> Option<usize> {
        let mut waiting = (0..self.classes.len()).filter(|&rank| self.classes[rank].len > 0);
        match &self.shares {
            None => waiting.next(),
            Some(shares) => waiting.min_by_key(|&rank| shares.passes[rank]),
        }
    }

    fn start(&mut self, now: u64, rank: usize, cost: u64, waited: u64) -> Running {
        self.counts.started += 1;
        self.running += 1;
        if let Capacity::Rate(rate) = &mut self.capacity {
            rate.start(cost);
        }
        Running {
            class: Class::at(rank as u8),
            cost,
            started: now,
            waited,
            in_flight: self.running,
        }
    }

    fn take(&mut self, index: Index) -> Id {
        let class = usize::from(self.slab.entry(index).class);
        self.classes[class].unlink(&mut self.slab, index);
        let (id, entry) = self.slab.remove(index);
        self.cost -= entry.cost;
        self.len -= 1;
        id
    }

    fn shed(&mut self, index: Index, reason: ShedReason, out: &mut Vec<Instruction>) {
        let rank = usize::from(self.slab.entry(index).class);
        let id = self.take(index);
        let shed = self.counted(reason, rank);
        out.push(Instruction::Shed(id, shed));
    }

    fn refuse(&mut self, reason: ShedReason, rank: usize) -> Offered {
        Offered::Shed(self.counted(reason, rank))
    }

    fn counted(&mut self, reason: ShedReason, rank: usize) -> Shed {
        self.counts.shed[reason as usize] += 1;
        Shed { reason, retry_after: self.backlog(rank) }
    }
}

/// Weighted shares of the classes, by stride scheduling: the class with the lowest pass is next, and what it starts
/// moves its pass forward by cost over weight.
#[derive(Debug)]
struct Shares {
    weights: Box<[u64]>,
    passes: Box<[u128]>,
    /// The pass of the class that was served last.
    latest: u128,
}

impl Shares {
    fn new(weights: Box<[u64]>) -> Self {
        Self { passes: weights.iter().map(|_| 0).collect(), weights, latest: 0 }
    }

    /// A class has something waiting again. It gets no credit for the time in which it had nothing.
    fn join(&mut self, rank: usize) {
        self.passes[rank] = self.passes[rank].max(self.latest);
    }

    fn spend(&mut self, rank: usize, cost: u64) {
        self.latest = self.passes[rank];
        self.passes[rank] += (u128::from(cost) << 32) / u128::from(self.weights[rank]);
    }

    /// How many times the share of one class goes into the whole.
    fn parts(&self, rank: usize) -> u64 {
        self.weights.iter().sum::<u64>().div_ceil(self.weights[rank])
    }
}
