use super::Scheduler;
use super::capacity::Capacity;
use super::class_queue::ClassQueue;
use super::lane::Lane;

/// How long requests take from start to end, smoothed over about sixteen of them. Estimates need no exact arithmetic,
/// so they are doubles. No exact bound depends on them.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Microseconds for a request; zero until one has ended.
    time: f64,
    /// Cost of a request.
    cost: f64,
    /// When a request was last started although it would take too long.
    tried: u64,
}

/// The weight of a new observation.
const SMOOTHING: f64 = 1.0 / 16.0;

/// An observation counts as at most this many times the mean: a download of an hour says little about other requests. Few
/// requests that are 200 times as dear as the others are to count in full.
const OUTLIER: f64 = 256.0;

/// Who would take too long is started all the same, but no more often than this, in microseconds.
const TRY_AFTER: u64 = 1_000_000;

impl Pace {
    /// A request has been served. One that was tried shows what is true now: nothing from before counts any more.
    pub(super) fn learn(&mut self, time: u64, cost: u64, is_tried: bool) {
        let (time, cost) = (time as f64, cost.max(1) as f64);
        if self.cost == 0.0 || is_tried {
            (self.time, self.cost) = (time, cost);
        } else {
            // As much less of both, since what counts is their ratio.
            let most = |mean: f64, new: f64| mean.max(1.0) * OUTLIER / new.max(1.0);
            let part = most(self.time, time).min(most(self.cost, cost)).min(1.0);
            self.time += (time * part - self.time) * SMOOTHING;
            self.cost += (cost * part - self.cost) * SMOOTHING;
        }
    }

    /// Whether to try a request that is expected to run for longer than its client ever had `patience` for. If all of them
    /// were refused after a slow time, such as a cold start, nobody would learn that it is over. Who is late because
    /// others are ahead is not tried.
    pub(super) fn tries(&mut self, now: u64, run_time: u64, patience: u64) -> bool {
        let is_due = run_time > patience && now.saturating_sub(self.tried) >= TRY_AFTER;
        if is_due {
            self.tried = now;
        }
        is_due
    }

    /// How long a request of this cost is expected to run, in microseconds. Zero while that is unknown.
    pub(super) fn run_time(&self, cost: u64) -> u64 {
        if self.cost == 0.0 { 0 } else { (self.time * cost as f64 / self.cost) as u64 }
    }

    fn mean_time(&self) -> f64 {
        self.time
    }
}

impl Scheduler {
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
                ((len + 1) as f64 * self.pace.mean_time() / limit.limit() as f64) as u64
            }
        }
    }
}
