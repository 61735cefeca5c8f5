use super::Scheduler;
use super::capacity::Capacity;
use super::instruction::{Instruction, ShedReason};

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

    /// How long a request may wait, in microseconds, whatever was predicted.
    ///
    /// How long places are held is an estimate, so a request that was queued for the whole time can wait for a little
    /// longer: an eighth. A rate drains by itself. There, a request waits for longer while more critical ones overtake
    /// it, as the least critical do for moments in a server that is busy but not overloaded. At 0.8 times the load, the
    /// simulated server of `docs/benchmarks/overload.md` would lose 4.4 % of them after an eighth.
    const fn longest_wait(self, capacity: &Capacity) -> Option<u64> {
        match (self, capacity) {
            (Self::Cost(_), _) => None,
            (Self::Time(time), Capacity::InFlight(_)) => Some(time.saturating_add(time / 8)),
            (Self::Time(time), Capacity::Rate(_)) => Some(time.saturating_mul(2)),
        }
    }
}

impl Scheduler {
    /// How long a request may wait, in microseconds. `None` for any time.
    pub(super) const fn longest_wait(&self) -> Option<u64> {
        self.size.longest_wait(&self.capacity)
    }

    /// Called when a request is queued: it may wait from now on.
    pub(super) fn note_wait(&mut self, now: u64) {
        let until = self.longest_wait().map_or(u64::MAX, |longest| now.saturating_add(longest));
        self.stale_at = if self.len == 0 { until } else { self.stale_at.min(until) };
    }

    /// Sheds the requests that have waited for longer than the queue is long.
    pub(super) fn shed_stale(&mut self, now: u64, out: &mut Vec<Instruction>) {
        if now < self.stale_at {
            return;
        }
        let Some(longest) = self.longest_wait() else { return };
        self.shed_oldest(out, |scheduler, at| {
            let oldest = scheduler.lanes.all()[at].ages.oldest?;
            let waited = now.saturating_sub(scheduler.slab.entry(oldest).since);
            (waited >= longest).then_some(ShedReason::Stale)
        });
        self.stale_at = self.oldest().map_or(u64::MAX, |since| since.saturating_add(longest));
    }

    /// When the oldest of the requests that wait was offered.
    fn oldest(&self) -> Option<u64> {
        let oldest = self.lanes.all().iter().filter_map(|queue| queue.ages.oldest);
        oldest.map(|index| self.slab.entry(index).since).min()
    }

    /// Whether a rate owes so much that nothing starts before a new request would have waited for too long.
    pub(super) fn is_stopped(&self) -> bool {
        match (&self.capacity, self.longest_wait()) {
            (Capacity::Rate(rate), Some(longest)) => rate.wait(0) > longest,
            _ => false,
        }
    }

    /// Called when the capacity has changed: a queue for a time holds another cost.
    pub(super) fn resize(&mut self) {
        self.bound = self.size.cost(&self.capacity).max(1);
    }
}
