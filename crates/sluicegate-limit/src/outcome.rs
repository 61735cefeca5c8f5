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

use crate::algorithm::{Algorithm, Earliest};
use crate::decision::{Decision, LimitStatus, Verdict};
use crate::inline_vec::InlineVec;
use crate::limit::Limit;
use crate::part::Part;
use crate::state::{Receipt, State, Words};

/// The time is unknown. Every real time is smaller, and this number is exact in a double.
const UNKNOWN: u64 = u64::MAX - 1;

/// Never: the cost is more than a limit ever admits.
const NEVER: u64 = u64::MAX;

/// A shadow would not have admitted it.
const SHADOWED: u8 = 1;

/// A limit was not counted.
const UNCOUNTED: u8 = 2;

/// The part that a limit had in a decision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Role {
    /// It admitted, and was charged.
    Charged,
    /// It would admit.
    #[default]
    Asked,
    /// The request was refused, by this limit or by others.
    Refused(bool),
    /// It is a shadow, and would have refused or delayed the request.
    Shadowed,
}

impl Role {
    /// Whether the limit was not charged, because it or another limit did not admit the request.
    pub(crate) const fn is_refused(self) -> bool {
        matches!(self, Self::Refused(_) | Self::Shadowed)
    }
}

/// What the arithmetic answers for a limit whose state is two words. Everything else follows from it.
///
/// Plain numbers, so that each is written once, directly into the returned outcome. A processor stalls if a value is
/// written in one size and read in another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Step {
    /// The words as they are now.
    first: u64,
    second: u64,
    now: u64,
    /// For a request that goes ahead, microseconds until then. For a refused one, microseconds until it may come again,
    /// [`UNKNOWN`] or [`NEVER`].
    pub(crate) micros: u64,
    /// The part of the limit that has decided, as the bits of a [`Part`]; 0 for all of it.
    pub(crate) part: u32,
    role: Role,
    pub(crate) via: u8,
    /// Whether the words are those of the only account in the row of a limit that is carried over.
    is_account: bool,
}

impl Step {
    /// The cost was spent, and these are the words after it.
    #[inline]
    pub(crate) const fn admit([first, second]: Words, now: u64) -> Self {
        let (part, role, via, is_account) = (0, Role::Charged, 0, false);
        Self { first, second, now, micros: 0, part, role, via, is_account }
    }

    /// Nothing has changed: the request may come again at the `earliest`.
    #[inline]
    pub(crate) const fn refuse([first, second]: Words, now: u64, earliest: Earliest) -> Self {
        let micros = match earliest {
            Earliest::At(delay) => delay,
            Earliest::Unknown => UNKNOWN,
            Earliest::Never => NEVER,
        };
        let (part, role, via, is_account) = (0, Role::Refused(true), 0, false);
        Self { first, second, now, micros, part, role, via, is_account }
    }

    /// The words and the part that the limit had in a decision about several.
    const fn of_words([first, second]: Words, now: u64, role: Role) -> Self {
        Self { first, second, now, micros: 0, part: 0, role, via: 0, is_account: false }
    }

    /// Whether the cost was spent.
    #[inline]
    pub fn is_admitted(&self) -> bool {
        self.role == Role::Charged
    }

    /// Whether the cost is more than the limit ever admits.
    #[inline]
    pub const fn never_fits(&self) -> bool {
        self.micros == NEVER
    }

    /// The words of the row, after the step.
    #[inline]
    pub const fn words(&self) -> Words {
        [self.first, self.second]
    }

    /// When it was decided.
    #[inline]
    pub const fn decided_at(&self) -> u64 {
        self.now
    }

    /// Remembers that it was decided by a part of the limit.
    #[inline]
    #[must_use]
    pub const fn by_part(mut self, part: Part) -> Self {
        self.part = part.to_bits();
        self
    }

    /// The same, of words that are the only account in the row of a limit that is carried over.
    #[inline]
    pub(crate) const fn of_account(self) -> Self {
        Self { is_account: true, ..self }
    }

    /// The words are what was written. If nothing was charged, nothing can be given back.
    pub(crate) fn receipt(&self) -> Receipt {
        let words = if self.role == Role::Charged { self.words() } else { [0; 2] };
        // A shadow that would have refused charged nothing, although the request was admitted.
        let void = self.role == Role::Shadowed;
        let receipt =
            Receipt { via: self.via, void, part: self.part, ..Receipt::from_words(words) };
        match self.is_account && self.role == Role::Charged {
            // The account was there before, and no other had to have room for the charge.
            true => Receipt { at: self.now, since: self.now, by_all: true, ..receipt },
            false => receipt,
        }
    }

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
                Earliest::Unknown | Earliest::Never => None,
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
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(UNKNOWN);
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
