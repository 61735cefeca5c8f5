use std::time::Duration;

use crate::adaptive::Algorithm;
use crate::error::ConfigError;

/// Longest time of unused capacity that is made up for while requests wait, in microseconds. Timers are late by some
/// milliseconds. Without this, each delay would be lost and the rate would not be reached.
const CATCH_UP: u64 = 10_000;

/// Costs that were not predicted stop a rate for at most this time, in microseconds. Otherwise a handler that reports
/// the largest possible number would stop it for ever.
const MOST_OWED: u64 = 60_000_000;

/// What drains the queue.
#[derive(Debug)]
pub(super) enum Capacity {
    Rate(Rate),
    InFlight(Concurrency),
}

impl Capacity {
    /// The cost that is drained in this many microseconds. For work in flight it is the time for which all places
    /// together can be held, so the cost of a request is the time for which it holds its place.
    pub(super) fn drained_in(&self, time: u64) -> u64 {
        match self {
            Self::Rate(rate) => rate.drained_in(time),
            Self::InFlight(limit) => time.saturating_mul(limit.limit() as u64),
        }
    }
}

/// How many requests may run at once.
#[derive(Debug)]
pub(super) enum Concurrency {
    Fixed(usize),
    Adaptive(Box<dyn Algorithm>),
}

impl Concurrency {
    pub(super) fn limit(&self) -> usize {
        match self {
            Self::Fixed(limit) => *limit,
            Self::Adaptive(algorithm) => algorithm.limit().max(1),
        }
    }
}

/// If the clock steps back further than this, a rate continues from there, in microseconds. Otherwise it would stand
/// still until the clock has caught up. Small steps are ignored, so that time is not counted twice.
const STEP_BACK: u64 = 1_000_000;

/// The longest period of a rate: a year, in microseconds. Any cost times a period then fits into 128 bits.
const LONGEST: u64 = 366 * 86_400 * 1_000_000;

/// A leaky bucket: `amount` drains in each `period`. Integers only, so the rate is exact. Sums stop at the largest
/// number. Only costs and rates near 2⁶⁴ come near it, and time that drains so much drains everything.
#[derive(Debug)]
pub(super) struct Rate {
    amount: u64,
    /// Microseconds.
    period: u64,
    /// Cost that has been started and not drained yet, times `period`. A negative value is capacity that was not used
    /// while requests waited.
    debt: i128,
    /// The time at which `debt` was computed.
    at: u64,
    /// How much time was lost so far, in microseconds: nothing was started that it could have drained.
    lost: u64,
    /// Up to here, lost time has paid for costs that were not predicted.
    paid: u64,
}

/// Less lost time than this is not noted, in microseconds: there is a division in it, and most requests come sooner.
const NOTED: u64 = 1_000;

impl Rate {
    pub(super) fn new(amount: u64, period: Duration) -> Result<Self, ConfigError> {
        if amount == 0 {
            return Err(ConfigError::NoCapacity);
        }
        let micros = u64::try_from(period.as_micros()).unwrap_or(u64::MAX);
        if !(1..=LONGEST).contains(&micros) {
            return Err(ConfigError::Period(period));
        }
        Ok(Self { amount, period: micros, debt: 0, at: 0, lost: 0, paid: 0 })
    }

    /// What drains in each period.
    pub(super) const fn parts(&self) -> (u64, Duration) {
        (self.amount, Duration::from_micros(self.period))
    }

    /// Continues at another rate. Cost that has been started and not drained stays.
    pub(super) fn change(&mut self, new: &Self) {
        let (old, new_period) = (i128::from(self.period), i128::from(new.period));
        // The same as `debt * new / old`, without a product that may not fit.
        self.debt = self.debt / old * new_period + self.debt % old * new_period / old;
        (self.amount, self.period) = (new.amount, new.period);
    }

    /// Lets time pass. While nobody waits, unused time is lost.
    pub(super) fn advance(&mut self, now: u64, has_waiting: bool) {
        if self.at.saturating_sub(now) > STEP_BACK {
            self.at = now;
        }
        let elapsed = now.saturating_sub(self.at);
        // Never back, as long as the step is small: time that has drained once must not drain again.
        self.at = self.at.max(now);
        // Below zero is what a late timer has not started yet. While nobody waits nothing is late, so nothing is saved up.
        let least = if has_waiting { -(self.drained(CATCH_UP)) } else { 0 };
        let drained = self.debt.saturating_sub(self.drained(elapsed));
        self.debt = drained.max(least.min(self.debt));
        // What the bound has cut off is time in which nothing could drain.
        if self.debt.saturating_sub(drained) >= self.drained(NOTED) {
            let lost = self.debt.saturating_sub(drained) / i128::from(self.amount);
            self.lost = self.lost.saturating_add(u64::try_from(lost).unwrap_or(u64::MAX));
        }
    }

    /// How much time was lost so far, for [`settle`](Self::settle).
    pub(super) const fn lost(&self) -> u64 {
        self.lost
    }

    fn drained_in(&self, time: u64) -> u64 {
        let drained = u128::from(self.amount) * u128::from(time) / u128::from(self.period);
        u64::try_from(drained).unwrap_or(u64::MAX)
    }

    fn drained(&self, time: u64) -> i128 {
        i128::from(time).saturating_mul(i128::from(self.amount))
    }

    fn weighed(&self, cost: u64) -> i128 {
        i128::from(cost) * i128::from(self.period)
    }

    pub(super) const fn is_free(&self) -> bool {
        self.debt <= 0
    }

    /// When the next request can start, if none is started before.
    pub(super) fn free_at(&self) -> u64 {
        self.at.saturating_add(self.time(self.debt))
    }

    fn time(&self, debt: i128) -> u64 {
        let time = u128::try_from(debt).unwrap_or_default().div_ceil(u128::from(self.amount));
        u64::try_from(time).unwrap_or(u64::MAX)
    }

    pub(super) fn start(&mut self, cost: u64) {
        self.debt = self.debt.saturating_add(self.weighed(cost));
    }

    /// A request that was started with the cost `predicted` has cost `actual`. When it was started, this much time was
    /// `lost`. The excess over the prediction is owed up to [`MOST_OWED`], except for what the time that was lost while
    /// the request ran could have drained: a handler that keeps the only thread busy keeps others from being started.
    pub(super) fn settle(&mut self, predicted: u64, actual: u64, lost: u64, has_waiting: bool) {
        // What is owed already is not forgiven by the bound on what is added.
        let most = self.debt.max(self.drained(MOST_OWED));
        let mut change = self.weighed(actual) - self.weighed(predicted);
        // Each microsecond that was lost pays once, and only for requests that ran while it was lost.
        // Time that was lost before the request was started cannot have been lost on its account.
        let since = self.paid.max(lost);
        if change > 0 && self.lost > since {
            let paid = change.min(self.drained(self.lost - since));
            self.paid = since + self.time(paid);
            change -= paid;
        }
        self.debt = self.debt.saturating_add(change).min(most);
        // A refund must not leave credit behind while nobody waits: the next burst would start at once.
        if !has_waiting {
            self.debt = self.debt.max(0);
        }
    }

    /// How long it takes to drain all started cost and `cost` more.
    pub(super) fn wait(&self, cost: u64) -> u64 {
        self.time(self.debt.max(0).saturating_add(self.weighed(cost)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_a_second_is_three_a_second_for_ever() {
        let mut rate = Rate::new(3, Duration::from_secs(1)).unwrap();
        let mut now = 0;
        for _ in 0..3_000_000 {
            now = rate.free_at().max(now);
            rate.advance(now, true);
            assert!(rate.is_free());
            rate.start(1);
        }
        // The last one leaves after 2,999,999 thirds of a second, rounded up.
        assert_eq!(now, 999_999_666_667);
    }

    #[test]
    fn time_that_nobody_used_is_lost() {
        let mut rate = Rate::new(10, Duration::from_secs(1)).unwrap();
        rate.advance(60_000_000, false);
        rate.start(10);
        assert_eq!(rate.wait(0), 1_000_000);
    }

    #[test]
    fn a_late_timer_is_made_up_for_while_requests_wait() {
        let mut rate = Rate::new(1_000, Duration::from_secs(1)).unwrap();
        rate.start(1);
        rate.advance(4_000, true);
        assert_eq!(
            (0..10).take_while(|_| rate.is_free().then(|| rate.start(1)).is_some()).count(),
            4
        );
    }

    /// A thread is busy for 20 ms with a request that was expected to take 1 ms, and nothing else is started meanwhile.
    #[test]
    fn a_cost_that_was_not_predicted_is_paid_by_the_time_that_it_took_from_others() {
        for has_waiting in [false, true] {
            let mut rate = Rate::new(800_000, Duration::from_secs(1)).unwrap();
            rate.start(1_000);
            let lost = rate.lost();
            rate.advance(20_000, has_waiting);
            rate.settle(1_000, 20_000, lost, has_waiting);
            // What is left to be drained of 20 ms, at 0.8 of a second in each second.
            assert_eq!(rate.wait(0), 5_000);
        }
    }

    #[test]
    fn lost_time_pays_once_and_only_for_requests_that_ran_meanwhile() {
        let rate = || Rate::new(1_000_000, Duration::from_secs(1)).unwrap();
        let mut idle = rate();
        idle.advance(60_000_000, false);
        idle.start(1);
        idle.settle(1, 50_001, idle.lost(), false);
        assert_eq!(idle.wait(0), 50_001, "it began when that time was over");
        let mut two = rate();
        let lost = two.lost();
        (0..2).for_each(|_| two.start(1_000));
        two.advance(20_000, false);
        (0..2).for_each(|_| two.settle(1_000, 20_000, lost, false));
        assert_eq!(two.wait(0), 20_000, "two threads were busy, at the rate of one");
        let mut rate = rate();
        rate.settle(0, 50_000, 0, false);
        rate.start(1_000);
        let lost = rate.lost();
        rate.advance(20_000, true);
        rate.settle(1_000, 20_000, lost, true);
        assert_eq!(rate.wait(0), 50_000, "what was owed took that time");
    }
}
