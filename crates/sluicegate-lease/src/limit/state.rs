use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::{Receipt, remote};
use sluicegate_core::clock::Clock;
use sluicegate_core::limit::{LimitStatus, Verdict};

use super::learned::DemandEstimate;
use super::meter::{Bucket, BucketAnswer, Gauge, Mark, Terms};
use super::wants::Wants;
use crate::amount::Amount;

/// What a limit knows of its lease, of what is spent, and of what is asked. Decides without a clock.
#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) terms: Terms,
    pub(super) meter: Meter,
    pub(super) learned: DemandEstimate,
    pub(super) shown: DisplayedLimit,
    pub(super) wants: Wants,
    /// Given back: nothing may be used any more.
    pub(super) is_closed: bool,
    /// Whether something was asked while there was nothing to use, or too little.
    pub(super) is_needed: bool,
    pub(super) retries: RetrySchedule,
    /// The time that was passed in last.
    pub(super) now: u64,
}

/// When to ask the server again, because there is less than is wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct RetrySchedule {
    /// What the server was told that is wanted; `None` if nobody says so.
    pub(super) told: Option<Amount>,
    /// When the next plea is due, and in what time after that the one behind it.
    next: u64,
    gap: u64,
    /// One is due.
    pub(super) is_due: bool,
}

/// After a rise, what others give up for it may come soon, or late: retries follow each other ever more slowly, in
/// microseconds. Then the server says when to ask.
const FIRST_GAP: u64 = 10_000;
const LAST_GAP: u64 = 1_000_000;

impl Default for RetrySchedule {
    fn default() -> Self {
        // Not without a gap, which would never grow: a want that is fixed never rises.
        Self { told: None, next: 0, gap: FIRST_GAP, is_due: false }
    }
}

/// What is spent.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::large_enum_variant, reason = "there is one for each lease, which nobody moves")]
pub(super) enum Meter {
    Rate(Bucket),
    Gauge(Gauge),
}

/// The answer to a request, and what it did to the limit.
pub(super) struct LimitAnswer {
    pub(super) verdict: Verdict,
    pub(super) status: LimitStatus,
}

impl State {
    /// Goes on to the present. A clock that is set back takes the lease along, so that it gets no longer.
    pub(super) fn turn(&mut self, clock: &Clock) {
        let now = clock.now();
        if now < self.now && clock.as_manual().is_some() {
            let by = self.now - now;
            // The lease is as long as before, by the time that has passed. Otherwise a clock that is set back would
            // extend it.
            self.terms.until = self.terms.until.saturating_sub(by);
            if let Meter::Rate(bucket) = &mut self.meter {
                bucket.step_back(by);
            }
            self.now = now;
        }
        // The machine's clock may show some microseconds less on another thread.
        self.now = self.now.max(now);
        if let Meter::Rate(bucket) = &mut self.meter {
            bucket.flow(self.now, &self.terms);
        }
    }

    /// What may be used.
    pub(super) fn capacity(&self) -> Amount {
        self.terms.at(self.now)
    }

    /// Changes what may be used.
    pub(super) fn follow(&mut self, terms: Terms) {
        self.terms = terms;
        if let Meter::Rate(bucket) = &mut self.meter {
            bucket.follow(&self.terms);
        }
        if !self.capacity().is_zero() {
            self.is_needed = false;
        }
    }

    /// Spends `cost`, or books a place up to `patience` ahead.
    pub(super) fn take(&mut self, cost: u64, patience: Duration) -> LimitAnswer {
        let spent = match &mut self.meter {
            Meter::Rate(bucket) => {
                // Counted before it is decided: what is refused is wanted too.
                let ends_silence = self.learned.sum(self.now, cost);
                let spent = bucket.spend(&self.terms, cost, micros(patience));
                if ends_silence || matches!(spent, BucketAnswer::Refuse(_)) {
                    self.plead();
                }
                spent
            }
            Meter::Gauge(gauge) => {
                let before = gauge.in_use();
                let is_taken = gauge.take(self.now, &self.terms, cost);
                let refused = if is_taken { 0 } else { cost };
                // What is refused has to fit beside what is in use, so both together are what is needed.
                let needed = gauge.needs(self.learned.slot_of(self.now), refused);
                self.learned.peak(self.now, needed, before);
                if self.capacity().is_zero() {
                    self.plead();
                }
                if is_taken { BucketAnswer::Admit(0) } else { BucketAnswer::Refuse(None) }
            }
        };
        let mut decided = self.decided(spent);
        if matches!(spent, BucketAnswer::Admit(_)) {
            decided.status.charged = cost;
            decided.status.receipt = self.receipt();
        }
        decided
    }

    /// Asks the server for more, if much more is wanted than it was told, or for what it lacks soon after that.
    fn plead(&mut self) {
        let Some(told) = self.retries.told else { return };
        let learned = self.learned();
        let wants = self.wants.of(learned);
        if wants <= self.capacity() {
            return;
        }
        // By more than a half: the server need not hear of each request more.
        let is_rise = wants.millionths() / 3 > told.millionths() / 2;
        if is_rise {
            self.retries.gap = FIRST_GAP;
        } else if self.now < self.retries.next || self.retries.gap > LAST_GAP {
            return;
        }
        self.retries.next = self.now.saturating_add(self.retries.gap);
        // From 10 ms by steps of a quarter to a second: some twenty questions in five seconds, after which the interval
        // of the server is enough.
        self.retries.gap += self.retries.gap / 4;
        self.retries.is_due = true;
    }

    /// In how many microseconds so much less may be wanted than the server was told that it should know.
    #[cfg(feature = "client")]
    pub(super) fn falls_in(&mut self) -> Option<u64> {
        let told = self.retries.told.filter(|told| *told >= Amount::units(1))?;
        let bound = Amount::from_millionths(told.millionths() / 4);
        if self.wants.of(Amount::ZERO) > bound {
            return None;
        }
        self.learned.falls_below(self.now, bound)
    }

    /// What [`take`](Self::take) would answer.
    pub(super) fn peek(&mut self, cost: u64, patience: Duration) -> LimitAnswer {
        let spent = match &self.meter {
            Meter::Rate(bucket) => bucket.ask(&self.terms, cost, micros(patience)),
            Meter::Gauge(gauge) if gauge.is_free(self.now, &self.terms, cost) => {
                BucketAnswer::Admit(0)
            }
            Meter::Gauge(_) => BucketAnswer::Refuse(None),
        };
        self.decided(spent)
    }

    fn decided(&mut self, spent: BucketAnswer) -> LimitAnswer {
        let capacity = self.capacity();
        let burst = match &self.meter {
            Meter::Rate(bucket) => bucket.burst(capacity),
            Meter::Gauge(_) => capacity.as_units(),
        };
        let mut status = LimitStatus::fresh(self.shown.of(capacity, burst));
        match &self.meter {
            Meter::Rate(bucket) => {
                let left = bucket.left(&self.terms);
                status.remaining = left;
                status.reset = bucket.filled_in(&self.terms, u64::MAX).map(Duration::from_micros);
                let next = if left < burst { left + 1 } else { left };
                status.window = bucket.filled_in(&self.terms, next).map(Duration::from_micros);
            }
            Meter::Gauge(gauge) => {
                status.remaining = gauge.left(self.now, &self.terms);
                let when_free = if gauge.in_use() == 0 { Some(Duration::ZERO) } else { None };
                (status.reset, status.window) = (when_free, when_free);
            }
        }
        let verdict = match spent {
            BucketAnswer::Admit(wait) => Verdict::Admit { wait: Duration::from_micros(wait) },
            BucketAnswer::Refuse(retry) => {
                status.refused = true;
                status.retry = retry.map(Duration::from_micros);
                Verdict::Refuse { retry_after: status.retry }
            }
        };
        LimitAnswer { verdict, status }
    }

    /// Another limit holds back what was just charged.
    pub(super) fn hold_back(&mut self, cost: u64, wait: Duration) {
        if let Meter::Rate(bucket) = &mut self.meter {
            bucket.hold_back(&self.terms, cost, micros(wait));
        }
    }

    /// Changes a charge of `cost` into one of `spent`.
    pub(super) fn settle(&mut self, receipt: &Receipt, cost: u64, spent: u64) {
        let (back, more) = (cost.saturating_sub(spent), spent.saturating_sub(cost));
        match &mut self.meter {
            Meter::Rate(bucket) if back > 0 => bucket.give(&mark_of(receipt), back),
            Meter::Rate(bucket) => bucket.charge(more),
            Meter::Gauge(gauge) => {
                // Until now, all of it was in use.
                self.learned.peak(self.now, 0, gauge.in_use());
                gauge.give(back);
                gauge.add(more);
            }
        }
    }

    /// What is learned of the demand.
    pub(super) fn learned(&mut self) -> Amount {
        match &self.meter {
            Meter::Rate(_) => self.learned.wants(self.now, 0),
            Meter::Gauge(gauge) => {
                // A part of a place is of no use.
                let wants = self.learned.wants(self.now, gauge.in_use()).millionths();
                Amount::units(wants.div_ceil(Amount::units(1).millionths()))
            }
        }
    }

    /// What is in use, or will be, though it may be more than what may be used by now.
    pub(super) fn outstanding(&self) -> Amount {
        match &self.meter {
            Meter::Rate(bucket) => bucket.booked(),
            Meter::Gauge(gauge) => Amount::units(gauge.in_use()),
        }
    }

    fn receipt(&self) -> Receipt {
        let Meter::Rate(bucket) = &self.meter else { return Receipt::default() };
        let Mark { flowed, missing, charge } = bucket.mark();
        let receipt = remote::receipt(halves(flowed), halves(missing), false);
        remote::receipt_carried(receipt, remote::Carried { at: charge, since: 0, by_all: false })
    }
}

fn mark_of(receipt: &Receipt) -> Mark {
    let (flowed, missing, _) = remote::receipt_words(receipt);
    Mark { flowed: whole(flowed), missing: whole(missing), charge: remote::carried(receipt).at }
}

fn halves(number: u128) -> [u64; 2] {
    [(number >> 64) as u64, number as u64]
}

fn whole([high, low]: [u64; 2]) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The limit as decisions and header fields show it: with the numbers that are in force.
#[derive(Debug, Clone)]
pub(super) struct DisplayedLimit {
    /// The limit that requests are charged to.
    charged: Limit,
    name: Box<str>,
    /// The limit for a capacity, and for the most at once.
    latest: (Amount, u64, Limit),
}

/// A capacity such as 36.5 a second is shown exactly, as 73 in 2 s, if that takes no more than this many periods. Others
/// are rounded down.
const MOST_PERIODS: u64 = 60;

impl DisplayedLimit {
    pub(super) fn new(charged: Limit, name: &str) -> Self {
        Self { charged, name: name.into(), latest: (Amount::ZERO, 0, charged) }
    }

    /// What to show while so much may be used, and so much at once. Without capacity, the numbers from before.
    pub(super) fn of(&mut self, capacity: Amount, burst: u64) -> Limit {
        let (before, burst_before, limit) = self.latest;
        if (before, burst_before) == (capacity, burst) || capacity.is_zero() {
            return limit;
        }
        let limit = self.make(capacity, burst).unwrap_or(self.charged);
        self.latest = (capacity, burst, limit);
        limit
    }

    fn make(&self, capacity: Amount, burst: u64) -> Option<Limit> {
        let limit = match self.charged.period() {
            None => Limit::try_concurrent(capacity.as_units().max(1)).ok()?,
            Some(period) => {
                let (count, periods) = ratio(capacity);
                let period = Duration::from_millis(
                    u64::try_from(period.as_millis()).ok()?.checked_mul(periods)?,
                );
                let bucket = Limit::try_per(count, period).ok()?;
                bucket.try_burst(burst).unwrap_or(bucket)
            }
        };
        limit.try_named(&self.name).ok()
    }
}

/// The capacity as a count in a number of periods.
fn ratio(capacity: Amount) -> (u64, u64) {
    let (millionths, unit) = (capacity.millionths(), Amount::units(1).millionths());
    let divisor = gcd(millionths, unit);
    match (millionths / divisor, unit / divisor) {
        (count, periods) if periods <= MOST_PERIODS => (count, periods),
        _ if millionths >= unit => (millionths / unit, 1),
        // One in as many periods as that takes.
        _ => (1, unit.div_ceil(millionths)),
    }
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capacity_is_shown_exactly_or_rounded_down() {
        let charged = Limit::per_second(1).named("db");
        let mut shown = DisplayedLimit::new(charged, "db");
        let mut of =
            |millionths, burst| shown.of(Amount::from_millionths(millionths), burst).to_string();
        assert_eq!(of(10_000_000, 10), "10/second named \"db\"");
        assert_eq!(of(36_500_000, 36), "73 per 2 seconds burst 36 named \"db\"");
        assert_eq!(of(33_333_333, 33), "33/second named \"db\"");
        assert_eq!(of(2_000_000_000_000, 2_000_000), "2000000/second named \"db\"");
        assert_eq!(of(300_000, 1), "3 per 10 seconds burst 1 named \"db\"");
        assert_eq!(of(12_345, 1), "1 per 82 seconds named \"db\"");
        // Without capacity there is nothing to show: the last numbers stay.
        assert_eq!(of(0, 1), "1 per 82 seconds named \"db\"");
    }

    #[test]
    fn places_are_shown_in_whole_numbers() {
        let mut shown = DisplayedLimit::new(Limit::concurrent(9).named("workers"), "workers");
        let mut of = |millionths| shown.of(Amount::from_millionths(millionths), 0).to_string();
        assert_eq!(of(7_900_000), "concurrent 7 named \"workers\"");
        assert_eq!(of(500_000), "concurrent 1 named \"workers\"");
    }
}
