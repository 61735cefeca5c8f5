use super::capacity::Capacity;
use super::class_queue::ClassQueue;
use super::lane::Lane;
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
            Capacity::InFlight(limit) => {
                ((len + 1) as f64 * self.run_times.mean() / limit.limit() as f64) as u64
            }
        }
    }
}
