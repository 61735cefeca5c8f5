//! Token bucket and leaky bucket: one arithmetic, the generic words rate algorithm (ITU-T I.371) in
//! the form of a debt that drains.
//!
//! A token weighs `unit`, the debt drains by `drain` a tick; `count / period = drain / unit` reduced
//! by their greatest common divisor, so nothing is ever rounded: 3 per second is 3 per second for
//! ever. The words are `[tick of the last write, debt then]`. A token bucket admits while the debt
//! fits below `cap`; a leaky bucket is the same, and lets a request leave only when the debt has
//! drained to `free`.
//!
//! A bucket is stored as a debt and not as a time. GCRA is usually written with one instant, the
//! theoretical arrival time. With the tick of the last write and the debt at that tick, a clock that steps
//! back drains nothing and takes nothing away; one instant cannot tell that case from an ordinary one.
//!
//! What a client gets back is what has not drained. A refund is limited to the part of this very charge
//! that has not drained since, and a bucket is never better than fresh. One bound is looser than it could
//! be: where several charges overlap in time and are given back out of order, they can return together as
//! much as drained while they were under way, because two words do not tell whose part has drained after an
//! earlier one was taken out. A third word would close this gap. Windows and logs do not have it.
//!
//! On the wire, the effective window of a bucket (`t`) is the time until one more token is there, rounded
//! up. Until then no more than `r` requests can be made.

use core::time::Duration;

use crate::exact::{EXACT, Earliest, TICKS, bounded, gcd, micros_until, rescaled};
use crate::part::Part;
use crate::state::{Parameters, Step, Words};

/// A bucket as a debt that drains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenBucket {
    /// What one token weighs.
    unit: u64,
    /// What drains in one tick.
    drain: u64,
    /// Microseconds in a tick.
    tick: u64,
    /// The most debt that admits: the burst, or the place on the way out and the queue before it.
    cap: u64,
    /// The most debt that leaves at once; less than `cap` in a leaky bucket.
    free: u64,
    /// Whether a microsecond drains one, as at most rates that people choose: no division is needed.
    unit_drain: bool,
}

impl TokenBucket {
    /// `None` when no tick keeps the products exact.
    pub(crate) const fn new(count: u64, period: u64, cap: u64, free: u64) -> Option<Self> {
        let mut i = 0;
        while i < TICKS.len() {
            let tick = TICKS[i];
            // A coarser tick must divide the period, or the rate would be rounded. Since each tick is a multiple of the
            // one before, none of the later ones can divide it either.
            if period % tick != 0 {
                break;
            }
            let ticks = period / tick;
            // In lowest terms, so that the products below are as small as they can be.
            let divisor = gcd(count as u128, ticks as u128) as u64;
            let (unit, drain) = (ticks / divisor, count / divisor);
            if let Some(heavy) = cap.checked_mul(unit) {
                // The debt, one more cost and the rounding of a division must fit together.
                if heavy < EXACT / 2 && drain < EXACT / 2 && heavy * 2 + drain < EXACT {
                    let unit_drain = tick == 1 && drain == 1;
                    return Some(Self {
                        unit,
                        drain,
                        tick,
                        cap: heavy,
                        free: free * unit,
                        unit_drain,
                    });
                }
            }
            i += 1;
        }
        None
    }

    /// One each `gap` microseconds, whatever it costs.
    pub(crate) const fn gap(gap: u64) -> Self {
        Self { unit: gap, drain: 1, tick: 1, cap: gap, free: gap, unit_drain: true }
    }

    /// How many tokens leave it at once.
    pub(crate) const fn leave_at_once(&self) -> u64 {
        self.free / self.unit
    }

    /// The numbers that give the words their meaning.
    pub(crate) const fn scale(&self) -> [u64; 3] {
        [self.unit, self.drain, self.tick]
    }

    /// The [scale](Self::scale), and how much the bucket holds.
    pub(crate) const fn parameters(&self) -> Parameters {
        [self.unit, self.drain, self.tick, self.cap]
    }

    /// The bucket of those numbers, whatever leaves it at once.
    pub(crate) const fn with_parameters([unit, drain, tick, cap]: Parameters) -> Self {
        Self { unit, drain, tick, cap, free: cap, unit_drain: false }
    }

    /// What is owed by words of other numbers, token for token, the rest of one rounded up.
    pub(crate) fn taken_over(&self, words: Words, parameters: Parameters, now: u64) -> Words {
        let before = Self::with_parameters(parameters);
        // Counted in tokens and rounded up: rounded down, a client could lose a part of its debt with each change.
        let debt = rescaled(before.debt(words, now), before.unit, self.unit);
        [self.ticks(now), debt.map_or(self.cap, |debt| debt.min(self.cap))]
    }

    pub(crate) fn spent(&self, words: Words, now: u64) -> u64 {
        self.debt(words, now).div_ceil(self.unit)
    }

    pub(crate) fn spent_up_to_all(&self, now: u64, tokens: u64) -> Words {
        [self.ticks(now), tokens.saturating_mul(self.unit).min(self.cap)]
    }

    /// Charges up to the brim, parts of a token too: a bucket that is full by a part stays so.
    pub(crate) fn charge_up_to_all(&self, words: &mut Words, now: u64, cost: u64) -> bool {
        let debt = self.debt(*words, now);
        let after = debt.saturating_add(cost.saturating_mul(self.unit));
        *words = [self.ticks(now), after.min(self.cap).max(debt)];
        after <= self.cap
    }

    /// Gives back what of a charge made at `then` has not drained, had it begun to drain at once.
    pub(crate) fn give_charged(
        &self,
        words: &mut Words,
        then: u64,
        now: u64,
        cost: u64,
        back: u64,
    ) {
        let passed = self.ticks(now).saturating_sub(self.ticks(then));
        let left = cost.saturating_mul(self.unit).saturating_sub(passed.saturating_mul(self.drain));
        let debt = self.debt(*words, now);
        *words = [self.ticks(now), debt - left.min(back.saturating_mul(self.unit)).min(debt)];
    }

    /// Whether a microsecond drains one: then when the debt is gone says all that words does.
    #[inline]
    pub(crate) const fn drains_one_per_microsecond(&self) -> bool {
        self.unit_drain
    }

    /// How many tokens fit into a bucket of twice the size.
    pub(crate) fn room_twice(&self, words: Words, now: u64) -> u64 {
        (2 * self.cap).saturating_sub(self.debt(words, now)) / self.unit
    }

    /// How many tokens it holds.
    pub(crate) const fn size(&self) -> u64 {
        self.cap / self.unit
    }

    /// How much of it is in use, as a ratio of at most 1, where all has drained after `reset`.
    pub(crate) fn used_until(&self, reset: Duration) -> (u128, u128) {
        let whole = u128::from(self.tick) * u128::from(self.cap);
        (reset.as_micros().saturating_mul(self.drain.into()).min(whole), whole)
    }

    /// When the request may come in.
    #[inline]
    pub(crate) fn earliest(&self, words: Words, now: u64, cost: u64, from: u64) -> Earliest {
        match self.after(words, now, cost) {
            Some(after) => Earliest::At(from.max(self.drained_to(self.cap, after, now))),
            None => Earliest::Never,
        }
    }

    /// When a request that comes in now may leave.
    #[inline]
    pub(crate) fn leave(&self, words: Words, now: u64, cost: u64) -> u64 {
        self.after(words, now, cost).map_or(0, |after| self.drained_to(self.free, after, now))
    }

    /// The shortest time in which a request ever leaves: one that finds nobody before it, at the best moment
    /// of a tick.
    pub(crate) fn shortest_leave(&self, cost: u64) -> u64 {
        let over = cost.saturating_mul(self.unit).saturating_sub(self.free);
        match over.div_ceil(self.drain) {
            0 => 0,
            ticks => bounded(ticks.saturating_mul(self.tick)) - (self.tick - 1),
        }
    }

    #[inline]
    pub(crate) fn spend(&self, words: &mut Words, now: u64, cost: u64, wait: u64) {
        let mut debt = self.debt(*words, now);
        if wait > self.leave(*words, now, cost) {
            // Another limit holds the request back: the debt begins when it leaves.
            // The bucket idles until the place, so the debt that would drain until then is added beforehand. At the
            // moment of the place it has drained, and what is left is the cost, as if it had been spent then.
            debt = debt.max(self.idle(now, wait));
        }
        *words = [self.ticks(now), self.bounded(debt, cost)];
    }

    /// Whether a place `wait` ahead can be booked: its debt has to stay exact, and where `another`
    /// limit holds the request back, the bucket must not [idle for it](Self::idles_for) too long.
    #[inline]
    pub(crate) fn books(
        &self,
        words: Words,
        now: u64,
        cost: u64,
        wait: u64,
        another: bool,
    ) -> bool {
        let begins = self.debt(words, now).max(self.idle(now, wait));
        let after = begins.saturating_add(cost.saturating_mul(self.unit));
        (!another || self.idles_for(words, now, wait)) && after < EXACT - self.cap
    }

    /// Whether the bucket may idle for a request that another limit holds back for `wait`: until its place nothing
    /// drains but debt that is there already, or the place is at most half of the bucket ahead.
    ///
    /// The second bound counts from now and not from the end of the debt, because the debt may be idling that earlier
    /// requests have added. So all waiting requests together keep at most half of the bucket from everybody else.
    #[inline]
    pub(crate) fn idles_for(&self, words: Words, now: u64, wait: u64) -> bool {
        self.idle(now, wait) <= self.debt(words, now).max(self.cap / 2)
    }

    /// Follows a clock that stepped back: what drains from here on does so at once, not only when the
    /// clock shows again what it showed before.
    #[inline]
    pub(crate) fn follow(&self, words: &mut Words, now: u64) {
        if self.since(*words) > now {
            words[0] = self.ticks(now);
        }
    }

    /// Charges what has been spent already, beyond the limit if need be.
    pub(crate) fn force(&self, words: &mut Words, now: u64, cost: u64) {
        let debt = self.debt(*words, now);
        *words = [self.ticks(now), self.bounded(debt, cost)];
    }

    /// Gives back what of this request has not drained. Where others wait behind it, their places
    /// were booked on its account, so only the last in line can give its place back.
    pub(crate) fn give(&self, words: &mut Words, receipt: Words, now: u64, back: u64) {
        let debt = self.debt(*words, now);
        if debt > self.free && *words != receipt {
            return;
        }
        // Idling that a wait has added stays. The words do not tell how much of it was debt before the charge, and giving
        // back more than the idling would mint credit.
        // What this charge left behind drains as if nobody had come after it. What has drained is used up.
        // The receipt has the debt just after the charge. Debts drain in the order in which they were made, so what
        // would still be left of it, up to the cost, is left of this charge.
        let own = self.debt(receipt, now).min(back.saturating_mul(self.unit));
        // Taken off the debt as it was written: it drains by as much either way, so the tick of the last write can
        // stay.
        words[1] -= own.min(debt);
    }

    #[inline]
    pub(crate) fn remaining(&self, words: Words, now: u64) -> u64 {
        self.cap.saturating_sub(self.debt(words, now)) / self.unit
    }

    #[inline]
    pub(crate) fn fresh_in(&self, words: Words, now: u64) -> u64 {
        self.drained_to(0, self.debt(words, now), now)
    }

    /// A clock that stepped back drains nothing and takes nothing away.
    #[inline]
    fn debt(&self, [last, debt]: Words, now: u64) -> u64 {
        let passed = self.ticks(now).saturating_sub(last);
        debt.saturating_sub(passed.saturating_mul(self.drain))
    }

    /// The debt that would drain in `wait`: a bucket in which a place so far ahead is the next is idle
    /// till then.
    fn idle(&self, now: u64, wait: u64) -> u64 {
        (self.ticks(now + wait) - self.ticks(now)).saturating_mul(self.drain)
    }

    /// Most ticks are a microsecond: a comparison is cheaper than a division by one.
    #[inline]
    fn ticks(&self, micros: u64) -> u64 {
        if self.tick == 1 { micros } else { micros / self.tick }
    }

    #[inline]
    fn after(&self, words: Words, now: u64, cost: u64) -> Option<u64> {
        Some(self.debt(words, now) + self.weight(cost)?)
    }

    /// What a cost weighs that is not more than the bucket ever admits.
    #[inline]
    fn weight(&self, cost: u64) -> Option<u64> {
        cost.checked_mul(self.unit).filter(|cost| *cost <= self.cap)
    }

    #[inline]
    fn drained_to(&self, level: u64, debt: u64, now: u64) -> u64 {
        match (debt.saturating_sub(level), self.drain) {
            (0, _) => 0,
            (over, 1) => micros_until(now, over, self.tick),
            (over, drain) => micros_until(now, over.div_ceil(drain), self.tick),
        }
    }

    /// The debt with `cost` added, kept where one more cost still fits below 2^53.
    #[inline]
    fn bounded(&self, debt: u64, cost: u64) -> u64 {
        debt.saturating_add(cost.saturating_mul(self.unit)).min(EXACT - 1 - self.cap)
    }
}

impl TokenBucket {
    /// A part of the bucket, which holds one token at least. A token weighs as much more as the part is smaller. The debt
    /// drains as before, so words mean the same in every part. `None` where that does not stay exact.
    #[inline(always)]
    pub fn in_part(&self, part: Part) -> Option<Self> {
        let unit = part.weigh(self.unit)?;
        let (cap, free) = (self.cap.max(unit), self.free.max(unit));
        (cap < EXACT / 2 - self.drain).then_some(Self { unit, cap, free, ..*self })
    }

    /// The earliest moment at which the words can have been written.
    #[inline]
    pub fn since(&self, [last, _]: Words) -> u64 {
        if self.tick == 1 { last } else { last.saturating_mul(self.tick) }
    }

    /// Spends `cost` if that may come in at once, with no queue of the bucket's own. The words must not be of
    /// a later time. Returns also in how many microseconds the new words equal fresh ones.
    #[inline]
    pub fn step(&self, words: Words, now: u64, cost: u64) -> (Step, Option<u64>) {
        // A cost of one, and one unit a microsecond: nearly all requests. Here neither a product nor a division is
        // left.
        if cost != 1 || !self.unit_drain {
            return self.step_at_length(words, now, cost);
        }
        // The same in fewer words: nothing here reaches 2^54.
        let [last, debt] = words;
        let after = debt.saturating_sub(now - last) + self.unit;
        if after <= self.cap {
            return (Step::admit([now, after], now), Some(after));
        }
        (Step::refuse(words, now, Earliest::At(after - self.cap)), None)
    }

    #[inline(never)]
    fn step_at_length(&self, words: Words, now: u64, cost: u64) -> (Step, Option<u64>) {
        let Some(after) = self.after(words, now, cost) else {
            return (Step::refuse(words, now, Earliest::Never), None);
        };
        if after > self.cap {
            let delay = self.drained_to(self.cap, after, now);
            return (Step::refuse(words, now, Earliest::At(delay)), None);
        }
        let fresh_in = self.drained_to(0, after, now);
        (Step::admit([self.ticks(now), after], now), Some(fresh_in))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    fn bucket(count: u64, period: u64, burst: u64) -> TokenBucket {
        TokenBucket::new(count, period, burst, burst).expect("stays exact")
    }

    #[test]
    fn the_rate_is_kept_in_lowest_terms() {
        assert_eq!(bucket(3, SECOND, 3).scale(), [SECOND, 3, 1]);
        assert_eq!(bucket(700_000_000, SECOND, 1).scale(), [1, 700, 1]);
        assert_eq!(bucket(60, 60 * SECOND, 60).scale(), [SECOND, 1, 1]);
    }

    #[test]
    fn the_finest_tick_that_stays_exact_is_taken() {
        let hour = 3_600 * SECOND;
        assert_eq!(bucket(1_000_003, hour, 1_000_003).scale(), [hour, 1_000_003, 1]);
        assert_eq!(bucket(1_000_003, 24 * hour, 1_000_003).scale()[2], 1_000);
        assert_eq!(bucket(999_999_937, 24 * hour, 999_999_937).scale()[2], SECOND);
        // A period that is not whole in the coarser tick has no other.
        assert_eq!(TokenBucket::new(1_000_003, 24 * hour + 1, 1_000_003, 1_000_003), None);
        assert_eq!(TokenBucket::new(1, hour, u64::MAX, 1), None);
    }

    #[test]
    fn a_coarse_tick_refuses_to_its_last_microsecond() {
        let day = 86_400 * SECOND;
        let bucket = bucket(999_999_937, day, 999_999_937);
        let mut words = [0; 2];
        let now = 5 * day + 300_000;
        bucket.spend(&mut words, now, 999_999_937, 0);
        assert_eq!(bucket.earliest(words, now, 1, 0), Earliest::At(700_000));
        assert_eq!(bucket.earliest(words, now + 699_999, 1, 0), Earliest::At(1));
        assert_eq!(bucket.earliest(words, now + 700_000, 1, 0), Earliest::At(0));
    }

    #[test]
    fn what_was_charged_beyond_the_burst_drains_first() {
        let bucket = bucket(1, SECOND, 2);
        let mut words = [0; 2];
        bucket.force(&mut words, 0, 10);
        assert_eq!(bucket.remaining(words, 0), 0);
        assert_eq!(bucket.earliest(words, 0, 1, 0), Earliest::At(9 * SECOND));
        assert_eq!(bucket.fresh_in(words, 0), 10 * SECOND);
    }

    #[test]
    fn a_place_whose_debt_would_not_stay_exact_is_not_booked() {
        let bucket = bucket(1 << 40, 1, 1 << 40);
        let full = [0, (1 << 52) - 1];
        assert!(bucket.books(full, 0, 1, 1 << 12, false));
        assert!(!bucket.books([0, EXACT - 2 - bucket.cap], 0, 2, 1 << 14, false));
    }

    #[test]
    fn one_who_waits_keeps_at_most_half_of_a_shared_bucket_from_the_others() {
        let bucket = bucket(10, SECOND, 10);
        assert!(bucket.books([0; 2], 0, 1, SECOND / 2, true));
        assert!(!bucket.books([0; 2], 0, 1, SECOND / 2 + 1, true));
        assert!(bucket.books([0; 2], 0, 1, SECOND / 2 + 1, false));
    }
}
