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

/// The decision about a request; `None` if the store cannot decide, and the service lets requests pass then.
pub(crate) type Decided = Result<Option<Decision>, StoreError>;

/// A decision, or what becomes one.
#[expect(clippy::large_enum_variant, reason = "nearly every request has the large one")]
pub(crate) enum Pending {
    Decided(Decided),
    /// The store is elsewhere.
    Asked(Pin<Box<dyn Future<Output = Decided> + Send>>),
}

impl Pending {
    /// What becomes of an admission. What the request holds is given back with the decision.
    pub(crate) fn of(admission: Admission) -> Self {
        match admission {
            adapter::Admission::Proceed(paid) => Self::Decided(decision(Ok(paid))),
            adapter::Admission::Refuse(refusal) => Self::Decided(decision(Err(refusal))),
            adapter::Admission::Pending(pending) => {
                Self::Asked(Box::pin(async move { decision(pending.await) }))
            }
        }
    }

    pub(crate) async fn decided(self) -> Decided {
        match self {
            Self::Decided(decided) => decided,
            Self::Asked(future) => future.await,
        }
    }
}

impl Service {
    /// Takes a request through core's admission, by what `rule` says about it. A client that knows better gives a
    /// shorter `deadline` than that of the service.
    pub(crate) fn admit<V: View>(
        &self,
        rule: &impl Rule<V>,
        view: &V,
        deadline: Duration,
    ) -> Admission {
        self.enforcer().admit(rule, view, || self.with_deadline(deadline))
    }

    /// Charges a request that is described by its charge. What it holds is given back at once: nobody says when it ends.
    pub(crate) fn take(&self, charge: Charge, deadline: Duration) -> Pending {
        Pending::of(self.enforcer().admit_charge(charge, || self.with_deadline(deadline)))
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
            Err(error) if self.on_store_error() == OnStoreError::Admit && !error.must_refuse() => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn with_deadline(&self, deadline: Duration) -> Arc<Enforcer> {
        if self.enforcer().deadline == Some(deadline) {
            return Arc::clone(self.enforcer());
        }
        let mut enforcer = Enforcer::clone(self.enforcer());
        enforcer.deadline = Some(deadline);
        Arc::new(enforcer)
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
