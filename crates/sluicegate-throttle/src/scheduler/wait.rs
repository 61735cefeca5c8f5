use super::capacity::Capacity;
use super::class_queue::ClassQueue;
use super::offer::{Instruction, Lane, ShedReason};
use super::{Offer, Scheduler};

/// Whether a request can make its deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chance {
    InTime,
    /// It is expected to run for too long, and is started all the same to find out.
    Tried,
    Late,
}

impl Scheduler {
    /// Whether a request that was offered `since`, and would wait from now on, can make its deadline.
    pub(super) fn chance(&mut self, now: u64, wait: u64, since: u64, offer: &Offer) -> Chance {
        let Some(deadline) = offer.deadline else { return Chance::InTime };
        if deadline <= now {
            return Chance::Late;
        }
        let run_time = self.run_times.expected(offer.key, offer.cost);
        if now.saturating_add(wait).saturating_add(run_time) <= deadline {
            return Chance::InTime;
        }
        // From the arrival, not from now: one that has nearly used up its time in the queue is late because of others,
        // and would be a bad sample.
        let patience = deadline.saturating_sub(since);
        if wait <= patience && self.run_times.tries(now, offer.key, run_time, patience) {
            Chance::Tried
        } else {
            Chance::Late
        }
    }

    /// How long a request of this class and flow that is offered now would wait.
    pub(super) fn predicted_wait(&self, lane: Lane, flow: u64, now: u64) -> u64 {
        if self.len == 0 {
            return self.drain_time(0, 0, lane.partition);
        }
        let late = self.late_after.map(|after| now.saturating_sub(after));
        if self.lanes.get(lane).is_late(&self.slab, flow, late) {
            // The freshest request is served first: only more critical requests are ahead of it.
            return match lane.rank.checked_sub(1) {
                Some(above) => self.wait_behind(Lane { rank: above, ..lane }),
                None => self.drain_time(0, 0, lane.partition),
            };
        }
        self.wait_behind(lane)
    }

    /// How long it takes to drain everything that is ahead of a request of this class, in microseconds.
    pub(super) fn backlog(&self, rank: usize) -> u64 {
        self.wait_behind(Lane { rank, partition: 0 })
    }

    fn wait_behind(&self, lane: Lane) -> u64 {
        let Lane { rank, partition } = lane;
        let sum = |queues: &[ClassQueue]| {
            queues.iter().fold((0, 0), |(cost, len), queue| (cost + queue.cost, len + queue.len))
        };
        let (cost, len) = match &self.shares {
            None => sum(self.lanes.down_to(rank)),
            Some(shares) => {
                let all = sum(self.lanes.all());
                let own = sum(self.lanes.of(rank));
                let parts = shares.parts(rank);
                // A class gets its share at least, and waits for all others at most.
                let by_share = (
                    u64::saturating_mul(own.0, parts),
                    usize::saturating_mul(own.1, parts as usize),
                );
                (all.0.min(by_share.0), all.1.min(by_share.1))
            }
        };
        self.drain_time(cost, len, partition)
    }

    /// How long it takes to start `len` requests, which cost `cost` together, and then be able to start one more.
    fn drain_time(&self, cost: u64, len: usize, partition: usize) -> u64 {
        match &self.capacity {
            Capacity::Rate(rate) => rate.wait(cost),
            Capacity::InFlight(limit)
                if self.running < limit.limit()
                    || self.partitions.is_below_share(partition, limit.limit()) =>
            {
                0
            }
            // Places become free one after the other, each after the mean time. What a request costs says nothing of that: a
            // place that is held for long is one place.
            Capacity::InFlight(limit) => {
                // Little's law: with a limit of places, one becomes free after each mean time divided by the limit.
                ((len + 1) as f64 * self.run_times.mean() / limit.limit() as f64) as u64
            }
        }
    }
}

/// The largest size of a queue. It keeps sums of costs far from overflow.
const MOST: u64 = u64::MAX >> 2;

/// How much the queue holds. A time becomes a cost by the capacity alone, so both are in one unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueSize {
    /// This total cost.
    Cost(u64),
    /// What the capacity drains in this many microseconds.
    Time(u64),
}

impl QueueSize {
    /// The cost that the queue holds.
    pub(super) fn cost(self, capacity: &Capacity) -> u64 {
        match self {
            Self::Cost(cost) => cost.min(MOST),
            Self::Time(time) => capacity.drained_in(time).min(MOST),
        }
    }
}

impl Scheduler {
    /// How long a request may wait, in microseconds, whatever was predicted; `None` for any time. Because costs are
    /// estimates, it is an eighth longer than the queue is long. A rate drains by itself, and where no request is
    /// [moved forward](Self::overdue), a class waits for as long as others fill their shares: twice as long at most.
    pub(super) fn longest_wait(&self) -> Option<u64> {
        match (self.size, &self.capacity) {
            (QueueSize::Cost(_), _) => None,
            (QueueSize::Time(time), Capacity::Rate(_)) if !self.moves_forward() => {
                Some(time.saturating_mul(2))
            }
            (QueueSize::Time(time), _) => Some(time.saturating_add(time / 8)),
        }
    }

    /// Whether classes and flows are served in their order, the oldest request first.
    const fn moves_forward(&self) -> bool {
        self.shares.is_none() && self.late_after.is_none()
    }

    /// Called when a request is queued: it may wait from now on.
    pub(super) fn note_wait(&mut self, now: u64) {
        let until = self.longest_wait().map_or(u64::MAX, |longest| now.saturating_add(longest));
        // The minimum, because a change of the settings may have made the queue longer than it was for those that wait.
        self.stale_at = if self.len == 0 { until } else { self.stale_at.min(until) };
    }

    /// Sheds the requests that have waited for longer than the queue is long.
    pub(super) fn shed_stale(&mut self, now: u64, out: &mut Vec<Instruction>) {
        if now < self.stale_at {
            return;
        }
        let Some(longest) = self.longest_wait() else { return };
        let before = self.len;
        self.shed_oldest(out, |scheduler, at| {
            let oldest = scheduler.lanes.all()[at].ages.oldest?;
            let waited = now.saturating_sub(scheduler.slab.entry(oldest).since);
            (waited >= longest).then_some(ShedReason::Stale)
        });
        // Something has waited for too long, so predictions were too low: for as long again, classes decide.
        if self.len < before {
            self.full_until = now.saturating_add(longest);
        }
        self.stale_at = self.oldest().map_or(u64::MAX, |since| since.saturating_add(longest));
    }

    /// The queue of the oldest request, if that has waited for three quarters of the queue's time and the queue has room
    /// for a fifth more.
    ///
    /// A queue that does not fill is short enough for everybody, but the least critical are overtaken again and again: a
    /// server that is busy, and not overloaded, would shed them for having waited for too long. At 0.9 times the load, the
    /// simulated server of `docs/benchmarks/overload.md` would lose 10.9 % of them, and loses 2.4 %. Under overload the
    /// queue is full, and classes decide. For how long places are held says little about handlers that keep their thread
    /// busy. With work in flight, the queue counts as full after a request has waited for too long.
    pub(super) fn overdue(&self, now: u64) -> Option<Lane> {
        let QueueSize::Time(time) = self.size else { return None };
        let longest = self.longest_wait()?;
        // Early enough that it can still be served within the queue's time.
        let is_overdue = |since: u64| now.saturating_sub(since) >= time - time / 4;
        // No request was offered before that.
        if !is_overdue(self.stale_at.saturating_sub(longest)) || !self.moves_forward() {
            return None;
        }
        let was_full = matches!(self.capacity, Capacity::InFlight(_)) && now < self.full_until;
        if was_full || self.cost > self.bound - self.bound / 5 {
            return None;
        }
        let oldest = self.lanes.all().iter().filter_map(|queue| queue.ages.oldest);
        let oldest = oldest.map(|index| self.slab.entry(index)).min_by_key(|entry| entry.since)?;
        is_overdue(oldest.since).then(|| oldest.lane())
    }

    /// When the oldest of the requests that wait was offered.
    fn oldest(&self) -> Option<u64> {
        let oldest = self.lanes.all().iter().filter_map(|queue| queue.ages.oldest);
        oldest.map(|index| self.slab.entry(index).since).min()
    }

    /// Whether a rate owes so much that nothing starts before a new request would have waited for too long.
    pub(super) fn is_stopped(&self) -> bool {
        match (&self.capacity, self.longest_wait()) {
            // Work in flight owes nothing: a place is free, or its request will end.
            (Capacity::Rate(rate), Some(longest)) => rate.wait(0) > longest,
            _ => false,
        }
    }

    /// Called when the capacity has changed: a queue for a time holds another cost.
    pub(super) fn resize(&mut self) {
        self.bound = self.size.cost(&self.capacity).max(1);
    }
}
