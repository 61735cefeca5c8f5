use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use super::limit_outcome::{DeferredStatus, LimitOutcome};
use super::{Decision, Limit, Outcome, Verdict, left_in};
use crate::inline_vec::InlineVec;
use crate::state::Receipt;

/// The [`Outcome`] of a request that was charged to one limit and goes ahead at once: a little smaller, because the
/// verdict is known.
#[derive(Debug)]
pub struct AdmittedOutcome {
    one: DeferredStatus,
    #[expect(clippy::box_collection, reason = "one word, because it is nearly always empty")]
    any: Option<Box<Vec<LimitOutcome>>>,
}

impl Outcome {
    /// Takes the status of the limit, if the request goes ahead at once.
    #[inline(always)]
    #[doc(hidden)]
    pub fn take_at_once(&mut self) -> Option<AdmittedOutcome> {
        if !self.is_at_once() {
            return None;
        }
        Some(AdmittedOutcome { one: self.one, any: self.any.take() })
    }
}

impl AdmittedOutcome {
    /// The outcome that it was taken from.
    pub fn outcome(&self) -> Outcome {
        Outcome { admitted: true, notes: 0, micros: 0, one: self.one, any: self.any.clone() }
    }

    /// The decision, given the limit that was charged and the cost.
    #[inline(always)]
    pub fn decision(&self, limit: &Limit, cost: u64) -> Decision {
        let verdict = Verdict::Admit { wait: Duration::ZERO };
        match &self.any {
            None => Decision::about_one(verdict, self.one.status(limit, cost)),
            Some(limits) => {
                let status = limits.first().map(|outcome| outcome.status(limit, cost));
                Decision::new(verdict, status.into_iter().collect::<InlineVec<_>>())
            }
        }
    }

    /// Whether it was decided by other numbers than those of the limit that was charged.
    #[inline]
    pub fn is_by_other_numbers(&self) -> bool {
        self.any.as_deref().is_some_and(|limits| limits.iter().any(LimitOutcome::is_by_other))
    }

    /// What is left of the limit, until when, and whether that is soft.
    #[inline]
    pub fn left(&self, limit: &Limit) -> (u64, Option<Duration>, bool) {
        left_in(&self.one, self.any.as_deref(), 0, limit)
    }

    /// What the store needs to give the charge back.
    pub fn receipt(&self) -> Option<Receipt> {
        match &self.any {
            None => Some(self.one.receipt()),
            Some(limits) => limits.first().map(LimitOutcome::receipt),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LimitStatus;
    use crate::part::Part;

    #[test]
    fn what_is_kept_of_an_outcome_says_what_the_outcome_says() {
        let limit = Limit::per_minute(60).burst(40);
        let words =
            DeferredStatus { first: 7_000_000, now: 3_000_000, ..DeferredStatus::default() };
        let admit = Verdict::Admit { wait: Duration::ZERO };
        let deferred = Outcome::new(admit, vec![LimitOutcome::Deferred(words)]);
        let computed = LimitStatus { remaining: 5, ..LimitStatus::fresh(limit) };
        let other = LimitStatus::fresh(Limit::per_minute(7));
        for outcome in [
            Outcome::new(admit, vec![LimitOutcome::of_other_numbers(other)]),
            deferred.clone(),
            deferred.by_part(Part::of(1, 4).expect("a quarter")),
            Outcome::from_parts(admit, [computed.clone()]),
        ] {
            let mut taken = outcome.clone();
            let kept = taken.take_at_once().expect("it goes ahead at once");
            assert_eq!(kept.outcome(), outcome);
            assert_eq!(kept.left(&limit), outcome.left_of(0, &limit));
            assert_eq!(kept.decision(&limit, 3), outcome.decision([(&limit, 3)]));
            assert_eq!(kept.receipt(), outcome.receipts().next());
        }
        let refused = Outcome::from_parts(Verdict::Never, [computed]);
        assert!(refused.clone().take_at_once().is_none());
    }
}
