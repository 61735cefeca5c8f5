//! A request whose decision, or turn, has to be awaited.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;

use crate::admission::gate::QueuePermit;
use crate::admission::judge::Action;
use crate::admission::paid::{AsEnforcer, Paid, Via};
use crate::admission::refusal::Refusal;
use crate::clock::sleep::{Sleep, Timer};
use crate::limit::Outcome;
use crate::observe::span::DecisionSpan;
use crate::store::charge::Charge;
use crate::store::ticket::Ticket;
use crate::store::{AtOnce, Store, StoreError};

/// The future of an enforcer's store.
type StoreFuture<E> = <<E as AsEnforcer>::Store as Store>::Future;

pin_project! {
    /// A request whose store has not answered yet, or that waits for its turn.
    ///
    /// Resolves to what the request has paid, or to why it is refused. Dropped before that, it gives back what was
    /// charged, and its place in the queue.
    #[must_use = "dropped, it gives back what was charged"]
    pub struct Pending<E: AsEnforcer, T: Timer> {
        #[pin]
        state: State<E, T>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<E: AsEnforcer, T: Timer> {
        Deciding {
            #[pin]
            answer: StoreFuture<E>,
            deadline: Option<Sleep<T::Sleep>>,
            asked: Option<Box<Asked<E>>>,
        },
        Waiting { sleep: Sleep<T::Sleep>, waiter: Option<Box<Waiter<E>>> },
        Decided { result: Option<Result<Paid<E>, Refusal>> },
    }
}

/// A request whose store has not answered yet.
struct Asked<E> {
    enforcer: E,
    charge: Charge,
    permit: Option<QueuePermit>,
    span: DecisionSpan,
}

/// A request that waits for its turn.
struct Waiter<E: AsEnforcer> {
    ticket: Ticket<Via<E>>,
    _permit: QueuePermit,
    span: DecisionSpan,
}

impl<E: AsEnforcer, T: Timer> Pending<E, T> {
    pub(crate) fn deciding(
        answer: StoreFuture<E>,
        charge: Charge,
        permit: Option<QueuePermit>,
        enforcer: E,
    ) -> Self {
        let settings = enforcer.as_enforcer();
        let deadline = settings.deadline.map(|time| Sleep::new(&settings.clock, time, T::sleep));
        let asked = Asked { enforcer, charge, permit, span: DecisionSpan::new() };
        Self { state: State::Deciding { answer, deadline, asked: Some(Box::new(asked)) } }
    }

    pub(crate) fn waiting(
        wait: Duration,
        outcome: Outcome,
        charge: Charge,
        permit: QueuePermit,
        enforcer: E,
    ) -> Self {
        let ticket = Ticket::new(Via(enforcer), charge, outcome);
        Self { state: State::waiting(wait, ticket, permit, DecisionSpan::new()) }
    }
}

impl<E: AsEnforcer, T: Timer> State<E, T> {
    fn waiting(
        wait: Duration,
        ticket: Ticket<Via<E>>,
        permit: QueuePermit,
        span: DecisionSpan,
    ) -> Self {
        let sleep = Sleep::new(&ticket.store().0.as_enforcer().clock, wait, T::sleep);
        Self::Waiting { sleep, waiter: Some(Box::new(Waiter { ticket, _permit: permit, span })) }
    }

    fn decided(outcome: Result<Outcome, StoreError>, asked: Asked<E>) -> Self {
        let Asked { enforcer, mut charge, permit, span } = asked;
        let action = span.in_scope(|| enforcer.as_enforcer().judge(outcome, &charge, permit));
        let result = match action {
            Action::Serve(served) => Ok(served.paid(&mut charge, || enforcer)),
            Action::Wait(wait, outcome, permit) => {
                let ticket = Ticket::new(Via(enforcer), charge, outcome);
                return Self::waiting(wait, ticket, permit, span);
            }
            Action::Refuse(refusal) => Err(refusal),
        };
        Self::Decided { result: Some(result) }
    }
}

impl<E: AsEnforcer, T: Timer> Future for Pending<E, T> {
    type Output = Result<Paid<E>, Refusal>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let next = match state.as_mut().project() {
                StateProj::Deciding { answer, deadline, asked } => {
                    let span = &asked.as_ref().expect(POLLED_AGAIN).span;
                    let outcome = match span.in_scope(|| answer.poll(cx)) {
                        Poll::Ready(outcome) => outcome,
                        Poll::Pending => {
                            let Some(deadline) = deadline else { return Poll::Pending };
                            ready!(Pin::new(deadline).poll(cx));
                            Err(StoreError::too_slow())
                        }
                    };
                    State::decided(outcome, *asked.take().expect(POLLED_AGAIN))
                }
                StateProj::Waiting { sleep, waiter } => {
                    let span = &waiter.as_ref().expect(POLLED_AGAIN).span;
                    ready!(span.in_scope(|| Pin::new(sleep).poll(cx)));
                    let Waiter { mut ticket, .. } = *waiter.take().expect(POLLED_AGAIN);
                    ticket.begin();
                    return Poll::Ready(Ok(ticket.into()));
                }
                StateProj::Decided { result } => {
                    return Poll::Ready(result.take().expect(POLLED_AGAIN));
                }
            };
            state.set(next);
        }
    }
}

impl<E, T> Pending<E, T>
where
    E: AsEnforcer<Store: Store<Future: AtOnce>>,
    T: Timer,
{
    /// The result, where the store is in this process; `None` where the request has to wait for its turn.
    pub fn now(self) -> Option<Result<Paid<E>, Refusal>> {
        let state = match self.state {
            State::Deciding { answer, asked, .. } => {
                State::decided(answer.outcome(), *asked.expect(POLLED_AGAIN))
            }
            state => state,
        };
        match state {
            State::Decided { result } => result,
            _ => None,
        }
    }
}

const POLLED_AGAIN: &str = "a future is not polled again once it is ready";

impl<E: AsEnforcer, T: Timer> fmt::Debug for Pending<E, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.state {
            State::Deciding { .. } => "Pending(deciding)",
            State::Waiting { .. } => "Pending(waiting)",
            State::Decided { .. } => "Pending(decided)",
        })
    }
}
