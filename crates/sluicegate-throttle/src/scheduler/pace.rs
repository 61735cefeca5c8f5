/// How long requests of any kind take from start to end, smoothed over about sixteen of them. Estimates need no exact
/// arithmetic, so they are doubles. No exact bound depends on them.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Microseconds for a request; zero until one has ended.
    time: f64,
    /// Cost of a request.
    cost: f64,
}

/// The weight of a new observation.
const SMOOTHING: f64 = 1.0 / 16.0;

/// An observation counts as at most this many times the mean: a download of an hour says little about other requests.
/// Few requests that are 200 times as dear as the others are to count in full.
const OUTLIER: f64 = 256.0;

impl Pace {
    pub(super) fn learn(&mut self, time: u64, cost: u64) {
        if self.cost == 0.0 {
            return self.restart(time, cost);
        }
        let (time, cost) = (time as f64, cost.max(1) as f64);
        // As much less of both, since what counts is their ratio.
        let most = |mean: f64, new: f64| mean.max(1.0) * OUTLIER / new.max(1.0);
        let part = most(self.time, time).min(most(self.cost, cost)).min(1.0);
        self.time += (time * part - self.time) * SMOOTHING;
        self.cost += (cost * part - self.cost) * SMOOTHING;
    }

    /// Forgets everything but this request.
    pub(super) fn restart(&mut self, time: u64, cost: u64) {
        (self.time, self.cost) = (time as f64, cost.max(1) as f64);
    }

    /// How long a request of this cost is expected to run, in microseconds. Zero while that is unknown.
    pub(super) fn run_time(&self, cost: u64) -> u64 {
        if self.cost == 0.0 { 0 } else { (self.time * cost as f64 / self.cost) as u64 }
    }

    pub(super) const fn mean_time(&self) -> f64 {
        self.time
    }
}
