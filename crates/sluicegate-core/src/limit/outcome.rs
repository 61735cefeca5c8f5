//! What a store answers, and the decision that is made of it when somebody asks.
//!
//! An outcome is not a decision. An [`Outcome`] has 56 bytes: the verdict, the two words of the row, and
//! the time. A [`Decision`] says how the key stands with each limit and holds the limits, 330 bytes. It is
//! made when a handler, a header field or a refusal asks for it. When both were one type, most of a
//! decision's time went into building and moving an account that nobody read.
//!
//! To give back exactly, a decision carries what the store wrote, as an opaque receipt. It holds an instant
//! of the store's clock that nobody else can read, so no instant leaves a store in public.

use std::time::Duration;

use super::decide::{Role, Verdict};
use super::state::Receipt;
use super::step::StepResult;
use super::{Decision, Earliest, Limit, LimitStatus, Words};
use crate::store::charge::{Charge, Debit};

/// What a store answers: the verdict, and what it takes to say how the key stands with each limit.
///
/// Small, because every request has one; what there is to tell of it is worked out when somebody asks,
/// by [`decision`](Self::decision).
///
/// ```
/// use sluicegate::{Limit, Memory};
/// use sluicegate::adapter::Charge;
/// use sluicegate::key::KeyBuf;
/// use sluicegate::store::Store;
///
/// let store = Memory::new();
/// let charge = Charge::of(Limit::per_minute(2), KeyBuf::new(), 1);
/// let outcome = store.take(&charge).now()?;
/// assert!(outcome.is_admitted());
/// assert_eq!(outcome.decision(&charge).remaining(), Some(1));
/// # Ok::<(), sluicegate::store::StoreError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    admitted: bool,
    /// What there is to report of a request that is admitted: [`SHADOWED`], [`UNCOUNTED`].
    notes: u8,
    /// Microseconds until it goes, if it is admitted; else until it may come again, [`UNKNOWN`] or [`NEVER`].
    micros: u64,
    /// Of the one limit whose state is two words: most requests owe to one.
    one: DeferredStatus,
    /// Of whatever else it is: any number of limits, or one that remembers more.
    #[expect(clippy::box_collection, reason = "one word, because it is nearly always empty")]
    any: Option<Box<Vec<LimitOutcome>>>,
}

/// A shadow would not have admitted it.
const SHADOWED: u8 = 1;

/// A limit was not counted.
const UNCOUNTED: u8 = 2;

/// Nobody can tell when. Every time is less: it is exact in a double.
const UNKNOWN: u64 = u64::MAX - 1;

/// However long it waits: the cost is more than a limit ever allows.
const NEVER: u64 = u64::MAX;

/// What is known of one limit, once the request has been decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LimitOutcome {
    Deferred(DeferredStatus),
    Computed(ComputedStatus),
}

/// The two words as they are now: everything follows from them.
///
/// Plain numbers, so that each is written once, where the outcome is returned: what is written in one
/// size and read in another makes a processor wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct DeferredStatus {
    first: u64,
    second: u64,
    now: u64,
    role: Role,
    via: u8,
}

/// What was worked out while the state was at hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ComputedStatus {
    remaining: u64,
    window: Option<Duration>,
    reset: Option<Duration>,
    retry: Option<Duration>,
    charged: u64,
    refused: bool,
    shadowed: bool,
    uncounted: bool,
    together: bool,
    soft: bool,
    banned: bool,
    /// Decided by this limit instead of the one that was charged.
    instead: Option<Box<Limit>>,
    pub(super) receipt: Receipt,
}

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

    /// What becomes of a request that owes nothing.
    pub fn free() -> Self {
        Self::new(Verdict::Admit { wait: Duration::ZERO }, Vec::new())
    }

    /// An outcome worked out elsewhere: for stores that do not decide by [`decide`](super::decide). The
    /// standings are those of what the charge owes, in that order.
    pub fn from_parts(verdict: Verdict, statuses: impl IntoIterator<Item = LimitStatus>) -> Self {
        Self::new(verdict, statuses.into_iter().map(LimitOutcome::computed).collect())
    }

    /// The refusal of a charge by `limit`, which was asked before what is owed, for those keys that `is_meant` says.
    pub(crate) fn blocked(
        left: Duration,
        limit: Limit,
        charge: &Charge,
        is_meant: impl Fn(&Debit) -> bool,
    ) -> Self {
        let limits = charge.debits().map(|debit| {
            if !is_meant(debit) {
                return LimitOutcome::computed(LimitStatus::fresh(debit.limit));
            }
            let left = Some(left);
            let fresh = LimitStatus::fresh(limit);
            LimitOutcome::Computed(ComputedStatus {
                instead: Some(Box::new(limit)),
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
    pub(crate) const fn is_at_once(&self) -> bool {
        self.admitted && self.notes == 0 && self.micros == 0
    }

    /// Whether there is something to report of an admitted request: it is [shadowed](Self::is_shadowed) or
    /// [uncounted](Self::is_uncounted).
    #[inline]
    pub(crate) const fn has_notes(&self) -> bool {
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

    /// Whether the limit that was charged at this place is such a one.
    #[cfg(feature = "metrics")]
    pub(crate) fn shadows(&self, at: usize) -> bool {
        match &self.any {
            None => self.is_shadowed(),
            Some(limits) => limits.get(at).is_some_and(LimitOutcome::is_shadowed),
        }
    }

    /// Whether the limit at this place was not counted.
    #[cfg(feature = "metrics")]
    pub(crate) fn leaves_out(&self, at: usize) -> bool {
        self.any
            .as_ref()
            .is_some_and(|limits| limits.get(at).is_some_and(LimitOutcome::is_uncounted))
    }

    /// The outcome for all limits of a charge, of one that was decided without some of them: `each` says of
    /// every limit, in order, what it is and costs, and how it was counted.
    pub(crate) fn filled_in<'l>(
        self,
        each: impl Iterator<Item = (&'l Limit, u64, CountedIn)>,
    ) -> Self {
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

    /// Tells how the key stands with each limit of the charge that this is the outcome of.
    pub fn decision(&self, charge: &Charge) -> Decision {
        self.about(charge.debits().map(|debit| (&debit.limit, debit.cost)))
    }

    /// The same for the limits that were charged, and what they were charged.
    pub(crate) fn about<'l>(&self, debit: impl Iterator<Item = (&'l Limit, u64)>) -> Decision {
        let statuses = debit.enumerate().filter_map(|(i, (limit, cost))| match &self.any {
            None => (i == 0).then(|| self.one.status(limit, cost)),
            Some(limits) => Some(limits.get(i)?.status(limit, cost)),
        });
        Decision::new(self.verdict(), statuses.collect())
    }

    /// What is left of the one limit that was charged, until when, and whether that is soft.
    #[inline]
    pub(crate) fn left(&self, limit: &Limit) -> (u64, Option<Duration>, bool) {
        self.left_of(0, limit)
    }

    /// The same of the limit that was charged in that place.
    pub(crate) fn left_of(&self, at: usize, limit: &Limit) -> (u64, Option<Duration>, bool) {
        match &self.any {
            None => limit.left([self.one.first, self.one.second], self.one.now),
            Some(limits) => match limits.get(at) {
                Some(LimitOutcome::Computed(computed)) => {
                    (computed.remaining, computed.window, computed.soft)
                }
                Some(LimitOutcome::Deferred(deferred)) => {
                    limit.left([deferred.first, deferred.second], deferred.now)
                }
                None => (limit.capacity(), Some(Duration::ZERO), false),
            },
        }
    }

    /// What remains of the limit that was charged in that place.
    #[cfg(feature = "metrics")]
    #[inline]
    pub(crate) fn remaining_of(&self, at: usize, limit: &Limit) -> u64 {
        let deferred = match &self.any {
            None => self.one,
            Some(limits) => match limits.get(at) {
                Some(LimitOutcome::Computed(computed)) => return computed.remaining,
                Some(LimitOutcome::Deferred(deferred)) => *deferred,
                None => return limit.capacity(),
            },
        };
        limit.remaining_of([deferred.first, deferred.second], deferred.now)
    }

    /// What the store needs to give each charge back, in the order of what was owed.
    pub fn receipts(&self) -> impl Iterator<Item = Receipt> {
        let one = self.any.is_none().then(|| self.one.receipt());
        let any = self.any.iter().flat_map(|limits| limits.iter().map(LimitOutcome::receipt));
        one.into_iter().chain(any)
    }

    /// Remembers which store of two has decided.
    pub(crate) fn passed_on(mut self, store: u8) -> Self {
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

/// The outcome for one [plain](super::Plain) limit, in plain numbers that stay in registers.
#[derive(Clone, Copy)]
pub(crate) struct PlainOutcome {
    status: DeferredStatus,
    micros: u64,
}

impl PlainOutcome {
    /// What came of a step at `now`, from words as they were `before`.
    #[inline]
    pub(crate) fn new(result: StepResult, before: Words, now: u64) -> Self {
        let ([first, second], micros, role) = match result {
            StepResult::Admit { words, .. } => (words, 0, Role::Charged),
            StepResult::Refuse(Earliest::At(delay)) => (before, delay, Role::Refused(true)),
            StepResult::Refuse(Earliest::Unknown) => (before, UNKNOWN, Role::Refused(true)),
            StepResult::Refuse(Earliest::Never) => (before, NEVER, Role::Refused(true)),
        };
        Self { status: DeferredStatus { first, second, now, role, via: 0 }, micros }
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
pub(crate) enum CountedIn {
    /// In the key's own row.
    OwnRow,
    /// In a row that several keys share.
    SharedRow,
    /// Nowhere: there was no room.
    Nowhere,
}

impl LimitOutcome {
    /// Of a limit whose state is two words.
    pub(super) fn of_words([first, second]: Words, now: u64, role: Role) -> Self {
        Self::Deferred(DeferredStatus { first, second, now, role, via: 0 })
    }

    pub(super) fn words(&self) -> Option<Words> {
        match self {
            Self::Deferred(deferred) => Some([deferred.first, deferred.second]),
            Self::Computed(_) => None,
        }
    }

    /// Of a limit that remembers more.
    pub(super) fn computed(status: LimitStatus) -> Self {
        Self::Computed(ComputedStatus::of(status))
    }
    fn is_shadowed(&self) -> bool {
        match self {
            Self::Deferred(deferred) => deferred.role == Role::Shadowed,
            Self::Computed(computed) => computed.shadowed,
        }
    }

    fn is_uncounted(&self) -> bool {
        matches!(self, Self::Computed(ComputedStatus { uncounted: true, .. }))
    }

    /// Of a limit that had no part in the decision.
    fn uncounted(limit: Limit) -> Self {
        let receipt = Receipt { void: true, ..Receipt::default() };
        Self::computed(LimitStatus { uncounted: true, receipt, ..LimitStatus::fresh(limit) })
    }

    /// The same of a charge to a row that several keys share.
    fn together(self, limit: &Limit, cost: u64) -> Self {
        let mut status = self.status(limit, cost);
        status.together = true;
        status.receipt.together = true;
        Self::computed(status)
    }

    fn receipt(&self) -> Receipt {
        match self {
            Self::Deferred(deferred) => deferred.receipt(),
            Self::Computed(computed) => computed.receipt,
        }
    }

    pub(super) fn status(&self, limit: &Limit, cost: u64) -> LimitStatus {
        match self {
            Self::Deferred(deferred) => deferred.status(limit, cost),
            Self::Computed(computed) => LimitStatus {
                limit: computed.instead.as_deref().map_or(*limit, |instead| *instead),
                remaining: computed.remaining,
                window: computed.window,
                reset: computed.reset,
                charged: computed.charged,
                refused: computed.refused,
                shadowed: computed.shadowed,
                uncounted: computed.uncounted,
                together: computed.together,
                retry: computed.retry,
                soft: computed.soft,
                banned: computed.banned,
                receipt: computed.receipt,
            },
        }
    }
}

impl ComputedStatus {
    fn of(status: LimitStatus) -> Self {
        Self {
            remaining: status.remaining,
            window: status.window,
            reset: status.reset,
            retry: status.retry,
            charged: status.charged,
            refused: status.refused,
            shadowed: status.shadowed,
            uncounted: status.uncounted,
            together: status.together,
            soft: status.soft,
            banned: status.banned,
            instead: None,
            receipt: status.receipt,
        }
    }
}

impl DeferredStatus {
    /// What was written is what stands there; where nothing was charged, nothing can be given back.
    fn receipt(&self) -> Receipt {
        let words = if self.role == Role::Charged { [self.first, self.second] } else { [0; 2] };
        let void = self.role == Role::Shadowed;
        Receipt { via: self.via, void, ..Receipt::from_words(words) }
    }

    fn status(&self, limit: &Limit, cost: u64) -> LimitStatus {
        let words = [self.first, self.second];
        let mut status = limit.status_of_words(words, self.now);
        if self.role.is_refused() {
            status.retry = limit.retry_of_words(words, self.now, cost);
        }
        status.receipt = self.receipt();
        status.charged = if self.role == Role::Charged { cost } else { 0 };
        status.refused = self.role == Role::Refused(true);
        status.shadowed = self.role == Role::Shadowed;
        status
    }
}
