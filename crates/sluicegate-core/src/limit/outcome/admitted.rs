use std::time::Duration;

use super::limit_outcome::DeferredStatus;
use super::{Decision, Limit, Outcome, Verdict};
use crate::limit::state::Receipt;

/// The [`Outcome`] of a request that was charged to one limit of two words and goes ahead at once: half as large.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AdmittedOutcome(DeferredStatus);

impl Outcome {
    /// This outcome, if it is about one such request.
    #[inline(always)]
    pub(crate) fn one_at_once(&self) -> Option<AdmittedOutcome> {
        (self.is_at_once() && self.any.is_none()).then_some(AdmittedOutcome(self.one))
    }
}

impl AdmittedOutcome {
    pub(crate) fn outcome(self) -> Outcome {
        Outcome { admitted: true, notes: 0, micros: 0, one: self.0, any: None }
    }

    #[inline(always)]
    pub(crate) fn decision(&self, limit: &Limit, cost: u64) -> Decision {
        let verdict = Verdict::Admit { wait: Duration::ZERO };
        Decision::about_one(verdict, self.0.status(limit, cost))
    }

    /// What is left of the limit, until when, and whether that is soft.
    #[inline]
    pub(crate) fn left(self, limit: &Limit) -> (u64, Option<Duration>, bool) {
        limit.left([self.0.first, self.0.second], self.0.now)
    }

    pub(crate) fn receipt(self) -> Receipt {
        self.0.receipt()
    }
}
