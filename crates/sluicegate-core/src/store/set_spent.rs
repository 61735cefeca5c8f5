use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use crate::limit::Outcome;
use crate::store::charge::Charge;
use crate::store::{Answer, AtOnce, Store, StoreError};

/// How often it begins again if another charge comes between its steps.
const TURNS: u8 = 4;

const POLLED_AGAIN: &str = "a future is not polled again once it is ready";

/// Sets what a key has spent: returned by `Limiter::set_spent` and [`Blocks::block`](crate::store::Blocks::block).
///
/// It begins when it is made. A store in this process has then done it already ([`now`](Self::now) returns the
/// result). With a remote store, await it.
///
/// # Errors
///
/// If the store fails, has no room for the key, or others keep charging the key meanwhile. What was spent may then be
/// forgotten.
#[must_use = "await it, or ask `now()` whether the store did it"]
pub struct SetSpent<S: Store> {
    store: S,
    /// Owes nothing yet, to each limit.
    charge: Charge,
    amount: u64,
    turns: u8,
    step: Option<Step<S::Future>>,
}

enum Step<F> {
    Reset(Pin<Box<F>>),
    Take(Pin<Box<F>>),
    Done(Result<(), StoreError>),
}

impl<S: Store> SetSpent<S> {
    /// Forgets what was spent on the limits and keys of `charge`, whose costs must be 0, and charges `amount` to each.
    pub fn new(store: S, charge: Charge, amount: u64) -> Self {
        let mut setting = Self { store, charge, amount, turns: TURNS, step: None };
        let is_empty = setting.charge.is_empty();
        setting.step = Some(if is_empty { Step::Done(Ok(())) } else { setting.reset() });
        setting
    }

    fn reset(&mut self) -> Step<S::Future> {
        match self.store.reset(&self.charge) {
            Answer::Now(outcome) => self.was_reset(outcome),
            Answer::Later(future) => Step::Reset(Box::pin(future)),
        }
    }

    fn was_reset(&mut self, outcome: Result<Outcome, StoreError>) -> Step<S::Future> {
        match outcome {
            Err(error) => Step::Done(Err(error)),
            Ok(_) if self.amount == 0 => Step::Done(Ok(())),
            Ok(_) => match self.store.take(&self.charge) {
                Answer::Now(outcome) => self.was_taken(outcome),
                Answer::Later(future) => Step::Take(Box::pin(future)),
            },
        }
    }

    fn was_taken(&mut self, outcome: Result<Outcome, StoreError>) -> Step<S::Future> {
        match outcome {
            Err(error) => Step::Done(Err(error)),
            Ok(outcome) if outcome.is_admitted() => {
                for (debit, receipt) in self.charge.debits().zip(outcome.receipts()) {
                    self.store.settle(debit, &receipt, self.amount);
                }
                Step::Done(if outcome.is_uncounted() { Err(StoreError::full()) } else { Ok(()) })
            }
            // Another request has charged more than the limit since the reset.
            Ok(_) if self.turns > 0 => {
                self.turns -= 1;
                self.reset()
            }
            Ok(_) => Step::Done(Err(StoreError::unavailable("others charge the key meanwhile"))),
        }
    }
}

impl<S: Store<Future: AtOnce>> SetSpent<S> {
    /// The result, if the store is in this process.
    ///
    /// # Errors
    ///
    /// As when it is awaited.
    ///
    /// # Panics
    ///
    /// If it has been awaited before.
    pub fn now(mut self) -> Result<(), StoreError> {
        loop {
            let next = match self.step.take().expect(POLLED_AGAIN) {
                Step::Reset(future) => self.was_reset(Pin::into_inner(future).outcome()),
                Step::Take(future) => self.was_taken(Pin::into_inner(future).outcome()),
                Step::Done(result) => return result,
            };
            self.step = Some(next);
        }
    }
}

/// Nothing in it is pinned in place: the store's futures are boxed.
impl<S: Store> Unpin for SetSpent<S> {}

impl<S: Store> Future for SetSpent<S> {
    type Output = Result<(), StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let next = match self.step.as_mut().expect(POLLED_AGAIN) {
                Step::Reset(future) => {
                    let outcome = ready!(future.as_mut().poll(cx));
                    self.was_reset(outcome)
                }
                Step::Take(future) => {
                    let outcome = ready!(future.as_mut().poll(cx));
                    self.was_taken(outcome)
                }
                Step::Done(_) => {
                    let Some(Step::Done(result)) = self.step.take() else { unreachable!() };
                    return Poll::Ready(result);
                }
            };
            self.step = Some(next);
        }
    }
}

impl<S: Store> fmt::Debug for SetSpent<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SetSpent")
    }
}
