//! The answer of a store, and the decision that is made from it on demand.
//!
//! An outcome is not a decision. An [`Outcome`] has 56 bytes: the verdict, the two words of the row, and
//! the time. A [`Decision`] holds the status of each limit and the limits themselves, 330 bytes. It is
//! made when a handler, a header field or a refusal asks for it. When both were one type, most of a
//! decision's time went into building and moving an account that nobody read.
//!
//! To give back exactly, a decision carries what the store wrote, as an opaque receipt. It holds an instant
//! of the store's clock that nobody else can read, so no instant leaves a store in public.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use crate::algorithm::Algorithm;
use crate::decision::{Decision, LimitStatus, Verdict};
use crate::exact::{Earliest, micros};
use crate::inline_vec::InlineVec;
use crate::limit::Limit;
use crate::state::{NEVER, Receipt, Role, State, Step, UNKNOWN, Words};

/// A shadow would not have admitted it.
const SHADOWED: u8 = 1;

/// A limit was not counted.
const UNCOUNTED: u8 = 2;

impl Step {
    /// What remains, until when, and whether that is beyond the soft limit.
    pub(crate) fn left(&self, limit: &Limit) -> (u64, Option<Duration>, bool) {
        if let (true, 0, Algorithm::TokenBucket(bucket)) =
            (limit.plain, self.part, &limit.algorithm)
        {
            // The same for most limits: without a state, and without what only others have.
            let left = bucket.remaining(self.words(), self.now);
            let window = match bucket.earliest(self.words(), self.now, left + 1, 0) {
                _ if left >= limit.capacity() => Some(Duration::ZERO),
                Earliest::At(delay) => Some(Duration::from_micros(delay)),
                Earliest::Unknown(_) | Earliest::Never => None,
            };
            return (left, window, limit.soft.is_some_and(|soft| limit.capacity() - left > soft));
        }
        self.left_by_state(limit)
    }

    fn left_by_state(&self, limit: &Limit) -> (u64, Option<Duration>, bool) {
        LimitStatus::left(&limit.in_part(self.part), &State::of(self.words()), self.now, false)
    }

    pub(crate) fn remaining(&self, limit: &Limit) -> u64 {
        limit.in_part(self.part).algorithm.remaining(&State::of(self.words()), self.now)
    }

    pub(crate) fn status(&self, limit: &Limit, cost: u64) -> LimitStatus {
        let (portion, state) = (limit.in_part(self.part), State::of(self.words()));
        LimitStatus::of(limit, &portion, &state, self.now, self.receipt(), self.role, cost)
    }
}

/// The status of one limit after the decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LimitOutcome {
    /// Of a limit whose state is two words.
    Words(Step),
    /// Of a limit that remembers more, computed while the state was at hand.
    Status(LimitStatus),
    /// Decided by the limit of the status instead of the one that was charged: decisions and header fields show it.
    OtherNumbers(LimitStatus),
}

impl LimitOutcome {
    /// Of a limit whose state is two words, as they are at `now`.
    pub const fn of_words(words: Words, now: u64, role: Role) -> Self {
        Self::Words(Step::of_words(words, now, role))
    }

    /// What [`of_words`](Self::of_words) was given: the two words.
    pub fn words(&self) -> Option<Words> {
        match self {
            Self::Words(step) => Some(step.words()),
            Self::Status(_) | Self::OtherNumbers(_) => None,
        }
    }

    pub(crate) fn is_by_other(&self) -> bool {
        matches!(self, Self::OtherNumbers(_))
    }

    pub(crate) fn is_shadowed(&self) -> bool {
        match self {
            Self::Words(step) => step.role == Role::Shadowed,
            Self::Status(status) | Self::OtherNumbers(status) => status.shadowed,
        }
    }

    pub(crate) fn is_uncounted(&self) -> bool {
        match self {
            Self::Words(_) => false,
            Self::Status(status) | Self::OtherNumbers(status) => status.uncounted,
        }
    }

    /// Of a limit that had no part in the decision.
    pub(crate) fn uncounted(limit: Limit) -> Self {
        let receipt = Receipt { void: true, ..Receipt::default() };
        Self::Status(LimitStatus { uncounted: true, receipt, ..LimitStatus::fresh(limit) })
    }

    /// This outcome, of a charge to a row that several keys share.
    pub(crate) fn together(self, limit: &Limit, cost: u64) -> Self {
        let mut status = self.status(limit, cost);
        status.together = true;
        status.receipt.together = true;
        Self::Status(status)
    }

    pub(crate) fn receipt(&self) -> Receipt {
        match self {
            Self::Words(step) => step.receipt(),
            Self::Status(status) | Self::OtherNumbers(status) => status.receipt,
        }
    }

    /// The status, given the limit that was charged and the cost.
    pub(crate) fn status(&self, limit: &Limit, cost: u64) -> LimitStatus {
        match self {
            Self::Words(step) => step.status(limit, cost),
            Self::Status(status) => LimitStatus { limit: *limit, ..status.clone() },
            Self::OtherNumbers(status) => status.clone(),
        }
    }

    pub(crate) fn left(&self, limit: &Limit) -> (u64, Option<Duration>, bool) {
        match self {
            Self::Words(step) => step.left(limit),
            Self::Status(status) | Self::OtherNumbers(status) => {
                (status.remaining, status.window, status.soft)
            }
        }
    }

    /// Remembers which store of two has decided.
    pub(crate) fn pass(&mut self, store: u8) {
        let via = match self {
            Self::Words(step) => &mut step.via,
            Self::Status(status) | Self::OtherNumbers(status) => &mut status.receipt.via,
        };
        *via = *via << 1 | store;
    }
}

/// The answer of a store: the verdict, and the data from which the status of each limit follows.
///
/// It is small, because every request has one. [`decision`](Self::decision) computes the full status on demand.
///
/// ```
/// use sluicegate_limit::{Attempt, Keys, Limit, decide};
///
/// let limit = Limit::per_minute(2);
/// let attempt = Attempt { limit: &limit, state: &mut limit.fresh(), cost: 1 };
/// let outcome = decide(&mut [attempt], 0, None, Keys::One);
/// assert!(outcome.is_admitted());
/// assert_eq!(outcome.decision([(&limit, 1)]).remaining(), Some(1));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// For one limit whose state is two words, which is the case for most requests. Otherwise only its time counts.
    pub(crate) one: Step,
    admitted: bool,
    /// What there is to report of a request that is admitted: [`SHADOWED`], [`UNCOUNTED`].
    pub(crate) notes: u8,
    /// For everything else: any number of limits, or one with a larger state.
    #[expect(clippy::box_collection, reason = "one word, because it is nearly always empty")]
    pub(crate) any: Option<Box<Vec<LimitOutcome>>>,
}

impl From<Step> for Outcome {
    #[inline]
    fn from(step: Step) -> Self {
        Self { admitted: step.is_admitted(), notes: 0, one: step, any: None }
    }
}

impl Outcome {
    pub(crate) fn new(verdict: Verdict, mut limits: Vec<LimitOutcome>) -> Self {
        let micros = match verdict {
            Verdict::Admit { wait } => micros(wait).min(UNKNOWN),
            Verdict::Refuse { retry_after } => retry_after.map_or(UNKNOWN, micros).min(UNKNOWN),
            Verdict::Never => NEVER,
        };
        let admitted = verdict.is_admitted();
        let note = |note: u8, is_so: fn(&LimitOutcome) -> bool| {
            if limits.iter().any(is_so) { note } else { 0 }
        };
        let uncounted = if admitted { note(UNCOUNTED, LimitOutcome::is_uncounted) } else { 0 };
        let notes = note(SHADOWED, LimitOutcome::is_shadowed) | uncounted;
        let (one, any) = match limits.pop() {
            Some(LimitOutcome::Words(step)) if limits.is_empty() => (step, None),
            last => {
                limits.extend(last);
                (Step::default(), Some(Box::new(limits)))
            }
        };
        Self { one: Step { micros, ..one }, admitted, notes, any }
    }

    /// The outcome for a request without charges.
    pub fn free() -> Self {
        Self::new(Verdict::Admit { wait: Duration::ZERO }, Vec::new())
    }

    /// An outcome worked out elsewhere: for stores that do not decide by [`decide`](crate::decide). The
    /// statuses are those of what the charge owes, in that order.
    pub fn from_parts(verdict: Verdict, statuses: impl IntoIterator<Item = LimitStatus>) -> Self {
        Self::new(verdict, statuses.into_iter().map(LimitOutcome::Status).collect())
    }

    /// The verdict.
    #[inline]
    pub const fn verdict(&self) -> Verdict {
        match self.admitted {
            true => Verdict::Admit { wait: self.wait() },
            false if self.one.never_fits() => Verdict::Never,
            false => Verdict::Refuse { retry_after: self.retry_after() },
        }
    }

    /// Whether the request may go ahead, now or after [`wait`](Self::wait).
    #[inline]
    pub const fn is_admitted(&self) -> bool {
        self.admitted
    }

    /// Whether a limit that is a [shadow](Limit::shadow) would have refused the request, or held it up.
    #[inline]
    pub const fn is_shadowed(&self) -> bool {
        self.notes & SHADOWED != 0
    }

    /// Whether the request was admitted without one of its limits, which the store had no room to count: see
    /// [`LimitStatus::uncounted`].
    #[inline]
    pub const fn is_uncounted(&self) -> bool {
        self.notes & UNCOUNTED != 0
    }

    /// How long an admitted request waits before it goes; zero for a refused one.
    #[inline]
    pub const fn wait(&self) -> Duration {
        Duration::from_micros(if self.admitted { self.one.micros } else { 0 })
    }

    /// Whether the request can never be admitted as it is: see [`Verdict::Never`].
    #[inline]
    pub const fn never_fits(&self) -> bool {
        !self.admitted && self.one.never_fits()
    }

    /// When a refused request would be admitted; `None` for an admitted one, for one that
    /// [never fits](Self::never_fits), and where that cannot be told.
    #[inline]
    pub const fn retry_after(&self) -> Option<Duration> {
        if self.admitted || self.one.micros >= UNKNOWN {
            return None;
        }
        Some(Duration::from_micros(self.one.micros))
    }

    /// The decision, given the limits that were charged and the cost of each. A `Charge` is such a list.
    pub fn decision<'l>(&self, debits: impl IntoIterator<Item = (&'l Limit, u64)>) -> Decision {
        let mut debits = debits.into_iter();
        let mut decision = Decision::new(self.verdict(), InlineVec::new());
        match &self.any {
            None => {
                if let Some((limit, cost)) = debits.next() {
                    decision.statuses.begin(|| self.one.status(limit, cost));
                }
            }
            Some(limits) => debits.zip(limits.iter()).for_each(|((limit, cost), outcome)| {
                decision.statuses.push(outcome.status(limit, cost));
            }),
        }
        decision
    }

    /// What the store needs to give each charge back, in the order of what was owed.
    pub fn receipts(&self) -> impl Iterator<Item = Receipt> {
        let one = self.any.is_none().then(|| self.one.receipt());
        let any = self.any.iter().flat_map(|limits| limits.iter().map(LimitOutcome::receipt));
        one.into_iter().chain(any)
    }
}
