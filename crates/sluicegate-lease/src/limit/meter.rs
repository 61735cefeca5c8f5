//! A token bucket whose rate follows a lease.
//!
//! The level is kept when the rate changes, and not the debt: a client that gets ten times as much does not find ten
//! times its burst. So in any interval no more is admitted than what the client held during it, and the burst of what
//! it held before. Everything is counted in parts so small that a microsecond adds a whole number of them: a capacity in
//! millionths adds that many. Nothing is rounded.

use crate::amount::Amount;

/// What is left to spend.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bucket {
    /// Parts in a token.
    token: u128,
    /// The most tokens at once, if that is less than what flows in a period.
    most: Option<u64>,
    /// Microseconds in a period.
    period: u64,
    /// What is left, in parts; below zero if places are booked ahead.
    level: i128,
    /// All parts that have flowed in, for receipts.
    flowed: u128,
    /// When the level was last worked out.
    at: u64,
    /// The burst that was in force last, in parts; 0 for a bucket that has never held anything.
    burst: i128,
    /// Charges so far: only the last in line can give back a place that is booked.
    charges: u64,
    /// The highest capacity under which places were booked that are not used yet, and until when.
    booked: (Amount, u64),
    returns: [Return; RETURNS],
    /// Where the next return is written.
    next_return: usize,
}

/// Parts that were given back. Later charges lack as much less, as if that had flowed in; earlier ones do not.
#[derive(Debug, Clone, Copy, Default)]
struct Return {
    /// The number of the charge that was given back.
    charge: u64,
    /// How many charges there were when it was given back.
    at: u64,
    parts: u128,
}

/// Returns that are remembered one by one. An older one counts as if it had flowed in for all: too strict for some, never
/// too generous.
const RETURNS: usize = 8;

/// The answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BucketAnswer {
    /// Goes ahead after so many microseconds.
    Admit(u64),
    /// Would be admitted after so many, if that is known and the lease is renewed.
    Refuse(Option<u64>),
}

/// What a charge left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    /// What had flowed in by then.
    pub(super) flowed: u128,
    /// What had to flow in to fill the bucket after the charge.
    pub(super) missing: u128,
    /// The number of the charge.
    pub(super) charge: u64,
}

impl Bucket {
    /// Made for a period of so many microseconds.
    pub(super) fn new(period: u64, most: Option<u64>) -> Self {
        Self {
            token: u128::from(Amount::units(1).millionths()) * u128::from(period),
            most,
            period,
            level: 0,
            flowed: 0,
            at: 0,
            burst: 0,
            charges: 0,
            booked: (Amount::ZERO, 0),
            returns: [Return::default(); RETURNS],
            next_return: 0,
        }
    }

    /// Lets in what has flowed until `now`, which is never before the last time.
    pub(super) fn flow(&mut self, now: u64, terms: &Terms) {
        for (capacity, time) in terms.between(self.at, now.max(self.at)) {
            if time > 0 {
                self.flow_at(capacity, time);
            }
        }
        self.at = now.max(self.at);
        // The lease may have ended at this very moment.
        self.follow(terms);
    }

    fn flow_at(&mut self, capacity: Amount, time: u64) {
        if capacity.is_zero() {
            // What is left stays, for when the client holds something again.
            return;
        }
        let burst = self.burst_of(capacity);
        if self.burst == 0 {
            // It is new.
            self.level = burst;
        }
        // A bucket that gets smaller lacks less, as if that had flowed in: it is not given back.
        // Receipts say what has to flow in until the charge is made up for. A bucket that got smaller is full sooner.
        let smaller = u128::try_from(self.burst - burst).unwrap_or(0);
        self.flowed = self.flowed.wrapping_add(smaller);
        self.burst = burst;
        let flows = u128::from(capacity.millionths()) * u128::from(time);
        self.flowed = self.flowed.wrapping_add(flows);
        // Cut to the new burst before time is added: of what was left above it, nothing may stay for later.
        let level =
            self.level.min(burst).saturating_add(i128::try_from(flows).unwrap_or(i128::MAX));
        self.level = level.min(burst);
    }

    /// The terms have changed at `now`, up to which everything has flowed in.
    pub(super) fn follow(&mut self, terms: &Terms) {
        self.flow_at(terms.at(self.at), 0);
    }

    /// The clock has stepped back.
    pub(super) fn step_back(&mut self, by: u64) {
        self.at -= by;
        self.booked.1 = self.booked.1.saturating_sub(by);
    }

    /// Spends `cost` now, or books a place up to `patience` microseconds ahead, within the lease.
    pub(super) fn spend(&mut self, terms: &Terms, cost: u64, patience: u64) -> BucketAnswer {
        let capacity = terms.at(self.at);
        let answer = self.ask(terms, cost, patience);
        if let BucketAnswer::Admit(wait) = answer {
            self.level -= self.parts(cost);
            self.charges += 1;
            if wait > 0 {
                let until = self.at.saturating_add(wait);
                // A place may be booked beyond the end of the lease, where other terms are in force.
                let later = if until > terms.until { terms.then } else { capacity };
                let most = self.booked().max(capacity).max(later);
                self.booked = (most, self.booked.1.max(until));
            }
        }
        answer
    }

    /// What [`spend`](Self::spend) would answer.
    pub(super) fn ask(&self, terms: &Terms, cost: u64, patience: u64) -> BucketAnswer {
        let capacity = terms.at(self.at);
        let needed = self.parts(cost);
        if capacity.is_zero() || needed > self.burst_of(capacity) {
            // The grant may grow.
            return BucketAnswer::Refuse(None);
        }
        let missing = u128::try_from(needed.saturating_sub(self.level)).unwrap_or(0);
        match terms.flows_in(self.at, missing) {
            Some(wait) if wait <= patience => BucketAnswer::Admit(wait),
            Some(wait) => BucketAnswer::Refuse(Some(wait)),
            None => BucketAnswer::Refuse(time_for(missing, capacity)),
        }
    }

    /// Another limit holds back what was just charged: until it goes, no more than a burst is saved up.
    pub(super) fn hold_back(&mut self, terms: &Terms, cost: u64, wait: u64) {
        let capacity = terms.at(self.at);
        let flows = u128::from(capacity.millionths()) * u128::from(wait);
        let flows = i128::try_from(flows).unwrap_or(i128::MAX);
        // What flows in until the request goes ahead may fill the bucket, but no further: a request that waits must not save up
        // a second burst.
        let most = self.burst_of(capacity).saturating_sub(self.parts(cost)).saturating_sub(flows);
        self.level = self.level.min(most);
    }

    pub(super) fn mark(&self) -> Mark {
        let missing = u128::try_from(self.burst.saturating_sub(self.level)).unwrap_or(0);
        Mark { flowed: self.flowed, missing, charge: self.charges }
    }

    /// Gives back `back` tokens of a charge, as far as they have not flowed in since.
    pub(super) fn give(&mut self, mark: &Mark, back: u64) {
        if self.level < 0 && mark.charge != self.charges {
            // The places of others behind it are booked.
            return;
        }
        let is_earlier = |given: &&Return| given.charge < mark.charge && given.at >= mark.charge;
        let returned: u128 = self.returns.iter().filter(is_earlier).map(|given| given.parts).sum();
        // What has flowed in since the charge has paid for its oldest part. Only the rest can come back.
        // It wraps after 2^128 parts, as the marks do, so the difference stays right.
        let since = self.flowed.wrapping_sub(mark.flowed).saturating_add(returned);
        let left = i128::try_from(mark.missing.saturating_sub(since)).unwrap_or(i128::MAX);
        let room = self.burst.saturating_sub(self.level).max(0);
        let back = self.parts(back).min(left).min(room);
        self.level = self.level.saturating_add(back);
        self.remember(mark.charge, u128::try_from(back).unwrap_or(0));
    }

    fn remember(&mut self, charge: u64, parts: u128) {
        let given = Return { charge, at: self.charges, parts };
        let oldest = std::mem::replace(&mut self.returns[self.next_return], given);
        // The return that makes room counts for all charges from now on.
        self.flowed = self.flowed.wrapping_add(oldest.parts);
        self.next_return = (self.next_return + 1) % RETURNS;
    }

    /// Charges what was spent beyond the cost.
    pub(super) fn charge(&mut self, more: u64) {
        self.level = self.level.saturating_sub(self.parts(more));
        self.charges += 1;
    }

    /// Whole tokens that are left.
    pub(super) fn left(&self, terms: &Terms) -> u64 {
        if terms.at(self.at).is_zero() {
            return 0;
        }
        u64::try_from(self.level.max(0) / self.parts(1)).unwrap_or(u64::MAX)
    }

    /// Microseconds until `tokens` are there, or the bucket is full if that is less. `None` if that is unknown.
    pub(super) fn filled_in(&self, terms: &Terms, tokens: u64) -> Option<u64> {
        let full = self.burst_of(terms.at(self.at));
        let missing = self.parts(tokens).min(full).saturating_sub(self.level);
        terms.flows_in(self.at, u128::try_from(missing).unwrap_or(0))
    }

    /// Whole tokens that are there at most.
    pub(super) fn burst(&self, capacity: Amount) -> u64 {
        u64::try_from(self.burst_of(capacity) / self.parts(1)).unwrap_or(u64::MAX)
    }

    /// The capacity under which places are booked that are not used yet.
    pub(super) fn booked(&self) -> Amount {
        if self.booked.1 > self.at { self.booked.0 } else { Amount::ZERO }
    }

    /// What flows in a period, but at least one token.
    fn burst_of(&self, capacity: Amount) -> i128 {
        let flows = u128::from(capacity.millionths()) * u128::from(self.period);
        let most = self.most.map_or(u128::MAX, |most| self.token * u128::from(most));
        i128::try_from(flows.min(most).max(self.token)).unwrap_or(i128::MAX)
    }

    fn parts(&self, tokens: u64) -> i128 {
        let parts = self.token.saturating_mul(u128::from(tokens));
        i128::try_from(parts).unwrap_or(i128::MAX)
    }
}

/// Places that follow a lease. What is in use when a grant shrinks stays in use until it ends.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Gauge {
    in_use: u64,
    /// What was refused in the present slot of what is learned.
    refused: u64,
    slot: u64,
}

impl Gauge {
    /// Takes `cost` places, if they are free.
    pub(super) fn take(&mut self, now: u64, terms: &Terms, cost: u64) -> bool {
        let is_free = self.is_free(now, terms, cost);
        if is_free {
            self.in_use += cost;
        }
        is_free
    }

    pub(super) fn is_free(&self, now: u64, terms: &Terms, cost: u64) -> bool {
        let places = terms.at(now).as_units();
        self.in_use.checked_add(cost).is_some_and(|needed| needed <= places)
    }

    /// Remembers `refused` places that were asked for in vain, and says what is needed at once.
    pub(super) fn needs(&mut self, slot: u64, refused: u64) -> u64 {
        if slot != self.slot {
            (self.slot, self.refused) = (slot, 0);
        }
        self.refused = self.refused.saturating_add(refused);
        self.in_use.saturating_add(self.refused)
    }

    pub(super) fn give(&mut self, back: u64) {
        self.in_use = self.in_use.saturating_sub(back);
    }

    pub(super) fn add(&mut self, more: u64) {
        self.in_use = self.in_use.saturating_add(more);
    }

    pub(super) const fn in_use(&self) -> u64 {
        self.in_use
    }

    pub(super) fn left(&self, now: u64, terms: &Terms) -> u64 {
        terms.at(now).as_units().saturating_sub(self.in_use)
    }
}

/// What may be used, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Terms {
    /// What may be used before `until`.
    pub(super) held: Amount,
    /// When the lease ends, in microseconds.
    pub(super) until: u64,
    /// What may be used after that.
    pub(super) then: Amount,
}

impl Terms {
    pub(super) const NOTHING: Self = Self { held: Amount::ZERO, until: 0, then: Amount::ZERO };

    /// What may be used at `now`.
    pub(super) const fn at(&self, now: u64) -> Amount {
        if now < self.until { self.held } else { self.then }
    }

    /// What may be used between two moments, and for how many microseconds, in order.
    pub(super) fn between(&self, from: u64, to: u64) -> [(Amount, u64); 2] {
        let middle = self.until.clamp(from, to);
        [(self.held, middle - from), (self.then, to - middle)]
    }

    /// The microseconds until `parts` have flowed, at [`Amount::millionths`] parts a microsecond. `None` if that never
    /// happens.
    pub(super) fn flows_in(&self, now: u64, parts: u128) -> Option<u64> {
        let left = self.until.saturating_sub(now);
        let before = u128::from(self.held.millionths()) * u128::from(left);
        if parts <= before {
            return time_for(parts, self.held);
        }
        time_for(parts - before, self.then)?.checked_add(left)
    }
}

/// In microseconds, rounded up.
pub(super) fn time_for(parts: u128, capacity: Amount) -> Option<u64> {
    let time = match u128::from(capacity.millionths()) {
        _ if parts == 0 => 0,
        0 => return None,
        millionths => parts.div_ceil(millionths),
    };
    u64::try_from(time).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_flows_is_counted_over_the_end_of_the_lease() {
        let terms = Terms { held: Amount::units(10), until: 1_000, then: Amount::units(1) };
        assert_eq!((terms.at(999), terms.at(1_000)), (Amount::units(10), Amount::units(1)));
        let parts = |micros: u128| micros * 1_000_000;
        assert_eq!(terms.flows_in(900, 0), Some(0));
        assert_eq!(terms.flows_in(900, parts(1_000)), Some(100));
        assert_eq!(terms.flows_in(900, parts(1_000) + 1), Some(101));
        assert_eq!(terms.flows_in(900, parts(1_005)), Some(105));
        assert_eq!(Terms { then: Amount::ZERO, ..terms }.flows_in(900, parts(1_001)), None);
        assert_eq!(Terms::NOTHING.flows_in(900, 1), None);
    }
}
