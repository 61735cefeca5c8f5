use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use sluicegate_core::adapter::{Outcome, remote};
use sluicegate_core::store::StoreError;

use crate::exchange::call::TimedCall;
use crate::exchange::shared::Shared;
use crate::failure::Failure;

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
    One(Box<TimedCall>),
    Several(Pin<Box<dyn Future<Output = Result<Outcome, Failure>> + Send>>),
}

impl RedisFuture {
    pub(crate) fn one(shared: &Arc<Shared>, call: Box<TimedCall>) -> Self {
        Self::new(shared, Calls::One(call))
    }

    pub(crate) fn several(
        shared: &Arc<Shared>,
        calls: impl Future<Output = Result<Outcome, Failure>> + Send + 'static,
    ) -> Self {
        Self::new(shared, Calls::Several(Box::pin(calls)))
    }

    fn new(shared: &Arc<Shared>, calls: Calls) -> Self {
        Self { shared: Arc::clone(shared), begun: Instant::now(), calls }
    }
}

impl Future for RedisFuture {
    type Output = Result<Outcome, StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = match &mut self.calls {
            Calls::One(call) => ready!(Pin::new(&mut **call).poll(cx))
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
