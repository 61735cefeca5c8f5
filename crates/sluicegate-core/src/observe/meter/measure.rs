//! Which metrics count a decision.

use super::VerdictLabel;
use super::handles::{All, OfPolicy};
use crate::key::Missing;
use crate::limit::{Decision, Outcome, OutcomeInternals as _};
use crate::store::StoreError;
use crate::store::charge::Charge;

/// The limit with the least left, and how much that is.
struct Tightest<'a> {
    policy: &'a OfPolicy,
    share: f64,
}

impl<'a> Tightest<'a> {
    fn with(tightest: Option<Self>, policy: &'a OfPolicy, remaining: u64, capacity: u64) -> Self {
        let share = remaining as f64 / capacity as f64;
        match tightest {
            Some(tightest) if tightest.share <= share => tightest,
            _ => Self { policy, share },
        }
    }
}

impl All {
    pub(super) fn admitted(&self, charge: &Charge, outcome: &Outcome, told: VerdictLabel) {
        let mut tightest = None;
        for (at, debit) in charge.debits().enumerate() {
            let policy = self.of(&debit.limit);
            if outcome.shadows(at) {
                policy.count(VerdictLabel::Shadowed);
                continue;
            }
            if outcome.leaves_out(at) {
                policy.count(VerdictLabel::Uncounted);
                continue;
            }
            policy.count(told);
            let remaining = outcome.remaining_of(at, &debit.limit);
            tightest = Some(Tightest::with(tightest, policy, remaining, debit.limit.capacity()));
        }
        if let Some(Tightest { policy, share }) = tightest {
            policy.remaining.record(share);
            if told == VerdictLabel::Waited {
                policy.wait.record(outcome.wait());
            }
        }
    }

    /// An admitted request whose limits a store has only counted.
    pub(super) fn judged(&self, decision: &Decision) {
        let mut tightest = None;
        for status in decision.statuses() {
            let policy = self.of(&status.limit);
            if status.shadowed {
                policy.count(VerdictLabel::Shadowed);
                continue;
            }
            policy.count(VerdictLabel::Admitted);
            let capacity = status.limit.capacity();
            tightest = Some(Tightest::with(tightest, policy, status.remaining, capacity));
        }
        if let Some(Tightest { policy, share }) = tightest {
            policy.remaining.record(share);
        }
    }

    /// A limit that would have admitted the request did not decide.
    pub(super) fn refused(&self, decision: &Decision, told: VerdictLabel) {
        let mut tightest = None;
        for status in decision.statuses().filter(|status| status.refused) {
            let policy = self.of(&status.limit);
            policy.count(told);
            let capacity = status.limit.capacity();
            tightest = Some(Tightest::with(tightest, policy, status.remaining, capacity));
        }
        if let Some(Tightest { policy, share }) = tightest {
            policy.remaining.record(share);
        }
    }

    pub(super) fn keyless(&self, missing: &Missing) {
        self.keyless_of(usize::from(!missing.is_client())).increment(1);
    }

    pub(super) fn failed(&self, error: &StoreError) {
        self.failures_of(error.kind_index()).increment(1);
    }
}
