//! The consequences of a store's answer.

use std::time::Duration;

use crate::admission::enforcer::Enforcer;
use crate::admission::gate::{QueuePermit, Treatment};
use crate::admission::paid::Served;
use crate::admission::refusal::Refusal;
use crate::limit::{Decision, Outcome};
use crate::observe::observer::{Event, Exceeded};
use crate::store::charge::Charge;
use crate::store::{OnStoreError, StoreError};

/// The consequences of a store's answer.
#[derive(Debug)]
pub(crate) enum Action {
    /// Calls the service.
    Serve(Served),
    /// Waits, then calls the service. The permit is kept until then.
    Wait(Duration, Outcome, QueuePermit),
    /// Answers, and does not call the service.
    Refuse(Refusal),
}

impl<S> Enforcer<S> {
    /// The result for a request once the store has answered.
    pub(crate) fn judge(
        &self,
        outcome: Result<Outcome, StoreError>,
        charge: &Charge,
        permit: Option<QueuePermit>,
    ) -> Action {
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => return self.without_store(error),
        };
        if !outcome.is_admitted() {
            let decision = Box::new(outcome.decision(charge));
            // The queue had no room for it, which does not mean that it can never be admitted.
            let is_crowded = decision.never_fits() && charge.is_crowded_out(self.gate.longest());
            let decision = if is_crowded { Box::new(decision.for_now()) } else { decision };
            return self.exceeded(decision, charge);
        }
        match self.gate.admit(outcome.wait()) {
            Some(wait) => {
                self.observer.saw(&self.clock, Event::Waits(charge, &outcome));
                Action::Wait(wait, outcome, self.gate.seat(permit))
            }
            None => {
                self.observer.saw(&self.clock, Event::Admitted(charge, &outcome));
                Action::Serve(Served::Charged(outcome))
            }
        }
    }

    fn exceeded(&self, decision: Box<Decision>, charge: &Charge) -> Action {
        let treatment = self.gate.treat(&decision);
        let exceeded = match treatment {
            Treatment::Degrade => Exceeded::Degraded,
            Treatment::Shadow => Exceeded::Shadowed,
            Treatment::Redirect(_) => Exceeded::Redirected,
            Treatment::Reject => Exceeded::Refused,
        };
        self.observer.saw(&self.clock, Event::Exceeded(charge, &decision, exceeded));
        match treatment {
            Treatment::Degrade => Action::Serve(Served::Degraded(decision)),
            Treatment::Shadow => Action::Serve(Served::Shadowed(decision)),
            Treatment::Redirect(redirect) => Action::Refuse(Refusal::Elsewhere(decision, redirect)),
            Treatment::Reject if decision.never_fits() => {
                let status = self.status_of_never(&decision, charge);
                Action::Refuse(Refusal::NeverFits(decision, status))
            }
            Treatment::Reject => Action::Refuse(Refusal::TooMany(decision)),
        }
    }

    /// HTTP has a status for a body that is too large. Other costs get 422: 400 is for a request without a key,
    /// 403 is about who the client is, and this request is understood and allowed, but too large.
    fn status_of_never(&self, decision: &Decision, charge: &Charge) -> u16 {
        let mut refused = decision.statuses().zip(charge.debits());
        let is_length = refused.any(|(status, debit)| status.refused && debit.is_length);
        self.never_fits_status.unwrap_or(if is_length { 413 } else { 422 })
    }

    /// A store's failure is not the client's fault: the request passes, or gets 503.
    #[cold]
    fn without_store(&self, error: StoreError) -> Action {
        self.observer.saw(&self.clock, Event::StoreFailed(&error, self.on_store_error));
        match self.on_store_error {
            OnStoreError::Admit if error.must_refuse() => {
                Action::Refuse(Refusal::Unavailable(error))
            }
            OnStoreError::Admit => Action::Serve(Served::Unknown),
            OnStoreError::Refuse => Action::Refuse(Refusal::Unavailable(error)),
        }
    }
}
