//! Takes a request through a decision. This is the only place where that is written.

use crate::admission::enforcer::{AsEnforcer, Enforcer};
use crate::admission::gate::{QueuePermit, Treatment};
use crate::admission::paid::Paid;
use crate::admission::pending::{Pending, Served};
use crate::admission::refusal::Refusal;
use crate::clock::sleep::Timer;
use crate::key::{Missing, View};
use crate::limit::{Decision, Outcome, OutcomeInternals as _};
use crate::observe::observer::Event;
use crate::rule::Rule;
use crate::store::charge::{Charge, CostKind};
use crate::store::{Answer, OnStoreError, Store, StoreError};

/// The result for a request.
#[derive(Debug)]
pub enum Admission<E: AsEnforcer, T: Timer> {
    /// The adapter calls the service now.
    Proceed(Paid<E>),
    /// The adapter answers, and does not call the service.
    Refuse(Refusal),
    /// The store has to be awaited, or the request waits for its turn.
    Pending(Pending<E, T>),
}

impl<S: Store> Enforcer<S> {
    /// Decides about a request: charges it by `rule`, asks the store, and returns what to do.
    ///
    /// `enforcer` makes the handle to this enforcer that a request under way keeps.
    #[inline(always)]
    pub fn admit<V, E, T>(
        &self,
        rule: &impl Rule<V>,
        view: &V,
        enforcer: impl FnOnce() -> E,
    ) -> Admission<E, T>
    where
        V: View,
        E: AsEnforcer<Store = S>,
        T: Timer,
    {
        // Written in place by the rule, and lent to the store. It is taken only on the rare paths that keep it.
        let mut charge = Charge::new();
        if let Err(missing) = rule.charge(view, &mut charge) {
            let refusal = self.incomplete(missing);
            return match self.gate.is_trial() {
                true => Admission::Proceed(Paid::nothing()),
                false => Admission::Refuse(refusal),
            };
        }
        if charge.is_empty() {
            return Admission::Proceed(Paid::nothing());
        }
        // Before the store is asked: with a permit in hand, the request may book a place ahead. Asking first would book
        // places for requests that then find the queue full.
        let permit = self.queue(&mut charge);
        self.ask(&mut charge, permit, enforcer)
    }

    /// Decides about an existing charge. The request does not queue at the gate: the charge says how long it may wait.
    #[inline]
    pub fn admit_charge<E, T>(
        &self,
        mut charge: Charge,
        enforcer: impl FnOnce() -> E,
    ) -> Admission<E, T>
    where
        E: AsEnforcer<Store = S>,
        T: Timer,
    {
        self.ask(&mut charge, None, enforcer)
    }

    /// Asks the store. Takes the charge where it has to be kept.
    #[inline(always)]
    fn ask<E, T>(
        &self,
        charge: &mut Charge,
        permit: Option<QueuePermit>,
        enforcer: impl FnOnce() -> E,
    ) -> Admission<E, T>
    where
        E: AsEnforcer<Store = S>,
        T: Timer,
    {
        // What nearly every request meets is decided here, in place: the charge and the outcome are large, and moving
        // what has just been written makes the processor wait.
        let answer = self.store.take(charge);
        if let Answer::Now(Ok(outcome)) = &answer {
            if outcome.is_at_once() {
                self.observer.saw(&self.clock, Event::Admitted(charge, outcome));
            }
        }
        match answer {
            Answer::Now(Ok(outcome)) if outcome.is_at_once() => {
                Admission::Proceed(Paid::open(enforcer(), charge, outcome))
            }
            answer => self.act_on(answer, charge, permit, enforcer()),
        }
    }

    #[inline(never)]
    fn act_on<E, T>(
        &self,
        answer: Answer<S::Future>,
        charge: &mut Charge,
        permit: Option<QueuePermit>,
        enforcer: E,
    ) -> Admission<E, T>
    where
        E: AsEnforcer<Store = S>,
        T: Timer,
    {
        let outcome = match answer {
            Answer::Now(outcome) => outcome,
            Answer::Later(answer) => {
                let charge = std::mem::take(charge);
                return Admission::Pending(Pending::deciding(answer, charge, permit, enforcer));
            }
        };
        match Self::judge(enforcer, outcome, charge, permit) {
            Ok((paid, None)) => Admission::Proceed(paid),
            Ok((paid, Some((wait, permit)))) => {
                Admission::Pending(Pending::waiting(paid, wait, permit))
            }
            Err(refusal) => Admission::Refuse(refusal),
        }
    }
}

impl<S: Store> Enforcer<S> {
    /// The consequences of the store's answer, for a request that keeps the handle `enforcer`.
    pub(crate) fn judge<E: AsEnforcer<Store = S>>(
        enforcer: E,
        outcome: Result<Outcome, StoreError>,
        charge: &mut Charge,
        permit: Option<QueuePermit>,
    ) -> Result<Served<E>, Refusal> {
        let Self { gate, observer, clock, .. } = enforcer.as_enforcer();
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => return enforcer.as_enforcer().without_store(error, charge),
        };
        if !outcome.is_admitted() {
            let decision = Box::new(outcome.decision(&*charge));
            // `crowd_out` has set the patience to zero, and a store answers "never" to a cost that needs some wait even
            // in an empty queue. With a place in the queue it would fit, so the client may try again.
            let is_crowded = decision.never_fits() && charge.is_crowded_out(gate.longest());
            let decision = if is_crowded { Box::new(decision.for_now()) } else { decision };
            return Ok((Self::exceeded(enforcer, decision, charge)?, None));
        }
        match gate.admit(outcome.wait()) {
            Some(wait) => {
                observer.saw(clock, Event::Waits(charge, &outcome));
                let permit = gate.seat(permit);
                Ok((Paid::new(enforcer, std::mem::take(charge), outcome), Some((wait, permit))))
            }
            None => {
                let is_told_to_wait = gate.tells_waits() && !outcome.wait().is_zero();
                observer.saw(
                    clock,
                    match is_told_to_wait {
                        true => Event::Waits(charge, &outcome),
                        false => Event::Admitted(charge, &outcome),
                    },
                );
                Ok((Paid::open(enforcer, charge, outcome), None))
            }
        }
    }

    fn exceeded<E: AsEnforcer<Store = S>>(
        enforcer: E,
        decision: Box<Decision>,
        charge: &Charge,
    ) -> Result<Paid<E>, Refusal> {
        let settings = enforcer.as_enforcer();
        let treatment = settings.gate.treat(&decision);
        settings.observer.saw(&settings.clock, Event::Exceeded(charge, &decision, &treatment));
        match treatment {
            Treatment::Degrade => Ok(Paid::degraded(enforcer, decision)),
            Treatment::Shadow => Ok(Paid::shadowed(decision)),
            Treatment::Redirect(redirect) => Err(Refusal::Elsewhere(decision, redirect)),
            Treatment::Reject if decision.never_fits() => {
                let status = settings.status_of_never(&decision, charge);
                Err(Refusal::NeverFits(decision, status))
            }
            Treatment::Reject => Err(Refusal::TooMany(decision)),
        }
    }

    /// HTTP has a status for a body that is too large. Other costs get 422: 400 is for a request without a key,
    /// 403 is about who the client is, and this request is understood and allowed, but too large.
    fn status_of_never(&self, decision: &Decision, charge: &Charge) -> u16 {
        let refused = decision.statuses().zip(charge.debits());
        let refused = refused.filter(|(status, _)| status.refused).map(|(_, debit)| debit.kind);
        match refused.max() {
            // Nothing is wrong with the request.
            Some(CostKind::Block) => 429,
            Some(CostKind::Length) => self.never_fits_status.unwrap_or(413),
            Some(CostKind::Amount) | None => self.never_fits_status.unwrap_or(422),
        }
    }

    /// A store's failure is not the client's fault: the request passes, or gets 503.
    #[cold]
    fn without_store<E: AsEnforcer>(
        &self,
        error: StoreError,
        charge: &Charge,
    ) -> Result<Served<E>, Refusal> {
        let then = self.when_undecided(&error, charge);
        self.observer.saw(&self.clock, Event::StoreFailed(&error, then));
        match then {
            OnStoreError::Admit => Ok((Paid::nothing(), None)),
            OnStoreError::Refuse => Err(Refusal::Unavailable(error)),
        }
    }

    /// What happens to a request with this charge about which the store could not decide.
    pub fn when_undecided(&self, error: &StoreError, charge: &Charge) -> OnStoreError {
        // What is on trial refuses nobody.
        if self.gate.is_trial() || charge.is_trial() {
            return OnStoreError::Admit;
        }
        // A limit that says "refuse when full" has been asked for this case in particular, so it outweighs the
        // setting for failures in general.
        if error.must_refuse() { OnStoreError::Refuse } else { self.on_store_error }
    }

    /// Takes a permit to queue, if there is one, and makes the charge as patient as the queue is long. Where the
    /// queue is full, the request does not wait in a limit's own queue either.
    #[inline]
    pub(crate) fn queue(&self, charge: &mut Charge) -> Option<QueuePermit> {
        let longest = self.gate.longest()?;
        let permit = self.gate.permit().map(|(permit, _)| permit);
        match permit {
            Some(_) => charge.wait_up_to(longest),
            // Otherwise the places of a leaky bucket would be a way around the bound on all that wait.
            None => charge.crowd_out(),
        }
        permit
    }

    /// The answer to a request without a key.
    #[cold]
    pub(crate) fn incomplete(&self, missing: Missing) -> Refusal {
        self.observer.saw(&self.clock, Event::Incomplete(&missing));
        match missing.is_client() {
            true => Refusal::Incomplete(missing),
            false => Refusal::Misconfigured(missing),
        }
    }
}
