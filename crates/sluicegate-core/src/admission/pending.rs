//! A request whose decision, or turn, has to be awaited.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;

use crate::admission::enforcer::{AsEnforcer, Enforcer};
use crate::admission::gate::QueuePermit;
use crate::admission::paid::Paid;
use crate::admission::refusal::Refusal;
use crate::clock::sleep::{Sleep, Timer};
use crate::limit::Outcome;
use crate::store::charge::Charge;
use crate::store::{AtOnce, Store, StoreError};

/// A request that goes ahead, and how long it waits for its turn until then, with its permit to wait.
pub(crate) type Served<E> = (Paid<E>, Option<(Duration, QueuePermit)>);

/// The future of an enforcer's store.
type StoreFuture<E> = <<E as AsEnforcer>::Store as Store>::Future;

/// A request whose store has not answered yet, or that waits for its turn.
///
/// Resolves to what the request has paid, or to why it is refused. Dropped before that, it gives back what was
/// charged, and its place in the queue.
#[must_use = "dropped, it gives back what was charged"]
pub struct Pending<E: AsEnforcer, T: Timer> {
    // Boxed, because it is large and rare, and what an enforcer answers is moved about.
    state: Pin<Box<State<E, T>>>,
    span: DecisionSpan,
}

pin_project! {
    #[project = StateProj]
    enum State<E: AsEnforcer, T: Timer> {
        Deciding {
            #[pin]
            answer: StoreFuture<E>,
            deadline: Option<Sleep<T::Sleep>>,
            context: Option<DecisionContext<E>>,
        },
        Waiting { sleep: Sleep<T::Sleep>, paid: Option<Paid<E>>, permit: QueuePermit },
        Decided { result: Option<Result<Paid<E>, Refusal>> },
    }
}

/// A request whose store has not answered yet.
struct DecisionContext<E> {
    enforcer: E,
    charge: Charge,
    permit: Option<QueuePermit>,
}

impl<E: AsEnforcer, T: Timer> Pending<E, T> {
    pub(crate) fn deciding(
        answer: StoreFuture<E>,
        charge: Charge,
        permit: Option<QueuePermit>,
        enforcer: E,
    ) -> Self {
        let settings = enforcer.as_enforcer();
        // Made before the first poll: the time runs from the question, and not from when the task is first polled.
        let deadline = settings.deadline.map(|time| Sleep::new(&settings.clock, time, T::sleep));
        let context = Some(DecisionContext { enforcer, charge, permit });
        Self::at(State::Deciding { answer, deadline, context })
    }

    pub(crate) fn waiting(paid: Paid<E>, wait: Duration, permit: QueuePermit) -> Self {
        Self::at(State::of((paid, Some((wait, permit)))))
    }

    fn at(state: State<E, T>) -> Self {
        Self { state: Box::pin(state), span: DecisionSpan::new() }
    }
}

impl<E: AsEnforcer, T: Timer> State<E, T> {
    fn of((paid, wait): Served<E>) -> Self {
        match (wait, paid.enforcer()) {
            (Some((wait, permit)), Some(enforcer)) => {
                let sleep = Sleep::new(&enforcer.as_enforcer().clock, wait, T::sleep);
                Self::Waiting { sleep, paid: Some(paid), permit }
            }
            _ => Self::Decided { result: Some(Ok(paid)) },
        }
    }

    fn decided(outcome: Result<Outcome, StoreError>, context: DecisionContext<E>) -> Self {
        let DecisionContext { enforcer, mut charge, permit } = context;
        match Enforcer::judge(enforcer, outcome, &mut charge, permit) {
            Ok(served) => Self::of(served),
            Err(refusal) => Self::Decided { result: Some(Err(refusal)) },
        }
    }
}

impl<E: AsEnforcer, T: Timer> Future for Pending<E, T> {
    type Output = Result<Paid<E>, Refusal>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // A loop over states instead of nested futures, so that one box holds whichever is under way.
        let Self { state, span } = &mut *self;
        span.in_scope(|| {
            loop {
                let next = match state.as_mut().project() {
                    StateProj::Deciding { answer, deadline, context } => {
                        // The answer before the deadline: where both are ready, a late answer is still an answer.
                        let outcome = match answer.poll(cx) {
                            Poll::Ready(outcome) => outcome,
                            Poll::Pending => {
                                let Some(deadline) = deadline else { return Poll::Pending };
                                ready!(Pin::new(deadline).poll(cx));
                                // The store's future is dropped with this state. A store gives back what such a future
                                // turns out to have charged.
                                Err(StoreError::too_slow())
                            }
                        };
                        State::decided(outcome, context.take().expect(POLLED_AGAIN))
                    }
                    StateProj::Waiting { sleep, paid, .. } => {
                        ready!(Pin::new(sleep).poll(cx));
                        let mut paid = paid.take().expect(POLLED_AGAIN);
                        // From here on, a drop keeps the charge: the turn was used.
                        paid.begin();
                        State::Decided { result: Some(Ok(paid)) }
                    }
                    StateProj::Decided { result } => {
                        return Poll::Ready(result.take().expect(POLLED_AGAIN));
                    }
                };
                state.set(next);
            }
        })
    }
}

impl<E: AsEnforcer, T: Timer> Pending<E, T> {
    /// The result for a caller that waits no longer: as if the deadline had come. A request that waits for its turn
    /// gives it back.
    pub fn too_slow(mut self) -> Result<Paid<E>, Refusal> {
        match self.state.as_mut().project() {
            StateProj::Deciding { context, .. } => {
                let context = context.take().expect(POLLED_AGAIN);
                let DecisionContext { enforcer, mut charge, permit } = context;
                let judged =
                    Enforcer::judge(enforcer, Err(StoreError::too_slow()), &mut charge, permit);
                judged.map(|(paid, _)| paid)
            }
            StateProj::Waiting { .. } => Err(Refusal::Unavailable(StoreError::too_slow())),
            StateProj::Decided { result } => result.take().expect(POLLED_AGAIN),
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
        let state = match *Pin::into_inner(self.state) {
            State::Deciding { answer, context, .. } => {
                State::decided(answer.outcome(), context.expect(POLLED_AGAIN))
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
        f.write_str(match &*self.state {
            State::Deciding { .. } => "Pending(deciding)",
            State::Waiting { .. } => "Pending(waiting)",
            State::Decided { .. } => "Pending(decided)",
        })
    }
}

/// The `tracing` span `rate_limit` around a decision that has to be awaited, a wait, or both in turn. A decision that
/// is available at once has no span. Without the feature `tracing` it is empty.
struct DecisionSpan {
    #[cfg(feature = "tracing")]
    span: tracing::Span,
}

impl DecisionSpan {
    /// Begins with a decision, or with a wait.
    fn new() -> Self {
        Self {
            #[cfg(feature = "tracing")]
            span: tracing::info_span!("rate_limit"),
        }
    }

    /// Runs `run` within the span.
    fn in_scope<T>(&self, run: impl FnOnce() -> T) -> T {
        #[cfg(feature = "tracing")]
        let _entered = self.span.enter();
        run()
    }
}
