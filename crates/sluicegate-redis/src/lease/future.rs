use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use sluicegate_core::adapter::{Answer, Debit, Outcome};
use sluicegate_core::store::StoreError;
use tokio::sync::oneshot::Receiver;

use super::inner::Inner;
use crate::exchange::future::RedisFuture;
use crate::failure::{Failure, FailureKind};

/// The answer of a [`Leased`](crate::Leased) store that needs Redis.
///
/// If it is dropped before it is ready, its tokens stay with the process.
#[must_use = "futures do nothing unless polled"]
pub struct LeasedFuture(State);

enum State {
    /// The charge was passed on to Redis unchanged.
    PassedOn(RedisFuture),
    /// The request waits for a lease, together with others.
    Waiting { answer: Receiver<Result<Outcome, Failure>>, inner: Arc<Inner>, debit: Box<Debit> },
}

impl LeasedFuture {
    /// The answer to a charge that was passed on to Redis unchanged.
    pub(super) fn pass_on(answer: Answer<RedisFuture>) -> Answer<Self> {
        match answer {
            Answer::Now(outcome) => Answer::Now(outcome),
            Answer::Later(future) => Answer::Later(Self(State::PassedOn(future))),
        }
    }

    pub(super) fn waiting(
        answer: Receiver<Result<Outcome, Failure>>,
        inner: &Arc<Inner>,
        debit: &Debit,
    ) -> Self {
        let (inner, debit) = (Arc::clone(inner), Box::new(debit.clone()));
        Self(State::Waiting { answer, inner, debit })
    }
}

impl Future for LeasedFuture {
    type Output = Result<Outcome, StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            State::PassedOn(future) => Pin::new(future).poll(cx),
            State::Waiting { answer, .. } => {
                let received = ready!(Pin::new(answer).poll(cx));
                Poll::Ready(received.unwrap_or_else(|_| Err(abandoned())).map_err(StoreError::from))
            }
        }
    }
}

/// The runtime has ended, and with it the task that requested the lease.
fn abandoned() -> Failure {
    Failure::because(FailureKind::Unreachable, "the runtime of the store has ended")
}

impl Drop for LeasedFuture {
    fn drop(&mut self) {
        if let State::Waiting { answer, inner, debit } = &mut self.0 {
            answer.close();
            if let Ok(Ok(outcome)) = answer.try_recv() {
                inner.undo(debit, &outcome);
            }
        }
    }
}

impl fmt::Debug for LeasedFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeasedFuture")
    }
}
