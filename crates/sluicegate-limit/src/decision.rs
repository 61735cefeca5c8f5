use core::time::Duration;

use super::status::LimitStatus;
use super::verdict::Verdict;
use crate::inline_vec::InlineVec;

/// The verdict, and the status of each limit.
///
/// ```
/// # extern crate sluicegate_limit as sluicegate;
/// use sluicegate::Limit;
///
/// let limit = Limit::per_minute(2);
/// let decision = limit.take(&mut limit.fresh(), 0, 1);
/// assert!(decision.is_admitted());
/// assert_eq!(decision.remaining(), Some(1));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    verdict: Verdict,
    statuses: InlineVec<LimitStatus>,
}

impl Decision {
    pub(super) fn new(verdict: Verdict, statuses: InlineVec<LimitStatus>) -> Self {
        Self { verdict, statuses }
    }

    /// The verdict.
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// This decision as a refusal for now: when the request would be admitted is not known.
    #[doc(hidden)]
    pub fn for_now(self) -> Self {
        Self { verdict: Verdict::Refuse { retry_after: None }, ..self }
    }

    /// Whether the request may go ahead, now or after [`wait`](Self::wait).
    pub fn is_admitted(&self) -> bool {
        self.verdict.is_admitted()
    }

    /// How long an admitted request waits before it goes; zero for a refused one.
    pub fn wait(&self) -> Duration {
        self.verdict.wait()
    }

    /// Whether the request can never be admitted as it is: see [`Verdict::Never`]. The standings that are
    /// [`refused`](LimitStatus::refused) are those of the limits that it is too much for.
    pub fn never_fits(&self) -> bool {
        self.verdict.never_fits()
    }

    /// When a refused request would be admitted; `None` for an admitted one, for one that
    /// [never fits](Self::never_fits), and where that cannot be told.
    pub fn retry_after(&self) -> Option<Duration> {
        self.verdict.retry_after()
    }

    /// The status of each limit, in the order of the rule. Empty if no limit was charged.
    pub fn statuses(&self) -> impl DoubleEndedIterator<Item = &LimitStatus> + Clone {
        self.statuses.iter()
    }

    /// The least that remains with any limit that is no [shadow](crate::Limit::shadow); `None` where nothing was
    /// owed to one.
    pub fn remaining(&self) -> Option<u64> {
        self.told().map(|status| status.remaining).min()
    }

    /// The standings that clients are told of: those of a shadow, and of a limit that was not counted, are not
    /// among them.
    #[doc(hidden)]
    pub fn told(&self) -> impl DoubleEndedIterator<Item = &LimitStatus> + Clone {
        self.statuses().filter(|status| !status.limit.is_shadow() && !status.uncounted)
    }

    /// Whether a limit was not counted, because the store had no room for the key.
    pub fn is_uncounted(&self) -> bool {
        self.statuses().any(|status| status.uncounted)
    }

    /// Whether a soft limit is exceeded.
    pub fn is_soft(&self) -> bool {
        self.told().any(|status| status.soft)
    }

    /// Whether a limit that is a [shadow](crate::Limit::shadow) would have refused the request, or held it up.
    pub fn is_shadowed(&self) -> bool {
        self.statuses().any(|status| status.shadowed)
    }

    /// Whether a ban is what refuses.
    pub fn is_banned(&self) -> bool {
        self.statuses().any(|status| status.refused && status.banned)
    }
}
