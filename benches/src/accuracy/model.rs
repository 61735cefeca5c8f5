//! The algorithms in the plainest form: exact, in integers, without regard to speed.
//!
//! A model only counts what a limiter admitted, and says whether one more request would have fitted.

use std::collections::VecDeque;

use super::Rate;

/// A rule about admissions. Times are in microseconds and never go back.
#[derive(Debug, Clone)]
pub(super) enum Model {
    Log(Log),
    Meter(Meter),
    Windows(Windows),
    Counter(Counter),
}

impl Model {
    /// By how much `cost` more at `at` would be too much, in requests of cost 1: exactly 0 where it
    /// fits.
    pub(super) fn excess(&self, at: u64, cost: u64) -> f64 {
        match self {
            Self::Log(log) => log.excess(at, cost) as f64,
            Self::Meter(meter) => meter.excess(at, cost),
            Self::Windows(windows) => windows.excess(at, cost) as f64,
            Self::Counter(counter) => counter.excess(at, cost) as f64,
        }
    }

    /// Whether `cost` more at `at` would keep to the rule.
    pub(super) fn fits(&self, at: u64, cost: u64) -> bool {
        self.excess(at, cost) == 0.0
    }

    /// `cost` was admitted at `at`, whether it fitted or not.
    pub(super) fn spend(&mut self, at: u64, cost: u64) {
        match self {
            Self::Log(log) => log.spend(at, cost),
            Self::Meter(meter) => meter.spend(at, cost),
            Self::Windows(windows) => windows.spend(at, cost),
            Self::Counter(counter) => counter.spend(at, cost),
        }
    }
}

/// At most `count` in any interval of one `period`, half-open: at exactly one period it is free again.
#[derive(Debug, Clone)]
pub(super) struct Log {
    count: u64,
    period: u64,
    total: u64,
    entries: VecDeque<(u64, u64)>,
}

impl Log {
    pub(super) fn new(rate: Rate) -> Self {
        Self { count: rate.count, period: rate.period, total: 0, entries: VecDeque::new() }
    }

    pub(super) fn excess(&self, at: u64, cost: u64) -> u64 {
        (self.held(at) + cost).saturating_sub(self.count)
    }

    /// Admitted in the last period before `at`. What is booked for later counts too.
    pub(super) fn held(&self, at: u64) -> u64 {
        let left = |&&(when, _): &&(u64, u64)| when + self.period <= at;
        self.total - self.entries.iter().take_while(left).map(|(_, cost)| cost).sum::<u64>()
    }

    pub(super) fn spend(&mut self, at: u64, cost: u64) {
        while self.entries.front().is_some_and(|(when, _)| when + self.period <= at) {
            self.total -= self.entries.pop_front().map_or(0, |(_, cost)| cost);
        }
        self.total += cost;
        match self.entries.back_mut() {
            Some((when, so_far)) if *when == at => *so_far += cost,
            _ => self.entries.push_back((at, cost)),
        }
    }
}

/// At most `burst + rate × t` in every interval `t`. The level is in requests times the period, so
/// nothing is ever rounded.
#[derive(Debug, Clone)]
pub(super) struct Meter {
    rate: Rate,
    burst: u64,
    level: u128,
    at: u64,
}

impl Meter {
    pub(super) fn new(rate: Rate, burst: u64) -> Self {
        Self { rate, burst, level: 0, at: 0 }
    }

    fn excess(&self, at: u64, cost: u64) -> f64 {
        let over = (self.level(at) + self.weight(cost)).saturating_sub(self.weight(self.burst));
        over as f64 / self.rate.period as f64
    }

    fn spend(&mut self, at: u64, cost: u64) {
        self.level = self.level(at) + self.weight(cost);
        self.at = at;
    }

    fn level(&self, at: u64) -> u128 {
        let drained = u128::from(self.rate.count) * u128::from(at.saturating_sub(self.at));
        self.level.saturating_sub(drained)
    }

    fn weight(&self, cost: u64) -> u128 {
        u128::from(cost) * u128::from(self.rate.period)
    }
}

/// At most `count` in each window.
#[derive(Debug, Clone)]
pub(super) struct Windows {
    rate: Rate,
    /// Whether a window begins with the first request in it, not at a multiple of the period.
    from_first: bool,
    start: u64,
    spent: u64,
}

impl Windows {
    pub(super) fn new(rate: Rate, from_first: bool) -> Self {
        Self { rate, from_first, start: 0, spent: 0 }
    }

    fn excess(&self, at: u64, cost: u64) -> u64 {
        (self.spent(at) + cost).saturating_sub(self.rate.count)
    }

    fn spent(&self, at: u64) -> u64 {
        if at < self.start + self.rate.period { self.spent } else { 0 }
    }

    fn spend(&mut self, at: u64, cost: u64) {
        let spent = self.spent(at);
        if spent == 0 {
            self.start = if self.from_first { at } else { at - at % self.rate.period };
        }
        self.spent = spent + cost;
    }
}

/// The current window's count and the previous one's, weighted by its overlap, together stay within `count`.
#[derive(Debug, Clone)]
pub(super) struct Counter {
    rate: Rate,
    weighing: Weighing,
    start: u64,
    previous: u64,
    current: u64,
}

/// The ways to weigh the previous window that are in use.
#[derive(Debug, Clone, Copy)]
pub struct Weighing {
    /// Whether a fraction of a request counts as none, or as one.
    pub rounded_down: bool,
    /// Whether windows begin anew with the first request after two idle windows.
    pub from_first: bool,
}

impl Counter {
    pub(super) fn new(rate: Rate, weighing: Weighing) -> Self {
        Self { rate, weighing, start: 0, previous: 0, current: 0 }
    }

    fn excess(&self, at: u64, cost: u64) -> u64 {
        let now = self.at(at);
        let period = u128::from(self.rate.period);
        let overlap = period - u128::from(at.saturating_sub(now.start));
        let weighted = u128::from(now.previous) * overlap;
        let weighted = match self.weighing.rounded_down {
            true => weighted / period,
            false => weighted.div_ceil(period),
        };
        (weighted as u64 + now.current + cost).saturating_sub(self.rate.count)
    }

    fn spend(&mut self, at: u64, cost: u64) {
        *self = self.at(at);
        self.current += cost;
    }

    /// The state at `at`.
    fn at(&self, at: u64) -> Self {
        let period = self.rate.period;
        let passed = at.saturating_sub(self.start) / period;
        let anew = passed >= 2 && self.weighing.from_first;
        let start = if anew { at } else { self.start + passed * period };
        let (previous, current) = match passed {
            0 => (self.previous, self.current),
            1 => (self.current, 0),
            _ => (0, 0),
        };
        Self { start, previous, current, ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { count: 3, period: 100 };

    /// When each of `requests` of cost 1 was admitted.
    fn let_in(mut model: Model, requests: &[u64]) -> Vec<u64> {
        let mut fits = |at: &&u64| {
            let fits = model.fits(**at, 1);
            if fits {
                model.spend(**at, 1);
            }
            fits
        };
        requests.iter().filter(&mut fits).copied().collect()
    }

    #[test]
    fn a_log_frees_a_place_at_exactly_one_period() {
        let log = Model::Log(Log::new(RATE));
        assert_eq!(let_in(log, &[0, 10, 20, 99, 100, 109, 110]), [0, 10, 20, 100, 110]);
    }

    #[test]
    fn a_meter_keeps_a_third_exactly() {
        let meter = Model::Meter(Meter::new(RATE, 1));
        assert_eq!(let_in(meter, &[0, 33, 34, 66, 67, 99, 100, 132, 133]), [0, 34, 99, 133]);
    }

    #[test]
    fn windows_let_twice_their_count_through_around_a_border() {
        let around = [97, 98, 99, 99, 100, 101, 102, 103];
        let aligned = Model::Windows(Windows::new(RATE, false));
        assert_eq!(let_in(aligned, &around), [97, 98, 99, 100, 101, 102]);
        let from_first = Model::Windows(Windows::new(RATE, true));
        assert_eq!(let_in(from_first, &[150, 240, 249, 250, 251, 252, 253]).len(), 6);
    }

    #[test]
    fn a_counter_weighs_the_previous_window() {
        let counter = |rounded_down| {
            Model::Counter(Counter::new(RATE, Weighing { rounded_down, from_first: false }))
        };
        let requests = [97, 98, 99, 100, 133, 134, 167];
        // 3 × 67 / 100 is 2.01, 3 × 66 / 100 is 1.98, 3 × 33 / 100 is 0.99.
        assert_eq!(let_in(counter(true), &requests), [97, 98, 99, 133, 134, 167]);
        assert_eq!(let_in(counter(false), &requests), [97, 98, 99, 134, 167]);
    }

    #[test]
    fn an_excess_is_told_in_requests() {
        let mut meter = Model::Meter(Meter::new(RATE, 5));
        meter.spend(0, 8);
        assert_eq!(meter.excess(0, 1), 4.0);
        assert_eq!(meter.excess(50, 1), 2.5);
        assert_eq!(meter.excess(133, 1), 0.01);
        assert!(meter.fits(134, 1));
    }
}
