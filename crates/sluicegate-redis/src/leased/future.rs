use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use sluicegate_core::adapter::{Debit, Outcome};
use sluicegate_core::store::StoreError;
use tokio::sync::oneshot::Receiver;

use super::Inner;
use crate::failure::{Failure, FailureKind};
use crate::future::RedisFuture;

/// The answer of a [`Leased`](super::Leased) that has to ask Redis.
///
/// Dropped before it is ready, what it was to have remains in the share.
#[must_use = "what it is to have is given back unless it is awaited"]
pub struct LeasedFuture(Asking);

enum Asking {
    /// As it was.
    Passed(RedisFuture),
    /// Together with all who wait for the same.
    Waiting { answer: Receiver<Result<Outcome, Failure>>, inner: Arc<Inner>, debit: Box<Debit> },
}

impl LeasedFuture {
    pub(super) const fn passed(future: RedisFuture) -> Self {
        Self(Asking::Passed(future))
    }

    pub(super) fn waiting(
        answer: Receiver<Result<Outcome, Failure>>,
        inner: &Arc<Inner>,
        debit: &Debit,
    ) -> Self {
        let (inner, debit) = (Arc::clone(inner), Box::new(debit.clone()));
        Self(Asking::Waiting { answer, inner, debit })
    }
}

impl Future for LeasedFuture {
    type Output = Result<Outcome, StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Asking::Passed(future) => Pin::new(future).poll(cx),
            Asking::Waiting { answer, .. } => {
                let told = ready!(Pin::new(answer).poll(cx));
                Poll::Ready(told.unwrap_or_else(|_| Err(abandoned())).map_err(StoreError::from))
            }
        }
    }
}

/// The runtime has ended, and with it what asked.
fn abandoned() -> Failure {
    Failure::because(FailureKind::Unreachable, "the runtime that asked has ended")
}

impl Drop for LeasedFuture {
    fn drop(&mut self) {
        if let Asking::Waiting { answer, inner, debit } = &mut self.0 {
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
