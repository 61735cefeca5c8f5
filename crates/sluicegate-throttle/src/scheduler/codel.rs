/// CoDel as in folly: the shortest wait of each interval tells whether there is a standing queue.
///
/// If every request of an interval waited for longer than `target`, the next interval is overloaded, and requests in
/// it that waited for more than twice the target are dropped. The first request of an interval is never dropped.
#[derive(Debug, Clone)]
pub(super) struct Codel {
    target: u64,
    interval: u64,
    interval_end: u64,
    min_wait: u64,
    starts_interval: bool,
    is_overloaded: bool,
}

impl Codel {
    /// Both in microseconds.
    pub(super) const fn new(target: u64, interval: u64) -> Self {
        Self {
            target,
            interval,
            interval_end: 0,
            min_wait: 0,
            starts_interval: true,
            is_overloaded: false,
        }
    }

    pub(super) const fn makes_sense(&self) -> bool {
        0 < self.target && self.target <= self.interval
    }

    /// Continues with another target and interval.
    pub(super) const fn change(&mut self, new: &Self) {
        (self.target, self.interval) = (new.target, new.interval);
    }

    /// Whether to drop a request that leaves the queue `now` after it has `waited`.
    pub(super) fn drops(&mut self, now: u64, waited: u64) -> bool {
        // An interval that ends later than a whole one from now began before the clock stepped back.
        let is_over =
            now > self.interval_end || self.interval_end > now.saturating_add(self.interval);
        // The verdict on an interval falls with the first request after it, so an idle time extends it and drops nothing.
        if is_over && !self.starts_interval {
            self.interval_end = now.saturating_add(self.interval);
            self.is_overloaded = self.min_wait > self.target;
            self.starts_interval = true;
        }
        // The first is the sample that the others are compared with. To drop it would judge an interval by the last one.
        if self.starts_interval {
            self.starts_interval = false;
            self.min_wait = waited;
            return false;
        }
        // The shortest wait and not the mean: a burst makes the mean long and is gone soon, while a queue that never
        // empties makes the shortest one long (Nichols and Jacobson, "Controlling Queue Delay", 2012).
        self.min_wait = self.min_wait.min(waited);
        self.is_late(waited)
    }

    /// Whether a request that has `waited` would be dropped in this interval.
    pub(super) const fn is_late(&self, waited: u64) -> bool {
        self.is_overloaded && waited > self.target.saturating_mul(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Inputs and answers of folly's own tests, with its constants, in milliseconds.
    #[test]
    fn it_answers_as_folly_does() {
        let mut codel = Codel::new(5, 100);
        assert!(!codel.drops(110, 100));
        assert!(
            !codel.drops(200, 50),
            "two requests must come in an interval before one is dropped"
        );
        assert!(codel.drops(200, 50));
        assert!(!codel.drops(310, 2));
        assert!(codel.drops(400, 20), "20 ms are more than twice the target");
    }

    #[test]
    fn one_request_is_not_dropped() {
        assert!(!Codel::new(5, 100).drops(1, 20));
    }

    #[test]
    fn a_wait_of_less_than_twice_the_target_is_not_dropped() {
        let mut codel = Codel::new(5, 100);
        assert!(!codel.drops(1, 20));
        assert!(!codel.drops(91, 8));
        assert!(!codel.drops(92, 8));
        let mut codel = Codel::new(5, 100);
        assert!(!codel.drops(1, 20));
        assert!(!codel.drops(91, 4));
    }

    #[test]
    fn it_measures_anew_after_the_clock_has_stepped_back() {
        let mut codel = Codel::new(5, 100);
        assert!(!codel.drops(10_000, 20));
        assert!(!codel.drops(10_001, 20));
        assert!(codel.drops(10_002, 20), "every request of the interval before was late");
        assert!(!codel.drops(50, 1));
        assert!(!codel.drops(60, 1));
        assert!(!codel.drops(160, 20));
        assert!(!codel.drops(161, 20), "the interval that began at 50 was not overloaded");
    }
}
