/// Without a poll for so long, the requests that were told to start are not counted any more, in microseconds: ten turns.
const STUCK: u64 = 10 * super::turn::LONGEST;

/// How many requests were told to start and have not been polled since. They fill the turn that is to come.
///
/// The turn may never come for them: their thread is blocked by a handler, or nobody polls their future. Others must not
/// wait for that, so they count for a short time only.
#[derive(Debug, Default)]
pub(super) struct PendingStarts {
    count: usize,
    /// When one of them was last polled, or the first of them was told, in microseconds.
    since: u64,
    /// Those that were told before are not counted any more.
    counted_from: u64,
}

impl PendingStarts {
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// When they are not counted any more, if none is polled before.
    pub(super) const fn until(&self) -> u64 {
        self.since.saturating_add(STUCK)
    }

    /// A request is told to start.
    pub(super) fn add(&mut self, now: u64) {
        if self.count == 0 {
            self.since = now;
        }
        self.count += 1;
    }

    /// One that was told at `told_at` is polled.
    pub(super) fn polled(&mut self, told_at: u64, now: u64) {
        self.since = now;
        self.left(told_at);
    }

    /// One that was told at `told_at` has left.
    pub(super) fn left(&mut self, told_at: u64) {
        if told_at >= self.counted_from {
            // A clock that has stepped back may name one as counted that is not.
            self.count = self.count.saturating_sub(1);
        }
    }

    /// Stops to count those that are stuck.
    pub(super) fn expire(&mut self, now: u64) {
        // After a step of the clock back, it goes on from there.
        self.since = self.since.min(now);
        self.counted_from = self.counted_from.min(now);
        if self.count > 0 && now >= self.until() {
            self.count = 0;
            self.counted_from = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_are_told_count_until_none_was_polled_for_ten_turns() {
        let mut starts = PendingStarts::default();
        (0..3).for_each(|at| starts.add(at));
        starts.expire(STUCK - 1);
        starts.polled(0, STUCK - 1);
        starts.expire(2 * STUCK - 2);
        assert_eq!(starts.count(), 2);
        starts.expire(2 * STUCK - 1);
        assert_eq!(starts.count(), 0);
        // What is not counted any more is not taken off what is.
        starts.add(2 * STUCK);
        starts.polled(1, 2 * STUCK);
        starts.left(2);
        assert_eq!(starts.count(), 1);
        starts.polled(2 * STUCK, 2 * STUCK);
        assert_eq!(starts.count(), 0);
    }

    #[test]
    fn requests_that_are_told_count_no_longer_after_the_clock_has_stepped_back() {
        const LATER: u64 = 3_600_000_000;
        let mut starts = PendingStarts::default();
        starts.add(LATER);
        starts.expire(LATER + STUCK);
        starts.add(LATER + STUCK);
        starts.expire(0);
        starts.expire(STUCK);
        assert_eq!(starts.count(), 0);
        starts.add(STUCK);
        starts.polled(STUCK, STUCK);
        (0..2).for_each(|_| starts.polled(LATER + STUCK, STUCK));
        assert_eq!(starts.count(), 0);
    }
}
