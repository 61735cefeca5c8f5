//! The answer of a store, and the decision that is made from it on demand.
//!
//! An outcome is not a decision. An [`Outcome`] has 56 bytes: the verdict, the two words of the row, and
//! the time. A [`Decision`] holds the status of each limit and the limits themselves, 330 bytes. It is
//! made when a handler, a header field or a refusal asks for it. When both were one type, most of a
//! decision's time went into building and moving an account that nobody read.
//!
//! To give back exactly, a decision carries what the store wrote, as an opaque receipt. It holds an instant
//! of the store's clock that nobody else can read, so no instant leaves a store in public.

mod limit_outcome;
mod micros;
mod plain;

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

pub(crate) use self::limit_outcome::LimitOutcome;
pub use self::limit_outcome::Role;
use self::limit_outcome::{ComputedStatus, DeferredStatus};
use self::micros::{NEVER, UNKNOWN};
pub use self::plain::PlainOutcome;
use super::decision::Decision;
use super::definition::Limit;
use super::part::Part;
use super::state::Receipt;
use super::status::LimitStatus;
use super::verdict::Verdict;

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
    admitted: bool,
    /// What there is to report of a request that is admitted: [`SHADOWED`], [`UNCOUNTED`].
    notes: u8,
    /// For an admitted request, microseconds until it goes ahead. For a refused one, microseconds until it may come
    /// again, [`UNKNOWN`] or [`NEVER`].
    micros: u64,
    /// For one limit whose state is two words, which is the case for most requests.
    one: DeferredStatus,
    /// For everything else: any number of limits, or one with a larger state.
    #[expect(clippy::box_collection, reason = "one word, because it is nearly always empty")]
    any: Option<Box<Vec<LimitOutcome>>>,
}

/// A shadow would not have admitted it.
const SHADOWED: u8 = 1;

/// A limit was not counted.
const UNCOUNTED: u8 = 2;

impl Outcome {
    pub(super) fn new(verdict: Verdict, mut limits: Vec<LimitOutcome>) -> Self {
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
            Some(LimitOutcome::Deferred(deferred)) if limits.is_empty() => (deferred, None),
            last => {
                limits.extend(last);
                (DeferredStatus::default(), Some(Box::new(limits)))
            }
        };
        Self { admitted, notes, micros, one, any }
    }

    /// The outcome for a request without charges.
    pub fn free() -> Self {
        Self::new(Verdict::Admit { wait: Duration::ZERO }, Vec::new())
    }

    /// An outcome worked out elsewhere: for stores that do not decide by [`decide`](super::decide). The
    /// standings are those of what the charge owes, in that order.
    pub fn from_parts(verdict: Verdict, statuses: impl IntoIterator<Item = LimitStatus>) -> Self {
        Self::new(verdict, statuses.into_iter().map(LimitOutcome::computed).collect())
    }

    /// A refusal by the limit `by`, which was asked before the limits of the charge: `limits` are those of the charge,
    /// in order, and whether the refusal is about their key.
    #[doc(hidden)]
    pub fn refused_by<'l>(
        by: Limit,
        left: Duration,
        limits: impl Iterator<Item = (&'l Limit, bool)>,
    ) -> Self {
        let limits = limits.map(|(limit, is_refused)| {
            if !is_refused {
                return LimitOutcome::computed(LimitStatus::fresh(*limit));
            }
            let left = Some(left);
            let fresh = LimitStatus::fresh(by);
            LimitOutcome::Computed(ComputedStatus {
                instead: Some(Box::new(by)),
                ..ComputedStatus::of(LimitStatus {
                    remaining: 0,
                    window: left,
                    reset: left,
                    retry: left,
                    refused: true,
                    ..fresh
                })
            })
        });
        Self::new(Verdict::Refuse { retry_after: Some(left) }, limits.collect())
    }

    /// The verdict.
    #[inline]
    pub const fn verdict(&self) -> Verdict {
        match self.admitted {
            true => Verdict::Admit { wait: self.wait() },
            false if self.micros == NEVER => Verdict::Never,
            false => Verdict::Refuse { retry_after: self.retry_after() },
        }
    }

    /// Whether the request may go ahead, now or after [`wait`](Self::wait).
    #[inline]
    pub const fn is_admitted(&self) -> bool {
        self.admitted
    }

    /// Whether the request may go ahead now, and there is nothing to report of it.
    #[inline]
    #[doc(hidden)]
    pub const fn is_at_once(&self) -> bool {
        self.admitted && self.notes == 0 && self.micros == 0
    }

    /// Whether there is something to report of an admitted request: it is [shadowed](Self::is_shadowed) or
    /// [uncounted](Self::is_uncounted).
    #[inline]
    #[doc(hidden)]
    pub const fn has_notes(&self) -> bool {
        self.notes != 0
    }

    /// Whether a limit that is a [shadow](Limit::shadow) would have refused the request, or held it up.
    #[inline]
    pub const fn is_shadowed(&self) -> bool {
        self.notes & SHADOWED != 0
    }

    /// Whether the request was admitted without one of its limits, which the store had no room to count: see
    /// [`LimitStatus::uncounted`](super::LimitStatus::uncounted).
    #[inline]
    pub const fn is_uncounted(&self) -> bool {
        self.notes & UNCOUNTED != 0
    }

    /// Whether the limit at this index of the charge is such a shadow.
    #[doc(hidden)]
    pub fn shadows(&self, at: usize) -> bool {
        match &self.any {
            None => self.is_shadowed(),
            Some(limits) => limits.get(at).is_some_and(LimitOutcome::is_shadowed),
        }
    }

    /// Whether the limit at this place was not counted.
    #[doc(hidden)]
    pub fn leaves_out(&self, at: usize) -> bool {
        self.any
            .as_ref()
            .is_some_and(|limits| limits.get(at).is_some_and(LimitOutcome::is_uncounted))
    }

    /// The outcome for all limits of a charge, of one that was decided without some of them: `each` says of
    /// every limit, in order, what it is and costs, and how it was counted.
    #[doc(hidden)]
    pub fn filled_in<'l>(self, each: impl Iterator<Item = (&'l Limit, u64, CountedIn)>) -> Self {
        let verdict = self.verdict();
        let mut known = match self.any {
            None => vec![LimitOutcome::Deferred(self.one)],
            Some(limits) => *limits,
        }
        .into_iter();
        let limits = each.filter_map(|(limit, cost, counted)| match counted {
            CountedIn::OwnRow => known.next(),
            CountedIn::SharedRow => {
                known.next().map(|limit_outcome| limit_outcome.together(limit, cost))
            }
            CountedIn::Nowhere => Some(LimitOutcome::uncounted(*limit)),
        });
        Self::new(verdict, limits.collect())
    }

    /// How long an admitted request waits before it goes; zero for a refused one.
    #[inline]
    pub const fn wait(&self) -> Duration {
        Duration::from_micros(if self.admitted { self.micros } else { 0 })
    }

    /// Whether the request can never be admitted as it is: see [`Verdict::Never`].
    #[inline]
    pub const fn never_fits(&self) -> bool {
        !self.admitted && self.micros == NEVER
    }

    /// When a refused request would be admitted; `None` for an admitted one, for one that
    /// [never fits](Self::never_fits), and where that cannot be told.
    #[inline]
    pub const fn retry_after(&self) -> Option<Duration> {
        if self.admitted || self.micros >= UNKNOWN {
            return None;
        }
        Some(Duration::from_micros(self.micros))
    }

    /// The decision, given the limits that were charged and the cost of each. A `Charge` is such a list.
    pub fn decision<'l>(&self, debits: impl IntoIterator<Item = (&'l Limit, u64)>) -> Decision {
        let statuses =
            debits.into_iter().enumerate().filter_map(|(i, (limit, cost))| match &self.any {
                None => (i == 0).then(|| self.one.status(limit, cost)),
                Some(limits) => Some(limits.get(i)?.status(limit, cost)),
            });
        Decision::new(self.verdict(), statuses.collect())
    }

    /// What is left of the limit at this index of the charge, until when, and whether that is soft.
    #[doc(hidden)]
    pub fn left_of(&self, at: usize, limit: &Limit) -> (u64, Option<Duration>, bool) {
        left_in(&self.one, self.any.as_deref(), at, limit)
    }

    /// Whether a limit was decided by another limit, or by other numbers, than the one that was charged.
    #[doc(hidden)]
    #[inline]
    pub fn is_by_other_numbers(&self) -> bool {
        self.any.as_deref().is_some_and(|limits| limits.iter().any(LimitOutcome::is_by_other))
    }

    /// What remains of the limit at that index of the charge.
    #[inline]
    #[doc(hidden)]
    pub fn remaining_of(&self, at: usize, limit: &Limit) -> u64 {
        let deferred = match &self.any {
            None => self.one,
            Some(limits) => match limits.get(at) {
                Some(LimitOutcome::Computed(computed)) => return computed.remaining,
                Some(LimitOutcome::Deferred(deferred)) => *deferred,
                None => return limit.capacity(),
            },
        };
        deferred.remaining(limit)
    }

    /// What the store needs to give each charge back, in the order of what was owed.
    pub fn receipts(&self) -> impl Iterator<Item = Receipt> {
        let one = self.any.is_none().then(|| self.one.receipt());
        let any = self.any.iter().flat_map(|limits| limits.iter().map(LimitOutcome::receipt));
        one.into_iter().chain(any)
    }

    /// Whether it is of one limit whose state is two words, from which everything follows.
    #[doc(hidden)]
    pub const fn is_of_words(&self) -> bool {
        self.any.is_none()
    }

    /// Remembers that it was decided by a part of the limit, whose words are in this outcome.
    #[doc(hidden)]
    pub fn by_part(mut self, part: Part) -> Self {
        self.one.part = part.to_bits();
        self
    }

    /// Remembers which store of two has decided.
    #[doc(hidden)]
    pub fn passed_on(mut self, store: u8) -> Self {
        let pass = |via: &mut u8| *via = *via << 1 | store;
        pass(&mut self.one.via);
        for limit_outcome in self.any.iter_mut().flat_map(|limits| limits.iter_mut()) {
            match limit_outcome {
                LimitOutcome::Deferred(deferred) => pass(&mut deferred.via),
                LimitOutcome::Computed(computed) => pass(&mut computed.receipt.via),
            }
        }
        self
    }
}

/// What is left of the limit at an index, of outcomes that are about `any` limits, or about `one`.
fn left_in(
    one: &DeferredStatus,
    any: Option<&Vec<LimitOutcome>>,
    at: usize,
    limit: &Limit,
) -> (u64, Option<Duration>, bool) {
    let Some(limits) = any else { return one.left(limit) };
    match limits.get(at) {
        Some(LimitOutcome::Computed(computed)) => {
            (computed.remaining, computed.window, computed.soft)
        }
        Some(LimitOutcome::Deferred(deferred)) => deferred.left(limit),
        None => (limit.capacity(), Some(Duration::ZERO), false),
    }
}

impl From<PlainOutcome> for Outcome {
    #[inline]
    fn from(PlainOutcome { status, micros }: PlainOutcome) -> Self {
        let admitted = status.role == Role::Charged;
        Self { admitted, notes: 0, micros, one: status, any: None }
    }
}

/// Where a store has counted what was owed to a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedIn {
    /// In the key's own row.
    OwnRow,
    /// In a row that several keys share.
    SharedRow,
    /// Nowhere: there was no room.
    Nowhere,
}
