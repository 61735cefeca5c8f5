use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::{error, fmt};

use pin_project_lite::pin_project;
use sluicegate_core::Decision;
use sluicegate_core::adapter::{Answer, AtOnce, Charge, DecisionSpan, Gate, Outcome, Place};
use sluicegate_core::clock::Clock;
use sluicegate_core::store::{Store, StoreError, Ticket};

use super::POLLED_AGAIN;
use super::told::{Told, decided};
use crate::sleep::{Sleep, sleep};

pin_project! {
    /// Waits for its turn; see [`Limiter::acquire`](crate::Limiter::acquire).
    #[must_use = "dropped, it gives its place back"]
    pub struct Acquire<S: Store> {
        #[pin]
        state: Acquiring<S>,
        clock: Clock,
    }
}

pin_project! {
    #[project = AcquiringProj]
    enum Acquiring<S: Store> {
        Deciding { #[pin] answer: S::Future, asked: Option<Asked<S>>, span: DecisionSpan },
        Waiting { sleep: Sleep, ticket: Option<(Ticket<S>, Place)>, span: DecisionSpan },
        Done { outcome: Option<Result<Ticket<S>, AcquireError>> },
    }
}

pub(super) struct Asked<S> {
    pub(super) charge: Charge,
    pub(super) store: S,
    pub(super) told: Told,
    pub(super) gate: Gate,
}

impl<S: Store> Acquire<S> {
    pub(super) fn new(answer: Answer<S::Future>, asked: Asked<S>, clock: Clock) -> Self {
        let state = match answer {
            Answer::Now(outcome) => Acquiring::of(outcome, asked, &clock, DecisionSpan::new),
            Answer::Later(answer) => {
                Acquiring::Deciding { answer, asked: Some(asked), span: DecisionSpan::new() }
            }
        };
        Self { state, clock }
    }
}

impl<S: Store> Acquiring<S> {
    fn of(
        outcome: Result<Outcome, StoreError>,
        asked: Asked<S>,
        clock: &Clock,
        span: impl FnOnce() -> DecisionSpan,
    ) -> Self {
        let Asked { charge, store, told, gate } = asked;
        let outcome = match outcome {
            Ok(outcome) if outcome.is_admitted() => {
                told.admitted(&outcome, &charge);
                let wait = outcome.wait();
                let ticket = Ticket::new(store, charge, outcome);
                if !wait.is_zero() {
                    let (sleep, ticket) = (sleep(clock, wait), Some((ticket, gate.seat(None))));
                    return Self::Waiting { sleep, ticket, span: span() };
                }
                Ok(ticket)
            }
            outcome => match decided(outcome, &charge, Some(&told)) {
                Ok(decision) if decision.never_fits() => {
                    Err(AcquireError::NeverFits(Box::new(decision)))
                }
                Ok(decision) => Err(AcquireError::Refused(Box::new(decision))),
                Err(error) => Err(AcquireError::Store(error)),
            },
        };
        Self::Done { outcome: Some(outcome) }
    }
}

impl<S: Store> Future for Acquire<S> {
    type Output = Result<Ticket<S>, AcquireError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match this.state.as_mut().project() {
                AcquiringProj::Deciding { answer, asked, span } => {
                    let outcome = ready!(span.in_scope(|| answer.poll(cx)));
                    let (asked, span) = (asked.take().expect(POLLED_AGAIN), span.clone());
                    Acquiring::of(outcome, asked, this.clock, || span)
                }
                AcquiringProj::Waiting { sleep, ticket, span } => {
                    ready!(span.in_scope(|| Pin::new(sleep).poll(cx)));
                    let (mut ticket, _place) = ticket.take().expect(POLLED_AGAIN);
                    ticket.begin();
                    return Poll::Ready(Ok(ticket));
                }
                AcquiringProj::Done { outcome } => {
                    return Poll::Ready(outcome.take().expect(POLLED_AGAIN));
                }
            };
            this.state.set(next);
        }
    }
}

impl<S: Store<Future: AtOnce>> Acquire<S> {
    /// The ticket, where the store is in this process and nobody has to wait: as after
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
        let state = match self.state {
            Acquiring::Deciding { answer, asked, span } => {
                let asked = asked.expect(POLLED_AGAIN);
                Acquiring::of(answer.outcome(), asked, &self.clock, || span)
            }
            state => state,
        };
        match state {
            Acquiring::Done { outcome } => outcome.expect(POLLED_AGAIN),
            _ => panic!("the request has to wait for its turn: await it"),
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
