use super::{Completion, Running};
use crate::table::Table;

/// The time of a key is the median of this many requests. More than half of them have to be slow before the key counts
/// as slow, so clients that read their responses slowly do not shut a route for the others.
const LAST: usize = 7;

/// A request that would take too long is started all the same, but no more often than this for a key, in microseconds. One that
/// has taught nothing does not count.
const TRY_AFTER: u64 = 1_000_000;

/// How long requests run: for each key in a bounded table, and for all requests together.
///
/// Deadlines are judged by the key, so one slow route says nothing about the others. A key of which no request has ended
/// is expected to take no time: a request of it is only judged by how long it would wait. Requests without a key are
/// judged by all others. Times are learnt for a cost of 1, because a dear request of a key takes longer than a cheap one.
#[derive(Debug)]
pub(super) struct RunTimes {
    keys: Table<Recent>,
    all: Pace,
    /// When a request without a key was last tried.
    tried: u64,
}

/// The last requests of a key. Times are estimates, so they are floats.
#[derive(Debug, Clone, Copy, Default)]
struct Recent {
    /// Microseconds for a cost of 1.
    times: [f32; LAST],
    len: u8,
    next: u8,
    median: f32,
    /// When a request was last tried.
    tried: u64,
}

impl RunTimes {
    pub(super) fn new(keys: usize) -> Self {
        Self { keys: Table::new(keys), all: Pace::default(), tried: 0 }
    }

    /// How long a request is expected to run, in microseconds. Zero while that is unknown.
    pub(super) fn expected(&self, key: Option<u64>, cost: u64) -> u64 {
        match key {
            Some(key) => self.keys.value(key).map_or(0, |recent| recent.expected(cost)),
            None => self.all.run_time(cost),
        }
    }

    /// How long requests run on average, in microseconds. Zero while that is unknown.
    pub(super) const fn mean(&self) -> f64 {
        self.all.mean_time()
    }

    /// Whether to try a request that is expected to run for longer than its client ever had `patience` for. If all of
    /// them were refused after a slow time, such as a cold start, nothing would show that it is over. A request that is
    /// late because others are ahead is not tried.
    pub(super) fn tries(
        &mut self,
        now: u64,
        key: Option<u64>,
        run_time: u64,
        patience: u64,
    ) -> bool {
        let tried = match key {
            Some(key) => self.keys.known_mut(key).map(|recent| &mut recent.tried),
            None => Some(&mut self.tried),
        };
        // A request that others keep waiting would learn nothing by being started late.
        let Some(tried) = tried.filter(|_| run_time > patience) else { return false };
        // After a step of the clock back, the next request is tried.
        let is_due = now.checked_sub(*tried).is_none_or(|since| since >= TRY_AFTER);
        if is_due {
            *tried = now;
        }
        is_due
    }

    /// A request that was tried has taught nothing, so the next one is tried at once. Otherwise a client that leaves each
    /// time would keep the route shut for all others.
    pub(super) fn give_back_try(&mut self, key: Option<u64>) {
        match key {
            Some(key) => {
                if let Some(recent) = self.keys.known_mut(key) {
                    recent.tried = 0;
                }
            }
            None => self.tried = 0,
        }
    }

    /// A request has ended after this time, and has cost this much. One that was tried shows what is true now: nothing
    /// from before counts any more.
    pub(super) fn learn(
        &mut self,
        running: &Running,
        time: u64,
        cost: u64,
        completion: Completion,
    ) {
        let Running { key, is_tried, .. } = *running;
        let is_success = completion == Completion::Success;
        if is_success {
            match key {
                None if is_tried => self.all.restart(time, cost),
                _ => self.all.learn(time, cost),
            }
        }
        // If it was predicted as cheap, as all are at first, or has cost less than most, its time is that of a dear one.
        let cost = cost.max(running.cost);
        // A request that was cut short would have taken at least this long.
        // Such a time is a lower bound. It counts where it is longer than expected, which it then proves wrong.
        let was_cut_short = matches!(completion, Completion::Cancelled | Completion::Overload);
        let is_longer = |key| time > self.expected(Some(key), cost);
        if is_success || was_cut_short && key.is_some_and(is_longer) {
            if let Some(key) = key {
                self.keys.value_mut(key).learn(time as f32 / cost as f32, is_tried);
            }
        } else if is_tried {
            self.give_back_try(key);
        }
    }
}

impl Recent {
    fn expected(&self, cost: u64) -> u64 {
        (f64::from(self.median) * cost as f64) as u64
    }

    fn learn(&mut self, time: f32, is_tried: bool) {
        // One that was tried shows what is true now, so the slow times of before do not outvote it.
        if is_tried || self.len == 0 {
            *self = Self { times: [f32::INFINITY; LAST], len: 0, next: 0, ..*self };
        }
        self.times[usize::from(self.next)] = time;
        self.next = if usize::from(self.next) + 1 < LAST { self.next + 1 } else { 0 };
        self.len = (self.len + 1).min(LAST as u8);
        // Places without a time hold infinity, so those with one come first. The lower one of two: in doubt, a request is
        // not refused.
        let mut sorted = self.times;
        sorted.sort_unstable_by(f32::total_cmp);
        self.median = sorted[usize::from((self.len - 1) / 2)];
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_lower_one_of_two() {
        let mut recent = Recent::default();
        let mut medians = [5.0, 1.0, 3.0, 2.0, 9.0, 9.0, 9.0, 9.0].map(|time| {
            recent.learn(time, false);
            recent.median
        });
        assert_eq!(medians, [5.0, 1.0, 3.0, 2.0, 3.0, 3.0, 5.0, 9.0]);
        recent.learn(4.0, true);
        medians[0] = recent.median;
        assert_eq!((medians[0], recent.expected(10)), (4.0, 40));
    }
}
