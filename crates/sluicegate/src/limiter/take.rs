use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use sluicegate_core::Decision;
use sluicegate_core::adapter::{Answer, AtOnce, Charge, Observer, Outcome};
use sluicegate_core::clock::Clock;
use sluicegate_core::store::StoreError;

use super::POLLED_AGAIN;

pin_project! {
    /// A decision of a [`Limiter`](crate::Limiter).
    #[must_use = "a decision says whether to go ahead"]
    pub struct Take<F> {
        #[pin]
        state: Taking<F>,
    }
}

pin_project! {
    #[project = TakingProj]
    enum Taking<F> {
        Now { decision: Option<Result<Decision, StoreError>> },
        Later { #[pin] answer: F, charge: Charge, told: Option<LateObserver> },
    }
}

impl<F> Take<F> {
    /// A decision that is reported to operators.
    pub(super) fn told(
        answer: Answer<F>,
        charge: Charge,
        observer: &Observer,
        clock: &Clock,
    ) -> Self {
        let told = || LateObserver { observer: observer.clone(), clock: clock.clone() };
        Self::new(
            answer,
            charge,
            |outcome, charge| observer.decided(clock, outcome, charge),
            || Some(told()),
        )
    }

    /// A decision that only the caller gets.
    pub(super) fn untold(answer: Answer<F>, charge: Charge) -> Self {
        Self::new(answer, charge, untold, || None)
    }

    fn new(
        answer: Answer<F>,
        charge: Charge,
        decided: impl FnOnce(Result<Outcome, StoreError>, &Charge) -> Result<Decision, StoreError>,
        told: impl FnOnce() -> Option<LateObserver>,
    ) -> Self {
        let state = match answer {
            Answer::Now(outcome) => Taking::Now { decision: Some(decided(outcome, &charge)) },
            Answer::Later(answer) => Taking::Later { answer, charge, told: told() },
        };
        Self { state }
    }
}

/// The observer for a decision that is not available yet.
struct LateObserver {
    observer: Observer,
    clock: Clock,
}

fn untold(outcome: Result<Outcome, StoreError>, charge: &Charge) -> Result<Decision, StoreError> {
    outcome.map(|outcome| outcome.decision(charge))
}

fn decided(
    outcome: Result<Outcome, StoreError>,
    charge: &Charge,
    told: Option<&LateObserver>,
) -> Result<Decision, StoreError> {
    match told {
        Some(LateObserver { observer, clock }) => observer.decided(clock, outcome, charge),
        None => untold(outcome, charge),
    }
}

impl<F: AtOnce> Take<F> {
    /// The decision of a store in this process, which is available already.
    ///
    /// # Errors
    ///
    /// If the store has no room for the key.
    ///
    /// # Panics
    ///
    /// When it has been awaited before.
    pub fn now(self) -> Result<Decision, StoreError> {
        match self.state {
            Taking::Now { decision } => decision.expect(POLLED_AGAIN),
            Taking::Later { answer, charge, told } => {
                decided(answer.outcome(), &charge, told.as_ref())
            }
        }
    }
}

impl<F: Future<Output = Result<Outcome, StoreError>>> Future for Take<F> {
    type Output = Result<Decision, StoreError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            TakingProj::Now { decision } => Poll::Ready(decision.take().expect(POLLED_AGAIN)),
            TakingProj::Later { answer, charge, told } => {
                answer.poll(cx).map(|outcome| decided(outcome, charge, told.as_ref()))
            }
        }
    }
}

impl<F> fmt::Debug for Take<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Take")
    }
}
