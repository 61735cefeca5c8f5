//! How the rooms ask about a request: by core's admission, the same that layers use.
//!
//! Nobody waits here. A request that may go ahead later is answered at once, and the answer says how long to wait.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use sluicegate::adapter::TokioTimer;
use sluicegate_core::adapter::{self, Answer, Charge, Outcome, Refusal};
use sluicegate_core::key::View;
use sluicegate_core::limit::Decision;
use sluicegate_core::rule::Rule;
use sluicegate_core::store::{BoxStoreFuture, OnStoreError, Store, StoreError};

use crate::rules::Enforcer;
use crate::service::Service;

/// What an admitted request has paid.
pub(crate) type Paid = adapter::Paid<Arc<Enforcer>>;

/// What core's admission says about a request.
pub(crate) type Admission = adapter::Admission<Arc<Enforcer>, TokioTimer>;

/// The decision about a request; `None` if the request passes without one: the store cannot decide and the service lets requests
/// pass then, or a rule serves what exceeds its limit.
pub(crate) type Decided = Result<Option<Decision>, StoreError>;

/// A decision, or what becomes one.
#[expect(clippy::large_enum_variant, reason = "nearly every request has the large one")]
pub(crate) enum Pending {
    Decided(Decided),
    /// The store is elsewhere.
    Asked(Pin<Box<dyn Future<Output = Decided> + Send>>),
}

impl Pending {
    pub(crate) async fn decided(self) -> Decided {
        match self {
            Self::Decided(decided) => decided,
            Self::Asked(future) => future.await,
        }
    }
}

impl Service {
    /// Takes a request through core's admission, by what `rule` says about it.
    pub(crate) fn admit<V: View>(&self, rule: &impl Rule<V>, view: &V) -> Admission {
        self.by_rules().admit(rule, view, || Arc::clone(self.by_rules()))
    }

    /// Charges a request that is described by its charge. What it holds is given back at once: nobody says when it ends.
    pub(crate) fn take(&self, charge: Charge, deadline: Duration) -> Pending {
        let admission = self.enforcer().admit_charge(charge, || Arc::clone(self.enforcer()));
        Self::pending(admission, deadline)
    }

    /// What becomes of an admission, within `deadline`. What the request holds is given back with the decision.
    pub(crate) fn pending(admission: Admission, deadline: Duration) -> Pending {
        match admission {
            adapter::Admission::Proceed(paid) => Pending::Decided(decision(Ok(paid))),
            adapter::Admission::Refuse(refusal) => Pending::Decided(decision(Err(refusal))),
            adapter::Admission::Pending(mut pending) => {
                Pending::Asked(Box::pin(async move {
                    // The deadline of a call may be shorter than that of the service, which core knows.
                    decision(match tokio::time::timeout(deadline, &mut pending).await {
                        Ok(admitted) => admitted,
                        Err(_) => pending.too_slow(),
                    })
                }))
            }
        }
    }

    /// The store cannot decide about this charge. This is reported here.
    fn failed(&self, error: StoreError, charge: &Charge) -> Decided {
        let reported = self.observer().decided(self.clock(), Err(error), charge);
        reported.map(Some).or_else(|error| self.decision(Err(error), charge))
    }

    /// Charges limits that only count. They admit everything, so nothing is reported before somebody has judged the counts.
    pub(crate) fn count(&self, charge: &Charge, deadline: Duration) -> Pending {
        let counted = |service: &Self, outcome: Result<Outcome, StoreError>, charge: &Charge| {
            outcome
                .map(|outcome| Some(outcome.decision(charge)))
                .or_else(|error| service.failed(error, charge))
        };
        match self.store().take(charge) {
            Answer::Now(outcome) => Pending::Decided(counted(self, outcome, charge)),
            Answer::Later(future) => {
                let (service, charge) = (self.clone(), charge.clone());
                Pending::Asked(Box::pin(async move {
                    counted(&service, in_time(future, deadline).await, &charge)
                }))
            }
        }
    }

    /// What [`take`](Self::take) would answer, without charging anything.
    pub(crate) fn peek(&self, charge: &Charge, deadline: Duration) -> Pending {
        match self.store().peek(charge) {
            Answer::Now(outcome) => Pending::Decided(self.decision(outcome, charge)),
            Answer::Later(future) => {
                let (service, charge) = (self.clone(), charge.clone());
                Pending::Asked(Box::pin(async move {
                    service.decision(in_time(future, deadline).await, &charge)
                }))
            }
        }
    }

    /// Forgets what was spent on the keys of a charge.
    pub(crate) async fn reset(&self, charge: &Charge) -> Result<(), StoreError> {
        match self.store().reset(charge) {
            Answer::Now(outcome) => outcome,
            Answer::Later(future) => in_time(future, self.deadline()).await,
        }
        .map(drop)
    }

    fn decision(&self, outcome: Result<Outcome, StoreError>, charge: &Charge) -> Decided {
        match outcome {
            Ok(outcome) => Ok(Some(outcome.decision(charge))),
            Err(error) if self.enforcer().when_undecided(&error, charge) == OnStoreError::Admit => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// What core's admission came to, once the store has answered.
pub(crate) async fn admitted(admission: Admission) -> Result<Paid, Refusal> {
    match admission {
        adapter::Admission::Proceed(paid) => Ok(paid),
        adapter::Admission::Refuse(refusal) => Err(refusal),
        // Boxed, because few stores are elsewhere, and every caller would have room for this.
        adapter::Admission::Pending(pending) => Box::pin(pending).await,
    }
}

/// The decision that core's admission came to. What is held is given back.
fn decision(admitted: Result<Paid, Refusal>) -> Decided {
    match admitted {
        Ok(paid) if paid.is_degraded() => Ok(None),
        Ok(paid) => Ok(paid.enforcer().is_some().then(|| paid.decision())),
        Err(Refusal::Unavailable(error)) => Err(error),
        // A charge is complete, so there is a decision.
        Err(refusal) => Ok(refusal.decision().cloned()),
    }
}

async fn in_time(future: BoxStoreFuture, deadline: Duration) -> Result<Outcome, StoreError> {
    let answer = tokio::time::timeout(deadline, future).await;
    answer.unwrap_or_else(|_| Err(StoreError::too_slow()))
}
