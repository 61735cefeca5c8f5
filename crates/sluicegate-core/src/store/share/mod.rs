//! A share is not a smaller limit by the same name. [`Share`] scales counts and reports the status of its
//! limits itself, because the words of the part mean something else than those of the whole. Row identities
//! of the two may agree, so a share has a store of its own.

mod live;

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

pub use self::live::LiveShare;
use crate::clock::Clock;
use crate::limit::{
    Limit, LimitError, LimitInternals as _, LimitStatus, Outcome, Receipt, Verdict,
};
use crate::store::charge::{Charge, Debit};
use crate::store::contract::delegate;
use crate::store::{Answer, AtOnce, Store, StoreError};

/// A store that admits a fixed part of every limit: for each of several processes that decide on their own.
///
/// Counts, bursts and queues are scaled, rounded down, and at least 1; times stay as they are. A cost that
/// is more than the part holds is refused. Remaining amounts are those of the part. Names and policies are those of the
/// whole limit.
///
/// The inner store must not be used for anything else, because its counts belong to the parts and not to the whole
/// limits.
///
/// Four processes share their limits in another store. While that store fails, they admit together no more than the
/// whole limits, as long as each limit is at least 4. [`Fallback`](crate::store::Fallback) says how this adds to what
/// was admitted before:
///
/// ```
/// use sluicegate::{Limit, Memory};
/// use sluicegate::adapter::Charge;
/// use sluicegate::key::KeyBuf;
/// use sluicegate::store::{Fallback, Share, Store};
///
/// # let shared = Memory::new();
/// let alone = Share::new(Memory::new(), 1, 4);
/// let charge = Charge::of(Limit::per_minute(100), KeyBuf::new(), 1);
/// let sluicegate::adapter::Answer::Now(outcome) = alone.take(&charge) else { unreachable!() };
/// assert_eq!(outcome?.decision(&charge).remaining(), Some(24));
///
/// let store = Fallback(shared, alone);
/// # let _ = store;
/// # Ok::<(), sluicegate::store::StoreError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Share<S> {
    store: S,
    parts: u64,
    of: u64,
}

impl<S> Share<S> {
    /// A store that admits the part `parts / of` of every limit, counted in `store`.
    ///
    /// # Panics
    ///
    /// If the part is nothing, or more than the whole.
    #[track_caller]
    pub const fn new(store: S, parts: u64, of: u64) -> Self {
        assert!(parts > 0, "a share of nothing would admit nothing");
        assert!(parts <= of, "a share is not more than the whole");
        Self { store, parts, of }
    }

    fn debit(&self, debit: &Debit) -> Result<Debit, LimitError> {
        Ok(Debit { limit: debit.limit.try_share(self.parts, self.of)?, ..debit.clone() })
    }

    fn charge(&self, whole: &Charge) -> Result<Charge, LimitError> {
        whole.with_each(|debit| self.debit(debit))
    }
}

impl<S: Store> Share<S> {
    fn ask(
        &self,
        whole: &Charge,
        ask: impl FnOnce(&S, &Charge) -> Answer<S::Future>,
    ) -> Answer<ShareFuture<S>> {
        let charge = match self.charge(whole) {
            Ok(charge) => charge,
            Err(reason) => return Answer::Now(Err(StoreError::unsupported(reason))),
        };
        match ask(&self.store, &charge) {
            Answer::Now(outcome) => {
                Answer::Now(outcome.map(|outcome| told(&outcome, &charge, whole.never_fits())))
            }
            Answer::Later(future) => Answer::Later(ShareFuture {
                future: Box::pin(future),
                charge: Box::new(charge),
                never_fits: whole.never_fits(),
            }),
        }
    }
}

/// The whole limit cannot interpret the words of the part, so the status is reported by the part.
///
/// A cost that is too large only for the part is refused without a time, because it is unknown when the whole limit
/// is available again.
fn told(outcome: &Outcome, charge: &Charge, never_fits: bool) -> Outcome {
    let decision = outcome.decision(charge);
    let verdict = match outcome.verdict() {
        Verdict::Never if !never_fits => Verdict::Refuse { retry_after: None },
        verdict => verdict,
    };
    Outcome::from_parts(verdict, decision.statuses().cloned())
}

impl<S: Store> Store for Share<S> {
    type Future = ShareFuture<S>;

    fn take(&self, charge: &Charge) -> Answer<Self::Future> {
        self.ask(charge, |store, charge| store.take(charge))
    }

    fn peek(&self, charge: &Charge) -> Answer<Self::Future> {
        self.ask(charge, |store, charge| store.peek(charge))
    }

    fn reset(&self, charge: &Charge) -> Answer<Self::Future> {
        self.ask(charge, |store, charge| store.reset(charge))
    }

    fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) {
        if let Ok(debit) = self.debit(debit) {
            self.store.settle(&debit, receipt, spent);
        }
    }

    fn follow(&self, debit: &Debit, charged: u64, spent: u64) {
        if let Ok(debit) = self.debit(debit) {
            self.store.follow(&debit, charged, spent);
        }
    }

    fn follow_status(&self, debit: &Debit, status: &LimitStatus) {
        if let Ok(debit) = self.debit(debit) {
            self.store.follow_status(&debit, status);
        }
    }

    delegate!(self => self.store; clock);

    fn check(&self, limit: &Limit) -> Result<(), LimitError> {
        self.store.check(&limit.try_share(self.parts, self.of)?)
    }
}

/// The outcome from a [`Share`] that has to be awaited.
pub struct ShareFuture<S: Store> {
    future: Pin<Box<S::Future>>,
    charge: Box<Charge>,
    /// Whether the whole limit can never admit it either.
    never_fits: bool,
}

impl<S: Store> Future for ShareFuture<S> {
    type Output = Result<Outcome, StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = self.future.as_mut().poll(cx);
        polled.map(|outcome| outcome.map(|outcome| told(&outcome, &self.charge, self.never_fits)))
    }
}

impl<S: Store<Future: AtOnce>> AtOnce for ShareFuture<S> {
    fn outcome(self) -> Result<Outcome, StoreError> {
        let outcome = Pin::into_inner(self.future).outcome();
        outcome.map(|outcome| told(&outcome, &self.charge, self.never_fits))
    }
}

impl<S: Store> fmt::Debug for ShareFuture<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ShareFuture")
    }
}

#[cfg(test)]
mod tests;
