use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::{error, fmt};

use sluicegate_core::Decision;
use sluicegate_core::adapter::{Admission, AtOnce, Charge, Enforcer, Pending, Refusal};
use sluicegate_core::store::{Store, StoreError, Ticket};

use super::POLLED_AGAIN;
use crate::sleep::TokioTimer;

/// Waits for its turn; see [`Limiter::acquire`](crate::Limiter::acquire).
#[must_use = "dropped, it gives its place back"]
pub struct Acquire<S: Store>(State<S>);

enum State<S: Store> {
    Pending(Pending<Arc<Enforcer<S>>, TokioTimer>),
    Done(Option<Result<Ticket<S>, AcquireError>>),
}

impl<S: Store> Acquire<S> {
    pub(super) fn new(enforcer: &Arc<Enforcer<S>>, charge: Charge) -> Self {
        Self(match enforcer.admit_charge(charge, || Arc::clone(enforcer)) {
            Admission::Proceed(ticket) => State::Done(Some(acquired(Ok(ticket)))),
            Admission::Refuse(refusal) => State::Done(Some(acquired(Err(refusal)))),
            Admission::Pending(pending) => State::Pending(pending),
        })
    }
}

impl<S: Store> Acquire<S> {
    /// Whether the request was admitted at once, and the ticket is there. Dropped, the future drops it.
    ///
    /// For layers that go on at once where nothing has to wait, and keep the future only where something does.
    #[inline]
    pub fn is_admitted(&self) -> bool {
        matches!(self.0, State::Done(Some(Ok(_))))
    }
}

/// The ticket of a request that was admitted.
fn acquired<S: Store>(result: Result<Ticket<S>, Refusal>) -> Result<Ticket<S>, AcquireError> {
    match result {
        Ok(ticket) => Ok(ticket),
        Err(Refusal::TooMany(decision)) => Err(AcquireError::Refused(decision)),
        Err(Refusal::NeverFits(decision, _)) => Err(AcquireError::NeverFits(decision)),
        Err(Refusal::Unavailable(error)) => Err(AcquireError::Store(error)),
        Err(_) => Err(not_charged()),
    }
}

/// A limiter has a key for every request, and redirects none, so there is no other refusal.
fn not_charged() -> AcquireError {
    AcquireError::Store(StoreError::unavailable("the request was not charged"))
}

impl<S: Store> Future for Acquire<S> {
    type Output = Result<Ticket<S>, AcquireError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            State::Pending(pending) => Pin::new(pending).poll(cx).map(acquired),
            State::Done(result) => Poll::Ready(result.take().expect(POLLED_AGAIN)),
        }
    }
}

impl<S: Store<Future: AtOnce>> Acquire<S> {
    /// The ticket, if the store is in this process and the request need not wait: as after
    /// [`Limiter::charge`](crate::Limiter::charge).
    ///
    /// # Errors
    ///
    /// As when it is awaited.
    ///
    /// # Panics
    ///
    /// When it has to wait for its turn, or has been awaited before.
    pub fn now(self) -> Result<Ticket<S>, AcquireError> {
        match self.0 {
            State::Done(result) => result.expect(POLLED_AGAIN),
            State::Pending(pending) => {
                acquired(pending.now().expect("the request has to wait for its turn: await it"))
            }
        }
    }
}

impl<S: Store> fmt::Debug for Acquire<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Acquire")
    }
}

/// Why [`Limiter::acquire`](crate::Limiter::acquire) did not admit.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AcquireError {
    /// It cannot be admitted in time; the decision says when it could be.
    Refused(Box<Decision>),
    /// It can never be admitted as it is, however long it waits: the cost is more than a limit ever admits,
    /// or keeps it in a leaky bucket's queue for longer than it may wait.
    NeverFits(Box<Decision>),
    /// The store failed to decide.
    Store(StoreError),
}

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(decision) => match decision.retry_after() {
                Some(time) => write!(f, "refused: it would be admitted in {time:?}"),
                None => f.write_str("refused"),
            },
            Self::NeverFits(_) => f.write_str(
                "refused: it can never be admitted, since it costs more than a limit ever admits",
            ),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl error::Error for AcquireError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Refused(_) | Self::NeverFits(_) => None,
            Self::Store(error) => error::Error::source(error),
        }
    }
}
