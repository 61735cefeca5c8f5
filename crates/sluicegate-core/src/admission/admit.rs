//! Takes a request through a decision. This is the only place where that is written.

use crate::admission::enforcer::Enforcer;
use crate::admission::gate::QueuePermit;
use crate::admission::judge::Action;
use crate::admission::paid::{AsEnforcer, Paid, Served};
use crate::admission::pending::Pending;
use crate::admission::refusal::Refusal;
use crate::clock::sleep::Timer;
use crate::key::{Missing, View};
use crate::observe::observer::Event;
use crate::rule::Rule;
use crate::store::charge::Charge;
use crate::store::{Answer, Store};

/// The result for a request.
///
/// `P` is what the request has paid: [`Paid`], or for [`Enforcer::ask`] how it is [`Served`].
#[derive(Debug)]
pub enum Admission<P, E: AsEnforcer, T: Timer> {
    /// The adapter calls the service now.
    Proceed(P),
    /// The adapter answers, and does not call the service.
    Refuse(Refusal),
    /// The store has to be awaited, or the request waits for its turn.
    Pending(Pending<E, T>),
}

/// A request that does not go ahead at once: see [`Enforcer::admit_at_once`].
#[derive(Debug)]
#[must_use]
pub struct Undecided<S: Store>(Cause<S::Future>);

#[derive(Debug)]
enum Cause<F> {
    /// The rule could not work out what the request is charged.
    Incomplete(Missing),
    /// The store's answer is not a plain yes.
    Asked(Answer<F>, Option<QueuePermit>),
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
        enforcer: impl Fn() -> E,
    ) -> Admission<Paid<E>, E, T>
    where
        V: View,
        E: AsEnforcer<Store = S>,
        T: Timer,
    {
        let mut charge = Charge::new();
        match self.admit_at_once(rule, view, &mut charge, &enforcer) {
            Ok(paid) => Admission::Proceed(paid),
            Err(undecided) => self.admit_otherwise(undecided, &mut charge, &enforcer),
        }
    }

    /// The first half of [`admit`](Self::admit): decides about a request that goes ahead at once, as most do.
    ///
    /// An adapter that calls both halves handles that case in place, where nothing large is moved about. So the
    /// `charge`, an empty one, is the adapter's.
    ///
    /// # Errors
    ///
    /// What to call [`admit_otherwise`](Self::admit_otherwise) with, for all other requests.
    #[inline(always)]
    pub fn admit_at_once<V, E>(
        &self,
        rule: &impl Rule<V>,
        view: &V,
        charge: &mut Charge,
        enforcer: impl Fn() -> E,
    ) -> Result<Paid<E>, Undecided<S>>
    where
        V: View,
        E: AsEnforcer<Store = S>,
    {
        if let Err(missing) = rule.charge(view, charge) {
            return Err(Undecided(Cause::Incomplete(missing)));
        }
        if charge.is_empty() {
            return Ok(Paid::nothing());
        }
        let permit = self.queue(charge);
        let mut answer = self.store.take(charge);
        if let Some(outcome) = answer.at_once() {
            self.observer.saw(&self.clock, Event::Admitted(charge, outcome));
            return Ok(Paid::charged(enforcer(), charge, outcome));
        }
        Err(Undecided(Cause::Asked(answer, permit)))
    }

    /// The second half of [`admit`](Self::admit), for requests that do not go ahead at once, with the charge of the first
    /// half.
    #[inline(never)]
    pub fn admit_otherwise<E, T>(
        &self,
        undecided: Undecided<S>,
        charge: &mut Charge,
        enforcer: impl Fn() -> E,
    ) -> Admission<Paid<E>, E, T>
    where
        E: AsEnforcer<Store = S>,
        T: Timer,
    {
        let (answer, permit) = match undecided.0 {
            Cause::Asked(answer, permit) => (answer, permit),
            Cause::Incomplete(missing) => return Admission::Refuse(self.incomplete(missing)),
        };
        match self.act_on(answer, charge, permit, &enforcer) {
            Admission::Proceed(served) => Admission::Proceed(served.paid(charge, enforcer)),
            Admission::Refuse(refusal) => Admission::Refuse(refusal),
            Admission::Pending(pending) => Admission::Pending(pending),
        }
    }

    /// Asks the store about an existing charge. The request does not queue at the gate: the charge says how long it
    /// may wait.
    #[inline]
    pub fn ask<E, T>(
        &self,
        charge: &mut Charge,
        enforcer: impl Fn() -> E,
    ) -> Admission<Served, E, T>
    where
        E: AsEnforcer<Store = S>,
        T: Timer,
    {
        let answer = self.store.take(charge);
        self.act_on(answer, charge, None, &enforcer)
    }

    /// Takes the charge where the request has to wait.
    fn act_on<E, T>(
        &self,
        answer: Answer<S::Future>,
        charge: &mut Charge,
        permit: Option<QueuePermit>,
        enforcer: &impl Fn() -> E,
    ) -> Admission<Served, E, T>
    where
        E: AsEnforcer<Store = S>,
        T: Timer,
    {
        let outcome = match answer {
            Answer::Now(outcome) => outcome,
            Answer::Later(answer) => {
                let charge = std::mem::take(charge);
                return Admission::Pending(Pending::deciding(answer, charge, permit, enforcer()));
            }
        };
        match self.judge(outcome, charge, permit) {
            Action::Serve(served) => Admission::Proceed(served),
            Action::Wait(wait, outcome, permit) => {
                let charge = std::mem::take(charge);
                Admission::Pending(Pending::waiting(wait, outcome, charge, permit, enforcer()))
            }
            Action::Refuse(refusal) => Admission::Refuse(refusal),
        }
    }
}

impl<S> Enforcer<S> {
    /// Takes a permit to queue, if there is one, and makes the charge as patient as the queue is long. Where the
    /// queue is full, the request does not wait in a limit's own queue either.
    #[inline]
    pub(crate) fn queue(&self, charge: &mut Charge) -> Option<QueuePermit> {
        let longest = self.gate.longest()?;
        let permit = self.gate.permit().map(|(permit, _)| permit);
        match permit {
            Some(_) => charge.wait_up_to(longest),
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
