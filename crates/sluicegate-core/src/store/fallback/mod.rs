//! The second store follows the first. A [`Fallback`] tells its second store, if that is in the process,
//! what the first store charged and gave back (`Store::follow`). Otherwise both would drain all the time
//! while each is asked half of the time: a server that came and went every 200 ms admitted twice the rate.
//! A part of a bucket follows up to twice its size, because after an outage the first store admits a whole
//! burst, and that is more than drains in the part. It follows no further, so that a process with most of
//! the work waits for its part no longer than for a burst. So in any interval `rate × time + 2 × burst` is
//! admitted if requests are spread evenly: one of the bursts is that of the store that was away and has
//! drained. No minimum stay is needed.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::clock::Clock;
use crate::limit::{Limit, LimitError, LimitStatus, Outcome, OutcomeInternals as _, Receipt};
use crate::store::charge::{Charge, Debit};
use crate::store::contract::delegate;
use crate::store::{Answer, AtOnce, Store, StoreError};

/// A store made of two: the second decides what the first cannot.
///
/// While the first store fails, the second counts on its own. If several processes share one first store, a
/// [`Share`](crate::store::Share) gives the second store of each a part of every limit. A first store in another
/// process needs a deadline of its own, shorter than the layer's, because the second is asked when the first has
/// failed, not while it hangs. [`reset`](Store::reset) reaches the store that answers, not both.
///
/// # What is admitted
///
/// A second store in this process [follows](Store::follow) the first: what this process was admitted by the
/// first counts in the second as well, so it does not begin with a fresh burst. It also hears with each answer
/// [how much all processes have used](Store::follow_status), so that the share of a process that was refused is as
/// empty as that of the one that was admitted. Where requests are spread evenly over the processes, all of them
/// together admit at most `rate × time + 2 × burst` in any interval, however long the first store is away, and
/// however often it comes and goes; of a window, at most twice the count. Requests that are spread by chance can
/// add some per cent of the rate. In exchange, a key that has used its whole burst is admitted nothing by the
/// second store for the time in which a burst comes back: the first has that burst to give when it returns.
/// A process that loses the first store while others still reach it adds its own share to that, for as
/// long as it lasts. What is [held](crate::Limit::concurrent) is counted in each store by itself, so up to twice
/// the limit can be held.
///
/// # When the first store is full
///
/// A first store that has no room for any of a request's limits fails, and the second decides. If it has room for
/// some of them, it fails where a limit without room does not [admit](crate::limit::WhenFull::Admit) new keys and
/// the others would. Otherwise it decides with those others, and the second store is not asked about the rest: two
/// stores cannot charge the limits of one request all or none. [`peek`](Store::peek) needs no room, so it shows a
/// new key as the first store sees it.
///
/// ```
/// use sluicegate::Memory;
/// use sluicegate::store::Fallback;
///
/// let store = Fallback(Memory::with_capacity(1_000), Memory::with_capacity(10_000));
/// ```
///
/// Two stores in this process answer at once, and so does what is made of them:
///
/// ```
/// use sluicegate::{Limit, Memory};
/// use sluicegate::adapter::Charge;
/// use sluicegate::key::KeyBuf;
/// use sluicegate::store::{Fallback, Store};
///
/// let store = Fallback(Memory::with_capacity(1_000), Memory::with_capacity(10_000));
/// let charge = Charge::of(Limit::per_minute(5), KeyBuf::of("alice"), 1);
/// assert!(store.take(&charge).now()?.is_admitted());
/// # Ok::<(), sluicegate::store::StoreError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Fallback<A, B>(pub A, pub B);

/// What a store is asked.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ask {
    Take,
    Peek,
    Reset,
}

impl<A, B> Store for Fallback<A, B>
where
    A: Store,
    B: Store + Clone,
{
    type Future = FallbackFuture<A, B>;

    fn take(&self, charge: &Charge) -> Answer<Self::Future> {
        self.ask(Ask::Take, charge)
    }

    fn peek(&self, charge: &Charge) -> Answer<Self::Future> {
        self.ask(Ask::Peek, charge)
    }

    fn reset(&self, charge: &Charge) -> Answer<Self::Future> {
        self.ask(Ask::Reset, charge)
    }

    fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) {
        let mut inner = *receipt;
        // One bit for each fallback that the charge has passed, that of the outermost in the lowest place. So nested
        // ones each read their own.
        inner.via >>= 1;
        match receipt.via & 1 {
            0 => {
                self.0.settle(debit, &inner, spent);
                if !receipt.is_void() {
                    // The second store followed the charge, so it follows what is given back. Otherwise it would get
                    // fuller with each failed request.
                    self.1.follow(debit, debit.cost, spent);
                }
            }
            _ => self.1.settle(debit, &inner, spent),
        }
    }

    fn follow(&self, debit: &Debit, charged: u64, spent: u64) {
        self.0.follow(debit, charged, spent);
        self.1.follow(debit, charged, spent);
    }

    fn follow_status(&self, debit: &Debit, status: &LimitStatus) {
        self.0.follow_status(debit, status);
        self.1.follow_status(debit, status);
    }

    delegate!(self => self.0; clock);

    fn check(&self, limit: &Limit) -> Result<(), LimitError> {
        self.0.check(limit)?;
        self.1.check(limit)
    }
}

impl<A: Store, B: Store + Clone> Fallback<A, B> {
    fn ask(&self, ask: Ask, charge: &Charge) -> Answer<FallbackFuture<A, B>> {
        match ask.of(&self.0, charge) {
            Answer::Now(Ok(outcome)) => {
                ask.followed(&self.1, charge, &outcome);
                Answer::Now(Ok(outcome.passed_on(0)))
            }
            Answer::Now(Err(_)) => match ask.of(&self.1, charge) {
                Answer::Now(outcome) => Answer::Now(outcome.map(|outcome| outcome.passed_on(1))),
                Answer::Later(future) => Answer::Later(FallbackFuture::second(future)),
            },
            Answer::Later(future) => Answer::Later(FallbackFuture {
                state: Asking::First {
                    future: Box::pin(future),
                    ask,
                    charge: Box::new(charge.clone()),
                    second: self.1.clone(),
                },
            }),
        }
    }
}

impl Ask {
    pub(super) fn of<S: Store>(self, store: &S, charge: &Charge) -> Answer<S::Future> {
        match self {
            Self::Take => store.take(charge),
            Self::Peek => store.peek(charge),
            Self::Reset => store.reset(charge),
        }
    }

    /// Tells the second store what the first has charged.
    fn followed<S: Store>(self, second: &S, charge: &Charge, outcome: &Outcome) {
        if !matches!(self, Self::Take) {
            return;
        }
        if outcome.is_admitted() {
            for (debit, receipt) in charge.debits().zip(outcome.receipts()) {
                if !receipt.is_void() {
                    second.follow(debit, 0, debit.cost);
                }
            }
        }
        // Refusals too, and those above all: a process that was refused knows from this alone that others have spent.
        for (debit, status) in charge.debits().zip(outcome.decision(charge).statuses()) {
            second.follow_status(debit, status);
        }
    }
}

/// The outcome from a [`Fallback`] that has to be awaited.
pub struct FallbackFuture<A: Store, B: Store> {
    state: Asking<A, B>,
}

enum Asking<A: Store, B: Store> {
    First { future: Pin<Box<A::Future>>, ask: Ask, charge: Box<Charge>, second: B },
    Second(Pin<Box<B::Future>>),
}

impl<A: Store, B: Store> FallbackFuture<A, B> {
    fn second(future: B::Future) -> Self {
        Self { state: Asking::Second(Box::pin(future)) }
    }
}

/// Nothing in it is pinned in place: the stores' futures are boxed.
impl<A: Store, B: Store> Unpin for FallbackFuture<A, B> {}

impl<A: Store, B: Store> Future for FallbackFuture<A, B> {
    type Output = Result<Outcome, StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            match &mut self.state {
                Asking::First { future, ask, charge, second } => match future.as_mut().poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(outcome)) => {
                        ask.followed(second, charge, &outcome);
                        return Poll::Ready(Ok(outcome.passed_on(0)));
                    }
                    Poll::Ready(Err(_)) => match ask.of(second, charge) {
                        Answer::Now(outcome) => {
                            return Poll::Ready(outcome.map(|outcome| outcome.passed_on(1)));
                        }
                        Answer::Later(future) => self.state = Asking::Second(Box::pin(future)),
                    },
                },
                Asking::Second(future) => {
                    return future
                        .as_mut()
                        .poll(cx)
                        .map(|outcome| outcome.map(|outcome| outcome.passed_on(1)));
                }
            }
        }
    }
}

impl<A, B> AtOnce for FallbackFuture<A, B>
where
    A: Store<Future: AtOnce>,
    B: Store<Future: AtOnce>,
{
    fn outcome(self) -> Result<Outcome, StoreError> {
        let (ask, charge, second) = match self.state {
            Asking::Second(future) => {
                let outcome = Pin::into_inner(future).outcome();
                return outcome.map(|outcome| outcome.passed_on(1));
            }
            Asking::First { future, ask, charge, second } => {
                if let Ok(outcome) = Pin::into_inner(future).outcome() {
                    ask.followed(&second, &charge, &outcome);
                    return Ok(outcome.passed_on(0));
                }
                (ask, charge, second)
            }
        };
        ask.of(&second, &charge).now().map(|outcome| outcome.passed_on(1))
    }
}

impl<A: Store, B: Store> fmt::Debug for FallbackFuture<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FallbackFuture")
    }
}

#[cfg(test)]
mod tests;
