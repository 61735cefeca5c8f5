//! Metrics of decisions, through the `metrics` facade.
//!
//! Counters and histograms are requested once for each policy, which is the name of a limit, and are found by
//! comparing limits, without a lock. There are 64 policies, and the rest is `other`, so that rules which choose
//! limits cannot create any number of time series. Without the feature `metrics`, a meter is empty.

#[cfg(feature = "metrics")]
mod handles;
#[cfg(feature = "metrics")]
mod measure;
#[cfg(all(test, feature = "metrics"))]
mod tests;

use std::fmt;
#[cfg(feature = "metrics")]
use std::sync::Arc;

use crate::key::Missing;
use crate::limit::{Decision, Outcome};
use crate::store::StoreError;
use crate::store::charge::Charge;

/// An adapter's metrics of decisions. Without the feature `metrics` it is empty and does nothing.
///
/// The metrics of a policy are registered with the recorder at its first decision, so install the recorder before the
/// first request.
#[derive(Clone, Default)]
pub(crate) struct Meter {
    #[cfg(feature = "metrics")]
    handles: Arc<handles::All>,
}

/// The result for a request, as the label `verdict`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "metrics"), expect(dead_code, reason = "nobody is told"))]
pub(crate) enum VerdictLabel {
    Admitted,
    Waited,
    Refused,
    Banned,
    Degraded,
    Redirected,
    Shadowed,
    Uncounted,
}

#[cfg_attr(
    not(feature = "metrics"),
    expect(
        unused_variables,
        clippy::unused_self,
        reason = "without the feature nothing is measured"
    )
)]
impl Meter {
    /// The request goes ahead at once.
    #[inline(always)]
    pub(crate) fn admitted(&self, charge: &Charge, outcome: &Outcome) {
        #[cfg(feature = "metrics")]
        self.handles.admitted(charge, outcome, VerdictLabel::Admitted);
    }

    /// The request goes ahead after a wait.
    #[inline]
    pub(crate) fn waited(&self, charge: &Charge, outcome: &Outcome) {
        #[cfg(feature = "metrics")]
        self.handles.admitted(charge, outcome, VerdictLabel::Waited);
    }

    /// The request goes ahead, by limits that a store has only counted.
    #[inline]
    pub(crate) fn judged(&self, decision: &Decision) {
        #[cfg(feature = "metrics")]
        self.handles.judged(decision);
    }

    /// A limit refuses the request, and this is what becomes of it.
    #[inline]
    pub(crate) fn exceeded(&self, decision: &Decision, told: VerdictLabel) {
        #[cfg(feature = "metrics")]
        self.handles.refused(decision, told);
    }

    /// The request has no key.
    #[inline]
    pub(crate) fn keyless(&self, missing: &Missing) {
        #[cfg(feature = "metrics")]
        self.handles.keyless(missing);
    }

    /// The store did not decide.
    #[inline]
    pub(crate) fn failed(&self, error: &StoreError) {
        #[cfg(feature = "metrics")]
        self.handles.failed(error);
    }

    /// Nobody has read what an answer cost.
    #[inline]
    pub(crate) fn unread(&self) {
        #[cfg(feature = "metrics")]
        self.handles.unread().increment(1);
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meter")
    }
}
