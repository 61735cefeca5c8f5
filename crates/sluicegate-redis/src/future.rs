use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use sluicegate_core::adapter::{Outcome, remote};
use sluicegate_core::store::StoreError;

use crate::failure::Failure;
use crate::shared::Shared;
use crate::visit::Visit;

/// The answer of a [`Redis`](crate::Redis), within its deadline.
///
/// Nothing is sent before it is polled for the first time. Dropped before it is ready, or too late, it
/// leaves a task behind that gives back what was charged.
#[must_use = "nothing is charged before it is awaited"]
pub struct RedisFuture {
    shared: Arc<Shared>,
    begun: Instant,
    asking: Asking,
}

enum Asking {
    One(Box<Visit>),
    Several(Pin<Box<dyn Future<Output = Result<Outcome, Failure>> + Send>>),
}

impl RedisFuture {
    pub(crate) fn one(shared: &Arc<Shared>, visit: Visit) -> Self {
        Self::new(shared, Asking::One(Box::new(visit)))
    }

    pub(crate) fn several(
        shared: &Arc<Shared>,
        visits: impl Future<Output = Result<Outcome, Failure>> + Send + 'static,
    ) -> Self {
        Self::new(shared, Asking::Several(Box::pin(visits)))
    }

    fn new(shared: &Arc<Shared>, asking: Asking) -> Self {
        Self { shared: Arc::clone(shared), begun: Instant::now(), asking }
    }
}

impl Future for RedisFuture {
    type Output = Result<Outcome, StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = match &mut self.asking {
            Asking::One(visit) => ready!(Pin::new(&mut **visit).poll(cx))
                .map(|reply| remote::outcome(reply.verdict, reply.facts)),
            Asking::Several(visits) => ready!(visits.as_mut().poll(cx)),
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
    fn it_is_awaited_wherever_a_layer_awaits() {
        const { can_go_anywhere::<RedisFuture>() };
        assert!(size_of::<RedisFuture>() <= 48, "it is moved with every response's future");
    }
}
