//! The part that decides: who waits, who starts, who is refused.
//!
//! A [`Scheduler`] has no clock and no runtime, and never sees a request. Time is passed in, as microseconds since any
//! fixed moment, and instructions come out. The layer, the tests and the simulation drive the same code.
//!
//! ```
//! use std::time::Duration;
//! use sluicegate_throttle::Class;
//! use sluicegate_throttle::scheduler::{Instruction, Offer, Offered, Completion, Scheduler};
//!
//! let mut scheduler = Scheduler::builder().in_flight(1).queue(10).build()?;
//! let mut instructions = Vec::new();
//! let offer = |class| Offer { class, flow: 0, cost: 4, deadline: None, partition: None, key: None };
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
//! scheduler.done(1_000, first, None, Completion::Success, &mut instructions);
//! assert!(matches!(&instructions[..], [Instruction::Start(id, _)] if *id == second));
//! # Ok::<(), sluicegate_throttle::ConfigError>(())
//! ```

mod builder;
mod capacity;
mod class_queue;
mod codel;
mod lanes;
mod offer;
mod offering;
mod run_times;
mod shares;
mod show;
mod slab;
#[cfg(test)]
mod tests;
mod wait;

use self::capacity::{Capacity, Concurrency};
use self::class_queue::ClassQueue;
use self::lanes::Lanes;
use self::offer::{Index, Lane, NEVER};
use self::run_times::RunTimes;
use self::shares::{Partitions, Shares};
use self::show::Level;
use self::slab::{Deadlines, Entry, Slab};
use self::wait::{Chance, QueueSize};
use crate::adaptive::Sample;
use crate::class::Class;

pub use self::builder::SchedulerBuilder;
pub use self::class_queue::QueuedFlow;
pub use self::offer::{Completion, Id, Instruction, Offer, Offered, Running, Shed, ShedReason};
pub use self::show::Counts;

/// A queue bounded in cost, drained at a capacity.
///
/// Every operation takes constant time in the number of queued requests, except evictions. An eviction looks at each
/// request that it may evict.
#[derive(Debug)]
pub struct Scheduler {
    capacity: Capacity,
    size: QueueSize,
    /// The cost that the queue holds: what `size` is at this capacity.
    bound: u64,
    /// No request has waited for too long before this time, in microseconds.
    stale_at: u64,
    /// Until then the queue counts as full, because a request has waited for too long.
    full_until: u64,
    lanes: Lanes,
    shares: Option<Shares>,
    partitions: Partitions,
    late_after: Option<u64>,
    slab: Slab,
    deadlines: Deadlines,
    cost: u64,
    len: usize,
    running: usize,
    run_times: RunTimes,
    /// Of each class.
    counts: Box<[Counts]>,
    level: Level,
    /// How many requests may be started until [`allow`](Self::allow) is called again.
    allowance: usize,
    /// Whether the capacity has room for a request that waits only because no more may be started.
    is_held: bool,
    /// A buffer for the requests that may be evicted, reused from one eviction to the next.
    victims: Vec<(Index, u64)>,
}

impl Scheduler {
    /// Memory that each queued request takes here, in bytes. The memory of requests that have left is reused.
    pub const BYTES_PER_REQUEST: usize = Slab::BYTES + Deadlines::BYTES + ClassQueue::BYTES;

    /// Settings of a scheduler, to be changed.
    pub fn builder() -> SchedulerBuilder {
        SchedulerBuilder::new()
    }

    fn new(capacity: Capacity, partitions: Partitions, settings: SchedulerBuilder) -> Self {
        let SchedulerBuilder { size, classes, flow_queues, late_after, .. } = settings;
        let codel = settings.codel.as_ref();
        // At most 1,024 queues.
        let lanes = Lanes::new(classes, partitions.len(), flow_queues as u16, codel);
        Self {
            bound: size.cost(&capacity),
            capacity,
            size,
            stale_at: u64::MAX,
            full_until: 0,
            lanes,
            shares: settings.weights.map(Shares::new),
            partitions,
            late_after,
            slab: Slab::default(),
            deadlines: Deadlines::default(),
            cost: 0,
            len: 0,
            running: 0,
            run_times: RunTimes::new(settings.keys),
            counts: (0..classes).map(|_| Counts::default()).collect(),
            level: Level::new(classes),
            allowance: usize::MAX,
            is_held: false,
            victims: Vec::new(),
        }
    }

    /// Tells the scheduler that a request has ended. `actual` is its measured cost. With `None`, the predicted cost
    /// counts. Instructions for queued requests are added to `out`.
    pub fn done(
        &mut self,
        now: u64,
        running: Running,
        actual: Option<u64>,
        completion: Completion,
        out: &mut Vec<Instruction>,
    ) {
        self.running -= 1;
        self.partitions.get_mut(usize::from(running.partition)).running -= 1;
        let cost = actual.unwrap_or(running.cost);
        let spent = &mut self.counts[running.class.rank()].cost;
        *spent = spent.saturating_add(cost);
        let has_waiting = self.len > 0;
        if let Capacity::Rate(rate) = &mut self.capacity {
            // Time first: what drained until now must not count against the correction that follows.
            rate.advance(now, has_waiting);
            rate.settle(running.cost, cost, running.lost, has_waiting);
        }
        let time = now.saturating_sub(running.started);
        self.run_times.learn(&running, time, cost, completion);
        let is_overload = completion == Completion::Overload;
        if let Capacity::InFlight(Concurrency::Adaptive(algorithm)) = &mut self.capacity {
            // A response that is there at the end needs no beginning of its own.
            let is_cancelled = completion == Completion::Cancelled;
            let at = if is_cancelled { running.answered } else { running.answered.min(now) };
            let answered = (at != NEVER).then(|| at.saturating_sub(running.started));
            let in_flight = running.in_flight as usize;
            let sample = Sample { now, time, answered, in_flight, is_overload };
            match completion {
                // Taken back before it ran.
                _ if running.in_flight == 0 => {}
                Completion::Success | Completion::Overload => algorithm.update(sample),
                // A handler that fails at once would look like a fast server, and one whose client has left like a slow
                // one. Neither says anything about the capacity.
                Completion::Error | Completion::Cancelled => algorithm.update_unmeasured(sample),
            }
            // A queue for a time holds another cost at another limit.
            self.resize();
        }
        self.drain(now, out);
    }

    /// Takes back the start of a request whose client has gone before it ran. All that it took is given back.
    pub fn not_started(&mut self, now: u64, running: Running, out: &mut Vec<Instruction>) {
        if running.is_tried {
            self.run_times.give_back_try(running.key);
        }
        // Its time says nothing about others with its key.
        let running = Running { key: None, is_tried: false, in_flight: 0, ..running };
        let counts = &mut self.counts[running.class.rank()];
        counts.started -= 1;
        counts.cancelled += 1;
        self.done(now, running, Some(0), Completion::Cancelled, out);
    }

    /// Removes a request whose client has gone from the queue. Its cost is free at once. Returns whether it was still
    /// queued.
    pub fn cancel(&mut self, id: Id) -> bool {
        // The id has a generation, so a late cancellation never hits the request that has the slot now.
        let Some(index) = self.slab.find(id) else { return false };
        let rank = self.slab.entry(index).lane().rank;
        self.remove(index);
        self.counts[rank].cancelled += 1;
        true
    }

    /// Starts requests that can start now, and sheds requests that are too late. Instructions are added to `out`. Call
    /// it at [`next_at`](Self::next_at).
    #[inline]
    pub fn drain(&mut self, now: u64, out: &mut Vec<Instruction>) {
        if self.len > 0 {
            self.drain_queue(now, out);
        }
    }

    fn drain_queue(&mut self, now: u64, out: &mut Vec<Instruction>) {
        // Whoever is too late goes first, so that no place is given to a request that nobody waits for.
        self.shed_missed(now, out);
        self.shed_stale(now, out);
        self.is_held = false;
        // One request at a time, because each start changes whose turn it is: the rate, the shares and the deficits
        // move.
        while self.len > 0 && self.has_place(now) {
            // There is capacity, but the thread that would run the handler is busy. Starting more would put them into
            // the runtime's queue, where nothing orders them by class.
            if self.allowance == 0 {
                self.is_held = true;
                return;
            }
            self.drop_stale_ends(now, out);
            let late = self.late_after.map(|after| now.saturating_sub(after));
            let Some(lane) = self.next_lane(now) else { return };
            // `next` only looks. What it returns may still be shed, and then its flow has spent nothing and keeps its
            // turn.
            let Some(index) = self.lanes.get_mut(lane).next(&self.slab, late) else { return };
            let entry = self.slab.entry(index);
            let &Entry { queue, since, is_tried, .. } = entry;
            let offer = entry.offer();
            // Asked again, because its wait was only predicted when it was offered. One that was queued as a trial is started
            // whatever is expected: else nothing would show that a slow time is over.
            let chance = if is_tried { Chance::Tried } else { self.chance(now, 0, since, &offer) };
            if chance == Chance::Late {
                self.shed(index, ShedReason::Missed, out);
                continue;
            }
            let waited = now.saturating_sub(since);
            let class = self.lanes.get_mut(lane);
            // CoDel judges requests as they leave the queue, and only those: its interval is one of departures.
            if class.codel.as_mut().is_some_and(|codel| codel.drops(now, waited)) {
                if chance == Chance::Tried {
                    self.run_times.give_back_try(offer.key);
                }
                self.shed(index, ShedReason::Stale, out);
                continue;
            }
            // What is shed above has cost nothing, so only what is started counts against its flow and its class.
            class.spend(queue, offer.cost);
            if let Some(shares) = &mut self.shares {
                shares.spend(lane.rank, offer.cost);
            }
            let id = self.take(index);
            let is_tried = chance == Chance::Tried;
            let running = self.start(Running::new(now, lane, &offer, since, is_tried));
            self.allowance -= 1;
            out.push(Instruction::Start(id, running));
        }
    }

    /// When to call [`drain`](Self::drain) next, in microseconds: when the rate starts the next request, when the next
    /// deadline passes, or when a request may have waited for longer than the queue is long. `None` while no request
    /// waits, and while only the end of a running request can start the next one.
    #[inline]
    pub fn next_at(&self) -> Option<u64> {
        if self.len == 0 { None } else { self.next_of_queued() }
    }

    fn next_of_queued(&self) -> Option<u64> {
        // A rate that is free already, while more may not be started, is no reason to wake up: `allow` is. Only a rate starts something by the passage of time. Work in flight makes room when a request ends, and that
        // calls `done`.
        let free_at = match &self.capacity {
            Capacity::Rate(rate) if !self.is_held => Some(rate.free_at()),
            _ => None,
        };
        let stale_at = self.longest_wait().map(|_| self.stale_at);
        free_at.into_iter().chain(stale_at).chain(self.deadlines.next_at()).min()
    }

    /// Starts at most this many requests, at once or out of the queue, until it is called again. Requests for which there
    /// is capacity beyond that wait, and [`is_held`](Self::is_held) says so.
    #[cfg(feature = "_layer")]
    pub(crate) const fn allow(&mut self, requests: usize) {
        self.allowance = requests;
    }

    /// Whether a request waits that could be started if more were [allowed](Self::allow).
    #[cfg(feature = "_layer")]
    pub(crate) const fn is_held(&self) -> bool {
        self.is_held && self.len > 0
    }

    /// Whether a waiting request can be started now.
    fn has_place(&mut self, now: u64) -> bool {
        match &mut self.capacity {
            Capacity::Rate(rate) => {
                rate.advance(now, self.len > 0);
                rate.is_free()
            }
            Capacity::InFlight(limit) => {
                let limit = limit.limit();
                // A guaranteed place is started even beyond the limit. The places that others have borrowed come back
                // as their requests end, so the excess is bounded by the guarantees.
                self.running < limit || self.partitions.owed(limit).is_some()
            }
        }
    }

    /// The queue that is served next: that of a partition with a guaranteed place, that of a request which would wait for
    /// too long, or that of the class whose turn it is.
    fn next_lane(&self, now: u64) -> Option<Lane> {
        let owed = match &self.capacity {
            Capacity::InFlight(limit) => self.partitions.owed(limit.limit()),
            Capacity::Rate(_) => None,
        };
        // A guarantee comes before everything else, classes too: that is what it promises.
        if let Some(partition) = owed {
            let waits = |&rank: &usize| self.lanes.get(Lane { rank, partition }).len > 0;
            let rank = self.next_class(waits)?;
            return Some(Lane { rank, partition });
        }
        if let Some(lane) = self.overdue(now) {
            return Some(lane);
        }
        let rank = self.next_class(|&rank| self.lanes.has_waiting(rank))?;
        let partition = self.lanes.longest_waiting(rank, &self.slab)?;
        Some(Lane { rank, partition })
    }

    fn next_class(&self, waits: impl Fn(&usize) -> bool) -> Option<usize> {
        let mut waiting = (0..self.lanes.classes()).filter(waits);
        match &self.shares {
            None => waiting.next(),
            // Of equal passes, the first: the more critical class.
            Some(shares) => waiting.min_by_key(|&rank| shares.passes[rank]),
        }
    }

    fn start(&mut self, mut running: Running) -> Running {
        self.counts[running.class.rank()].started += 1;
        self.running += 1;
        self.partitions.get_mut(usize::from(running.partition)).running += 1;
        if let Capacity::Rate(rate) = &mut self.capacity {
            rate.start(running.cost);
            running.lost = rate.lost();
        }
        Running { in_flight: u32::try_from(self.running).unwrap_or(u32::MAX), ..running }
    }

    fn take(&mut self, index: Index) -> Id {
        let lane = self.slab.entry(index).lane();
        self.lanes.get_mut(lane).unlink(&mut self.slab, index);
        self.partitions.get_mut(lane.partition).waiting -= 1;
        let (id, entry) = self.slab.remove(index);
        // Else a timer would fire for a request that has gone.
        self.deadlines.clear_front(&self.slab);
        self.cost -= entry.cost;
        self.len -= 1;
        id
    }

    /// Removes a request that is not started.
    fn remove(&mut self, index: Index) -> Id {
        let entry = self.slab.entry(index);
        if entry.is_tried {
            self.run_times.give_back_try(entry.offer().key);
        }
        self.take(index)
    }

    fn shed(&mut self, index: Index, reason: ShedReason, out: &mut Vec<Instruction>) {
        let rank = self.slab.entry(index).lane().rank;
        let id = self.remove(index);
        let shed = self.counted(reason, rank);
        out.push(Instruction::Shed(id, shed));
    }

    fn counted(&mut self, reason: ShedReason, rank: usize) -> Shed {
        self.counts[rank].shed[reason as usize] += 1;
        Shed { class: Class::at(rank as u8), reason, retry_after: self.backlog(rank) }
    }
}
