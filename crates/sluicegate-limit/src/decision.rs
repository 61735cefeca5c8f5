//! What a person or a header field reads of a decision: the verdict, and the status of each limit.

use core::time::Duration;

use crate::algorithm::token_bucket::TokenBucket;
use crate::exact::Earliest;
use crate::inline_vec::InlineVec;
use crate::limit::Limit;
use crate::state::{Receipt, Role, State};

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
    pub(crate) statuses: InlineVec<LimitStatus>,
}

impl Decision {
    pub(crate) fn new(verdict: Verdict, statuses: InlineVec<LimitStatus>) -> Self {
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

    /// Whether the request can never be admitted as it is: see [`Verdict::Never`]. The statuses that are
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

    /// The statuses that clients are told of: those of a shadow, and of a limit that was not counted, are not
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

/// The verdict about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It may go ahead, once `wait` has passed.
    Admit {
        /// Zero, unless a place was booked ahead.
        wait: Duration,
    },
    /// It may not.
    Refuse {
        /// How long until it would be admitted, if nobody else spends; `None` if that is unknown because only giving
        /// back makes room.
        retry_after: Option<Duration>,
    },
    /// It can never be admitted as it is, however long the client waits: the cost is more than one of the
    /// limits ever allows, or would always keep the request in a leaky bucket's queue for longer than it may
    /// wait. Nothing is charged, and nothing is recorded as a refusal.
    Never,
}

impl Verdict {
    /// Whether the request may go ahead, now or after [`wait`](Self::wait).
    #[inline]
    pub const fn is_admitted(&self) -> bool {
        matches!(self, Self::Admit { .. })
    }

    /// How long an admitted request waits before it goes; zero for a refused one.
    #[inline]
    pub const fn wait(&self) -> Duration {
        match *self {
            Self::Admit { wait } => wait,
            Self::Refuse { .. } | Self::Never => Duration::ZERO,
        }
    }

    /// Whether the request can never be admitted as it is: see [`Never`](Self::Never).
    #[inline]
    pub const fn never_fits(&self) -> bool {
        matches!(self, Self::Never)
    }

    /// When a refused request would be admitted; `None` for an admitted one, for one that [never
    /// fits](Self::never_fits), and if it is unknown.
    #[inline]
    pub const fn retry_after(&self) -> Option<Duration> {
        match *self {
            Self::Admit { .. } | Self::Never => None,
            Self::Refuse { retry_after } => retry_after,
        }
    }
}

/// The status of one limit for a key, once a request has been decided.
///
/// Holds durations only, never an instant, because the clock belongs to the store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitStatus {
    /// The limit.
    pub limit: Limit,
    /// How much more could be spent at this moment: nothing while a [gap](Limit::min_gap) or a ban lasts.
    pub remaining: u64,
    /// The effective window: until it has passed, no more than `remaining` can be spent, and afterwards more. Zero if
    /// nothing is spent. If only giving back makes room, what is left of a [gap](Limit::min_gap) or a ban; `None` without
    /// one.
    pub window: Option<Duration>,
    /// How long until the key is as good as new, if nobody spends; `None` if only giving back does that.
    pub reset: Option<Duration>,
    /// What was charged; zero if the request was refused.
    pub charged: u64,
    /// Whether it is this limit that refuses.
    pub refused: bool,
    /// Whether this limit, a [shadow](Limit::shadow), would have refused the request, or held it up.
    pub shadowed: bool,
    /// Whether this limit was not counted, because the store had no room for the key: nothing was charged
    /// to it, and it had no part in the decision.
    pub uncounted: bool,
    /// Whether the key was counted together with others in a row that they share, because the store had no
    /// room for a row of its own: see [`WhenFull::CountTogether`](crate::WhenFull::CountTogether).
    pub together: bool,
    /// How long until this limit would admit the request: zero if it does now; `None` if that is unknown (only giving
    /// back makes room) or never happens (the cost is more than it ever allows).
    pub retry: Option<Duration>,
    /// Whether more than the soft limit is spent.
    pub soft: bool,
    /// Whether the key is banned.
    pub banned: bool,
    /// What the store needs to give the charge back.
    pub receipt: Receipt,
}

impl LimitStatus {
    /// The status of a key about which nothing is known: for stores that cannot report more.
    pub fn fresh(limit: Limit) -> Self {
        Self {
            limit,
            remaining: limit.capacity(),
            window: Some(Duration::ZERO),
            reset: Some(Duration::ZERO),
            charged: 0,
            refused: false,
            shadowed: false,
            uncounted: false,
            together: false,
            retry: Some(Duration::ZERO),
            soft: false,
            banned: false,
            receipt: Receipt::default(),
        }
    }

    /// The status of `limit` by a state, in a decision about `cost`, by the numbers of `portion`: a part of the limit, or
    /// the limit itself.
    pub(crate) fn of(
        limit: &Limit,
        portion: &Limit,
        state: &State,
        now: u64,
        receipt: Receipt,
        role: Role,
        cost: u64,
    ) -> Self {
        let banned = portion.is_banned(state, now);
        let (remaining, window, soft) = Self::left(portion, state, now, banned);
        let retry = match role.is_refused() {
            true => portion.retry(state, now, cost),
            false => Some(Duration::ZERO),
        };
        // Built where it is returned: it is large.
        Self {
            limit: *limit,
            remaining,
            window,
            reset: portion.own_fresh_in(state, now),
            charged: if role == Role::Charged { cost } else { 0 },
            refused: role == Role::Refused(true),
            shadowed: role == Role::Shadowed,
            uncounted: false,
            together: false,
            retry,
            soft,
            banned,
            receipt,
        }
    }

    /// What remains, until when, and whether that is beyond the soft limit.
    pub(crate) fn left(
        limit: &Limit,
        state: &State,
        now: u64,
        banned: bool,
    ) -> (u64, Option<Duration>, bool) {
        let left = if banned { 0 } else { limit.algorithm.remaining(state, now) };
        let in_gap = limit.gap > 0 && TokenBucket::gap(limit.gap).fresh_in(state.gap, now) > 0;
        // During the gap nothing can be spent, whatever the count has left.
        let remaining = if in_gap { 0 } else { left };
        let window = if remaining < limit.capacity() {
            match limit.earliest(state, now, remaining + 1, 0) {
                Earliest::Unknown(0) | Earliest::Never => None,
                // During a ban or a gap, a place that is given back makes no room.
                Earliest::At(delay) | Earliest::Unknown(delay) => {
                    Some(Duration::from_micros(delay))
                }
            }
        } else {
            Some(Duration::ZERO)
        };
        let soft = limit.soft.is_some_and(|soft| limit.capacity() - left > soft);
        (remaining, window, soft)
    }
}
