//! Token bucket that is refilled in steps: `amount` tokens drop in every `every`.
//!
//! The words are `[time of the refill that was counted last, tokens spent]`. A full bucket has no
//! phase: its first refill comes one step after the first token is spent.

use crate::exact::{EXACT, Earliest, bounded};
use crate::state::{Parameters, Words};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SteppedBucket {
    amount: u64,
    every: u64,
    cap: u64,
}

impl SteppedBucket {
    pub(crate) const fn new(amount: u64, every: u64, cap: u64) -> Self {
        Self { amount, every, cap }
    }

    /// The numbers that define the meaning of the words, and the capacity.
    pub(crate) const fn parameters(&self) -> Parameters {
        [self.amount, self.every, 0, self.cap]
    }

    /// The bucket of those numbers.
    pub(crate) const fn with_parameters([amount, every, _, cap]: Parameters) -> Self {
        Self { amount, every, cap }
    }

    /// The spent tokens that words of other numbers stand for. The present step goes on, unless it would already be
    /// over.
    pub(crate) fn taken_over(&self, words: Words, parameters: Parameters, now: u64) -> Words {
        let [anchor, spent] = Self::with_parameters(parameters).refilled(words, now);
        // A step that began anew with each change of numbers would put off the refill each time.
        let begun = if anchor + self.every > now { anchor } else { now };
        [begun, spent.min(self.cap)]
    }

    pub(crate) fn spent(&self, words: Words, now: u64) -> u64 {
        self.refilled(words, now)[1]
    }

    pub(crate) fn spent_up_to_all(&self, now: u64, tokens: u64) -> Words {
        [now, tokens.min(self.cap)]
    }

    pub(crate) fn charge_up_to_all(&self, words: &mut Words, now: u64, cost: u64) -> bool {
        let [anchor, spent] = self.refilled(*words, now);
        let after = spent.saturating_add(cost);
        *words = [anchor, after.min(self.cap).max(spent)];
        after <= self.cap
    }

    /// Gives back the part of a charge made at `then` that has not been refilled, as if every step had refilled this
    /// charge.
    pub(crate) fn give_charged(
        &self,
        words: &mut Words,
        then: u64,
        now: u64,
        cost: u64,
        back: u64,
    ) {
        let [anchor, spent] = self.refilled(*words, now);
        // Refills since the charge; `anchor` is the last of them.
        let steps = anchor.saturating_sub(then).div_ceil(self.every);
        let left = cost.saturating_sub(steps.saturating_mul(self.amount));
        *words = [anchor, spent - left.min(back).min(spent)];
    }

    pub(crate) fn earliest(&self, words: Words, now: u64, cost: u64, from: u64) -> Earliest {
        if cost > self.cap {
            return Earliest::Never;
        }
        let [anchor, spent] = self.refilled(words, now);
        let short = (spent + cost).saturating_sub(self.cap);
        Earliest::At(from.max(self.until(anchor, short, now)))
    }

    pub(crate) fn spend(&self, words: &mut Words, now: u64, cost: u64, wait: u64) {
        let [anchor, spent] = self.refilled(*words, now);
        // Tokens that drop in while the request waits must not overfill a full bucket.
        let dropped = self.dropped(anchor, now + wait);
        *words = [anchor, spent.max(dropped).saturating_add(cost).min(EXACT / 2)];
    }

    /// Whether a place `wait` ahead can be booked: see the continuous bucket.
    pub(crate) fn books(
        &self,
        words: Words,
        now: u64,
        cost: u64,
        wait: u64,
        another: bool,
    ) -> bool {
        let [anchor, spent] = self.refilled(words, now);
        let dropped = self.dropped(anchor, now + wait);
        (!another || dropped <= spent.max(self.cap / 2))
            && spent.max(dropped).saturating_add(cost) <= EXACT / 2
    }

    /// Follows a clock that stepped back, so that the steps go on from there.
    pub(crate) fn follow(&self, words: &mut Words, now: u64) {
        words[0] = words[0].min(now);
    }

    pub(crate) fn force(&self, words: &mut Words, now: u64, cost: u64) {
        let [anchor, spent] = self.refilled(*words, now);
        *words = [anchor, spent.saturating_add(cost).min(EXACT / 2)];
    }

    pub(crate) fn give(&self, words: &mut Words, receipt: Words, now: u64, back: u64) {
        let [anchor, spent] = self.refilled(*words, now);
        // Refills happen in steps from the anchor. If the two anchors are not whole steps apart, the bucket has been
        // full in between and has begun its steps anew, and nothing is left of the charge.
        let same_phase = anchor >= receipt[0] && (anchor - receipt[0]) % self.every == 0;
        if !same_phase || spent > self.cap && *words != receipt {
            return;
        }
        let own = self.refilled(receipt, now)[1].min(back);
        *words = [anchor, spent.saturating_sub(own)];
    }

    pub(crate) fn remaining(&self, words: Words, now: u64) -> u64 {
        self.cap.saturating_sub(self.refilled(words, now)[1])
    }

    pub(crate) fn fresh_in(&self, words: Words, now: u64) -> u64 {
        let [anchor, spent] = self.refilled(words, now);
        self.until(anchor, spent, now)
    }

    /// A clock that stepped back begins the step anew.
    fn refilled(&self, [anchor, spent]: Words, now: u64) -> Words {
        if spent == 0 || now < anchor {
            return [now, spent];
        }
        let steps = (now - anchor) / self.every;
        match spent.saturating_sub(steps.saturating_mul(self.amount)) {
            0 => [now, 0],
            spent => [anchor + steps * self.every, spent],
        }
    }

    fn until(&self, anchor: u64, tokens: u64, now: u64) -> u64 {
        match tokens.div_ceil(self.amount) {
            0 => 0,
            steps => bounded(anchor.saturating_add(steps.saturating_mul(self.every)) - now),
        }
    }

    /// How many tokens have dropped in by `then`.
    fn dropped(&self, anchor: u64, then: u64) -> u64 {
        ((then - anchor) / self.every).saturating_mul(self.amount)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds five; two drop in every ten microseconds.
    const STEPPED: SteppedBucket = SteppedBucket::new(2, 10, 5);

    fn spent(now: u64, cost: u64) -> Words {
        let mut words = [0; 2];
        STEPPED.spend(&mut words, now, cost, 0);
        words
    }

    #[test]
    fn the_first_refill_comes_one_step_after_the_first_token_is_spent() {
        let words = spent(1_003, 5);
        assert_eq!(STEPPED.remaining(words, 1_012), 0);
        assert_eq!(STEPPED.remaining(words, 1_013), 2);
        assert_eq!(STEPPED.remaining(words, 1_022), 2);
        assert_eq!(STEPPED.remaining(words, 1_023), 4);
        assert_eq!(STEPPED.remaining(words, 1_033), 5);
    }

    #[test]
    fn a_cost_waits_for_as_many_steps_as_it_takes() {
        let words = spent(1_003, 4);
        assert_eq!(STEPPED.earliest(words, 1_003, 1, 0), Earliest::At(0));
        assert_eq!(STEPPED.earliest(words, 1_003, 2, 0), Earliest::At(10));
        assert_eq!(STEPPED.earliest(words, 1_004, 4, 0), Earliest::At(19));
        assert_eq!(STEPPED.earliest(words, 1_004, 6, 0), Earliest::Never);
    }

    #[test]
    fn a_full_bucket_has_no_phase() {
        let mut words = spent(1_003, 2);
        // Full again at 1,013; the next step is counted from the next token.
        STEPPED.spend(&mut words, 1_017, 5, 0);
        assert_eq!(STEPPED.remaining(words, 1_026), 0);
        assert_eq!(STEPPED.remaining(words, 1_027), 2);
    }

    #[test]
    fn spending_does_not_put_off_a_refill() {
        let mut words = spent(1_000, 5);
        STEPPED.spend(&mut words, 1_019, 2, 0);
        assert_eq!(STEPPED.remaining(words, 1_020), 2);
    }
}
