use std::pin::Pin;
use std::task::{Context, Poll};
use std::{error, fmt};

use pin_project_lite::pin_project;
use sluicegate_core::Decision;
use sluicegate_core::adapter::{
    Admission, AtOnce, Charge, Enforcer, Paid, Pending, Refusal, Served,
};
use sluicegate_core::store::{Store, StoreError, Ticket};

use super::POLLED_AGAIN;
use crate::sleep::TokioTimer;

pin_project! {
    /// Waits for its turn; see [`Limiter::acquire`](crate::Limiter::acquire).
    #[must_use = "dropped, it gives its place back"]
    pub struct Acquire<S: Store> {
        #[pin]
        state: Acquiring<S>,
    }
}

pin_project! {
    #[project = AcquiringProj]
    enum Acquiring<S: Store> {
        Pending { #[pin] pending: Pending<Enforcer<S>, TokioTimer> },
        Done { result: Option<Result<Ticket<S>, AcquireError>> },
    }
}

impl<S: Store + Clone> Acquire<S> {
    pub(super) fn new(enforcer: &Enforcer<S>, mut charge: Charge) -> Self {
        let state = match enforcer.ask(&mut charge, || enforcer.clone()) {
            Admission::Proceed(Served::Charged(outcome)) => {
                let ticket = Ticket::new(enforcer.store.clone(), charge, outcome);
                Acquiring::Done { result: Some(Ok(ticket)) }
            }
            Admission::Proceed(served) => {
                let paid = served.paid(&mut charge, || enforcer.clone());
                Acquiring::Done { result: Some(acquired(Ok(paid))) }
            }
            Admission::Refuse(refusal) => Acquiring::Done { result: Some(acquired(Err(refusal))) },
            Admission::Pending(pending) => Acquiring::Pending { pending },
        };
        Self { state }
    }
}

impl<S: Store> Acquire<S> {
    /// Whether the request was admitted at once, and the ticket is there. Dropped, the future drops it.
    ///
    /// For layers that go on at once where nothing has to wait, and keep the future only where something does.
    #[inline]
    pub fn is_admitted(&self) -> bool {
        matches!(self.state, Acquiring::Done { result: Some(Ok(_)) })
    }
}

/// The ticket of a request that was admitted.
fn acquired<S: Store + Clone>(
    result: Result<Paid<Enforcer<S>>, Refusal>,
) -> Result<Ticket<S>, AcquireError> {
    match result {
        Ok(paid) => paid.into_ticket(|enforcer| enforcer.store.clone()).ok_or_else(not_charged),
        Err(Refusal::TooMany(decision)) => Err(AcquireError::Refused(decision)),
        Err(Refusal::NeverFits(decision, _)) => Err(AcquireError::NeverFits(decision)),
        Err(Refusal::Unavailable(error)) => Err(AcquireError::Store(error)),
        Err(_) => Err(not_charged()),
    }
}

/// A limiter blocks requests above its limits and refuses when its store fails, so every other request was charged.
fn not_charged() -> AcquireError {
    AcquireError::Store(StoreError::unavailable("the request was not charged"))
}

impl<S: Store + Clone> Future for Acquire<S> {
    type Output = Result<Ticket<S>, AcquireError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            AcquiringProj::Pending { pending } => pending.poll(cx).map(acquired),
            AcquiringProj::Done { result } => Poll::Ready(result.take().expect(POLLED_AGAIN)),
        }
    }
}

impl<S: Store<Future: AtOnce> + Clone> Acquire<S> {
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
        match self.state {
            Acquiring::Done { result } => result.expect(POLLED_AGAIN),
            Acquiring::Pending { pending } => {
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
