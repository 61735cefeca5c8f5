use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use sluicegate_core::Limit;
use sluicegate_core::adapter::{Answer, Charge, Debit, Outcome, Receipt, remote};
use sluicegate_core::clock::Clock;
use sluicegate_core::limit::{LimitError, LimitStatus};
use sluicegate_core::store::{Store, StoreError};

use crate::exchange::call::{self, PendingReply};
use crate::exchange::shared::Shared;
use crate::exchange::{cross_slot, settle};
use crate::failure::{Failure, FailureKind};
use crate::observe::counts::RedisCounts;
use crate::script::Operation;
use crate::wire::route::Route;

/// A store in Redis or Valkey that any number of processes share. Clones are the same store.
///
/// ```no_run
/// use sluicegate_core::Limit;
/// use sluicegate_core::adapter::{Answer, Charge};
/// use sluicegate_core::key::KeyBuf;
/// use sluicegate_core::store::Store;
/// use sluicegate_redis::Redis;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let store = Redis::connect("redis://127.0.0.1:6379")?;
/// let charge = Charge::of(Limit::per_minute(100), KeyBuf::of("alice"), 1);
/// let outcome = match store.take(&charge) {
///     Answer::Later(answer) => answer.await?,
///     // An error at once: the server keeps failing.
///     Answer::Now(outcome) => outcome?,
/// };
/// println!("{:?} left", outcome.decision(&charge).remaining());
/// # Ok(())
/// # }
/// ```
///
/// # Runtime
///
/// Connections run on the tokio runtime in which the store is made, or else on the first in which it is used. That
/// runtime needs its timer and I/O enabled, and has to outlive the use of the store. Any thread can use the store.
#[derive(Clone)]
pub struct Redis(pub(crate) Arc<Shared>);

impl Redis {
    /// What the store has done so far.
    pub fn counts(&self) -> RedisCounts {
        self.0.counters.read(self.0.route.breaker())
    }

    /// Waits for everything in the background: settlements, and late charges that are given back. Call it before the
    /// process ends. Each takes at most the time set by [`background`](crate::RedisBuilder::background), 30 s by
    /// default.
    pub async fn flush(&self) {
        self.0.background.idle().await;
    }

    fn call(&self, operation: Operation, charge: &Charge) -> Answer<RedisFuture> {
        if charge.is_empty() {
            return Answer::Now(Ok(Outcome::free()));
        }
        match self.begin(operation, charge) {
            Ok(future) => Answer::Later(future),
            Err(failure) => {
                self.0.counters.failed(&failure);
                Answer::Now(Err(failure.into()))
            }
        }
    }

    /// The answer, if it is known without a call.
    #[inline]
    fn recall(&self, charge: &Charge) -> Option<Outcome> {
        let shared = &self.0;
        let refusal = shared.refusals.recall(charge)?;
        // Slots of a cluster may be on servers with different clocks. `Charge::keys` passes over shadows, whose rows count here.
        let is_one_server = matches!(shared.route, Route::One(_)) || {
            let mut keys = charge.debits().map(|debit| &debit.key);
            let first = keys.next();
            keys.all(|key| Some(key) == first)
        };
        is_one_server.then(|| {
            shared.counters.refused_locally();
            refusal
        })
    }

    fn begin(&self, operation: Operation, charge: &Charge) -> Result<RedisFuture, Failure> {
        let shared = &self.0;
        if shared.runtime.handle().is_none() {
            return Err(settle::no_runtime());
        }
        if shared.route.is_shut() {
            return Err(Failure::new(FailureKind::BreakerOpen));
        }
        if let (1, Some(debit)) = (charge.len(), charge.debits().next()) {
            let key = shared.key(debit);
            let within = (shared.route.slot(&key), shared.deadline);
            let keys = std::slice::from_ref(&key);
            let call = call::begin(shared, operation, charge.clone(), keys, within)?;
            return Ok(RedisFuture::new(shared, Calls::One(call)));
        }
        let keys: Vec<_> = charge.debits().map(|debit| shared.key(debit)).collect();
        let slots: Vec<_> = keys.iter().map(|key| shared.route.slot(key)).collect();
        if slots.iter().all(|slot| *slot == slots[0]) {
            let within = (slots[0], shared.deadline);
            let call = call::begin(shared, operation, charge.clone(), &keys, within)?;
            return Ok(RedisFuture::new(shared, Calls::One(call)));
        }
        let parts = cross_slot::by_slot(charge, keys, &slots);
        let calls = Box::pin(cross_slot::decide(Arc::clone(shared), operation, parts));
        Ok(RedisFuture::new(shared, Calls::Several(calls)))
    }
}

impl Store for Redis {
    type Future = RedisFuture;

    fn take(&self, charge: &Charge) -> Answer<RedisFuture> {
        match self.recall(charge) {
            Some(refusal) => Answer::Now(Ok(refusal)),
            None => self.call(Operation::Take, charge),
        }
    }

    fn peek(&self, charge: &Charge) -> Answer<RedisFuture> {
        self.call(Operation::Peek, charge)
    }

    fn reset(&self, charge: &Charge) -> Answer<RedisFuture> {
        self.call(Operation::Reset, charge)
    }

    fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) {
        settle::settle(&self.0, debit, receipt, spent);
    }

    /// Does nothing: the server is told by the store that decides.
    fn follow(&self, _: &Debit, _: u64, _: u64) {}

    /// Does nothing, as [`follow`](Self::follow).
    fn follow_status(&self, _: &Debit, _: &LimitStatus) {}

    fn clock(&self) -> Clock {
        self.0.runtime.clock.clone()
    }

    /// # Errors
    ///
    /// When the limit is a log that is [too long](Limit::check_length), because each decision reads all of it.
    fn check(&self, limit: &Limit) -> Result<(), LimitError> {
        limit.check_length()
    }
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis").field("route", &self.0.route).finish_non_exhaustive()
    }
}

/// The answer of a [`Redis`](crate::Redis), within its deadline.
///
/// Nothing is sent before the first poll. If it is dropped before it is ready, or the answer comes too late, a task in
/// the background gives back what was charged.
#[must_use = "futures do nothing unless polled"]
pub struct RedisFuture {
    shared: Arc<Shared>,
    begun: Instant,
    calls: Calls,
}

enum Calls {
    One(PendingReply),
    Several(Pin<Box<dyn Future<Output = Result<Outcome, Failure>> + Send>>),
}

impl RedisFuture {
    fn new(shared: &Arc<Shared>, calls: Calls) -> Self {
        Self { shared: Arc::clone(shared), begun: Instant::now(), calls }
    }
}

impl Future for RedisFuture {
    type Output = Result<Outcome, StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = match &mut self.calls {
            Calls::One(call) => ready!(call.as_mut().poll(cx))
                .map(|reply| remote::outcome(reply.verdict, reply.outcomes)),
            Calls::Several(calls) => ready!(calls.as_mut().poll(cx)),
        };
        let counters = &self.shared.counters;
        Poll::Ready(match outcome {
            Ok(outcome) => {
                counters.decided(outcome.is_admitted(), self.begun.elapsed());
                Ok(outcome)
            }
            Err(failure) => {
                counters.failed_after(&failure, self.begun.elapsed());
                Err(failure.into())
            }
        })
    }
}

impl fmt::Debug for RedisFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RedisFuture")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn can_go_anywhere<T: Send + Unpin + 'static>() {}

    #[test]
    fn it_can_be_awaited_in_any_layer() {
        const { can_go_anywhere::<RedisFuture>() };
        assert!(size_of::<RedisFuture>() <= 48, "it is moved with every response's future");
    }
}
