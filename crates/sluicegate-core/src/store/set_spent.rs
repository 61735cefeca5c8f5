use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::limit::{Limit, LimitStatus, Outcome, Receipt};
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
/// If the store fails, has no room for the key, has not written the amount, or others keep charging the key meanwhile. What
/// was spent may then be forgotten.
#[must_use = "await it, or ask `now()` whether the store did it"]
pub struct SetSpent<S: Store> {
    store: S,
    /// Owes nothing yet, to each limit.
    charge: Charge,
    amount: u64,
    turns: u8,
    /// When the amount was sent to a store elsewhere, by the store's clock.
    sent: u64,
    step: Option<Step<S::Future>>,
}

enum Step<F> {
    Reset(Pin<Box<F>>),
    Take(Pin<Box<F>>),
    /// Whether the amount is there. Settlements tell nobody when they are lost.
    Look(Pin<Box<F>>),
    Done(Result<(), StoreError>),
}

impl<S: Store> SetSpent<S> {
    /// Forgets what was spent on the limits and keys of `charge`, whose costs must be 0, and charges `amount` to each.
    pub fn new(store: S, charge: Charge, amount: u64) -> Self {
        let mut setting = Self { store, charge, amount, turns: TURNS, sent: 0, step: None };
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
                Answer::Now(outcome) => self.was_taken(outcome, Place::Here),
                Answer::Later(future) => Step::Take(Box::pin(future)),
            },
        }
    }

    fn was_taken(&mut self, outcome: Result<Outcome, StoreError>, place: Place) -> Step<S::Future> {
        match outcome {
            Err(error) => Step::Done(Err(error)),
            Ok(outcome) if outcome.is_admitted() => {
                // Before it is sent: from then on, it may recover.
                self.sent = self.store.clock().now();
                for (debit, receipt) in self.charge.debits().zip(outcome.receipts()) {
                    self.store.settle(debit, &receipt, self.amount);
                }
                match place {
                    _ if outcome.is_uncounted() => Step::Done(Err(StoreError::full())),
                    Place::Here => Step::Done(Ok(())),
                    Place::Elsewhere => self.look(),
                }
            }
            // Another request has charged more than the limit since the reset.
            Ok(_) if self.turns > 0 => {
                self.turns -= 1;
                self.reset()
            }
            Ok(_) => Step::Done(Err(StoreError::unavailable("others charge the key meanwhile"))),
        }
    }

    fn look(&self) -> Step<S::Future> {
        match self.store.peek(&self.charge) {
            Answer::Now(outcome) => self.was_seen(outcome),
            Answer::Later(future) => Step::Look(Box::pin(future)),
        }
    }

    /// It is not sent again: if it only comes late, it would be charged twice.
    fn was_seen(&self, outcome: Result<Outcome, StoreError>) -> Step<S::Future> {
        let is_missing = |outcome: &Outcome| {
            let decision = outcome.decision(&self.charge);
            let mut known = self.charge.debits().zip(decision.statuses());
            known.any(|(debit, status)| {
                let is_fresh = status.remaining == LimitStatus::fresh(debit.limit).remaining
                    && status.reset.is_none_or(|reset| reset.is_zero());
                is_fresh && self.lasts(&debit.limit)
            })
        };
        Step::Done(match outcome {
            Ok(outcome) if is_missing(&outcome) => {
                Err(StoreError::unavailable("the store has not written what was spent"))
            }
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        })
    }

    /// Whether the limit cannot have recovered from the amount since it was sent.
    fn lasts(&self, limit: &Limit) -> bool {
        let mut state = limit.fresh();
        limit.settle(&mut state, self.sent, &Receipt::default(), 0, self.amount);
        let passed = Duration::from_micros(self.store.clock().now().saturating_sub(self.sent));
        limit.fresh_in(&state, self.sent).is_some_and(|lasts| lasts > passed)
    }
}

/// Where a store has decided.
#[derive(Debug, Clone, Copy)]
enum Place {
    Here,
    Elsewhere,
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
                Step::Take(future) => {
                    self.was_taken(Pin::into_inner(future).outcome(), Place::Here)
                }
                Step::Look(future) => self.was_seen(Pin::into_inner(future).outcome()),
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
                    self.was_taken(outcome, Place::Elsewhere)
                }
                Step::Look(future) => {
                    let outcome = ready!(future.as_mut().poll(cx));
                    self.was_seen(outcome)
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

#[cfg(test)]
mod tests {
    use std::future::{Ready, ready};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::clock::{Clock, ManualClock};
    use crate::key::KeyBuf;
    use crate::limit::LimitError;
    use crate::store::charge::Debit;
    use crate::store::{Blocks, Memory};

    /// A store elsewhere, which loses some settlements.
    #[derive(Clone)]
    struct Remote {
        memory: Memory,
        loses: Arc<AtomicU32>,
    }

    impl Remote {
        fn new(clock: &ManualClock, loses: u32) -> Self {
            let memory = Memory::builder().capacity(100).clock(clock).build();
            Self { memory, loses: Arc::new(loses.into()) }
        }
    }

    fn later(
        answer: Answer<<Memory as Store>::Future>,
    ) -> Answer<Ready<Result<Outcome, StoreError>>> {
        Answer::Later(ready(answer.now()))
    }

    impl Store for Remote {
        type Future = Ready<Result<Outcome, StoreError>>;

        fn take(&self, charge: &Charge) -> Answer<Self::Future> {
            later(self.memory.take(charge))
        }

        fn peek(&self, charge: &Charge) -> Answer<Self::Future> {
            later(self.memory.peek(charge))
        }

        fn reset(&self, charge: &Charge) -> Answer<Self::Future> {
            later(self.memory.reset(charge))
        }

        fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) {
            let fewer = |loses: u32| loses.checked_sub(1);
            if self.loses.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer).is_err() {
                self.memory.settle(debit, receipt, spent);
            }
        }

        fn follow(&self, _: &Debit, _: u64, _: u64) {}

        fn follow_status(&self, _: &Debit, _: &LimitStatus) {}

        fn clock(&self) -> Clock {
            self.memory.clock()
        }

        fn check(&self, limit: &Limit) -> Result<(), LimitError> {
            self.memory.check(limit)
        }
    }

    fn result(mut setting: SetSpent<Remote>) -> Result<(), StoreError> {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        match Pin::new(&mut setting).poll(&mut cx) {
            Poll::Ready(result) => result,
            Poll::Pending => panic!("it is ready at once"),
        }
    }

    #[test]
    fn a_block_that_was_not_written_is_an_error() {
        let clock = ManualClock::new();
        let hour = Duration::from_secs(3_600);
        let charge = Charge::of(Limit::per_minute(60), KeyBuf::of("alice"), 1);
        for (loses, is_blocked) in [(0, true), (1, false)] {
            let remote = Remote::new(&clock, loses);
            let blocks = Blocks::new(remote.clone());
            assert_eq!(result(blocks.block("alice", hour)).is_ok(), is_blocked, "{loses} are lost");
            let Answer::Later(look) = blocks.take(&charge) else { panic!("it is elsewhere") };
            let mut look = Box::pin(look);
            let mut cx = Context::from_waker(std::task::Waker::noop());
            let Poll::Ready(Ok(outcome)) = look.as_mut().poll(&mut cx) else { panic!("at once") };
            assert_eq!(outcome.is_admitted(), !is_blocked);
        }
    }

    /// Some of a limit is spent, all of it, and more than all.
    #[test]
    fn what_was_written_elsewhere_is_found_there() {
        let clock = ManualClock::new();
        let minute = Duration::from_secs(60);
        let limits = [
            Limit::per_minute(60),
            Limit::fixed_window(60, minute),
            Limit::sliding_window(60, minute),
            Limit::sliding_log(60, minute),
        ];
        for (limit, amount) in limits.iter().flat_map(|limit| [1, 60, 200].map(|n| (*limit, n))) {
            let charge = Charge::of(limit, KeyBuf::of("alice"), 0);
            let set =
                |loses| result(SetSpent::new(Remote::new(&clock, loses), charge.clone(), amount));
            assert!(set(0).is_ok(), "{limit}, {amount}");
            assert!(set(u32::MAX).is_err(), "{limit}, {amount}");
        }
    }
}
