//! Reports decisions to operators. Everything about that is here.

use std::sync::Arc;

use crate::admission::gate::Treatment;
use crate::clock::Clock;
use crate::key::Missing;
use crate::limit::{Decision, LimitStatus, Outcome, OutcomeInternals as _};
use crate::observe::counts::Counters;
use crate::observe::meter::{Meter, VerdictLabel};
use crate::observe::report;
use crate::observe::show::ShowKeys;
use crate::observe::watch::Watch;
use crate::store::charge::Charge;
use crate::store::{OnStoreError, StoreError};

/// Reports decisions to operators: through counters, metrics, events and a [`Watch`].
///
/// It is called once for each decision, and only this type decides what is reported.
#[derive(Debug, Clone)]
pub struct Observer {
    /// How often something other than passing at once happened.
    pub counters: Arc<Counters>,
    /// Where the most refused keys are noted.
    pub watch: Option<Watch>,
    /// What events show of keys.
    pub show_keys: ShowKeys,
    pub(crate) meter: Meter,
    /// Whether events are written. A `Limiter` returns the same information to its caller instead.
    pub(crate) events: bool,
}

/// The result for a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event<'a> {
    /// It goes ahead at once.
    Admitted(&'a Charge, &'a Outcome),
    /// It goes ahead after a wait.
    Waits(&'a Charge, &'a Outcome),
    /// A limit is exceeded, and this is what happens to the request.
    Exceeded(&'a Charge, &'a Decision, &'a Treatment),
    /// It lacks what its key is made of.
    Incomplete(&'a Missing),
    /// The store did not decide.
    StoreFailed(&'a StoreError, OnStoreError),
    /// It was answered, and nobody has read what that cost.
    Unread,
}

impl Default for Observer {
    fn default() -> Self {
        Self {
            counters: Arc::default(),
            watch: None,
            show_keys: ShowKeys::default(),
            meter: Meter::default(),
            events: true,
        }
    }
}

impl Observer {
    /// Writes no events, because the caller gets each decision anyway.
    pub fn without_events() -> Self {
        Self { events: false, ..Self::default() }
    }

    /// Reports the result for a request.
    #[inline(always)]
    pub(crate) fn saw(&self, clock: &Clock, event: Event<'_>) {
        if let Some(watch) = &self.watch {
            if let Event::Admitted(charge, _)
            | Event::Waits(charge, _)
            | Event::Exceeded(charge, ..) = event
            {
                watch.saw_request(clock, charge);
            }
        }
        match event {
            Event::Admitted(charge, outcome) => {
                self.meter.admitted(charge, outcome);
                if outcome.has_notes() || cfg!(feature = "tracing") && charge.has_soft() {
                    self.saw_admitted(clock, charge, outcome);
                }
            }
            event => self.saw_otherwise(clock, event),
        }
    }

    /// Reports a decision about a request that does not queue, and returns it.
    ///
    /// # Errors
    ///
    /// The store's.
    pub fn decided(
        &self,
        clock: &Clock,
        outcome: Result<Outcome, StoreError>,
        charge: &Charge,
    ) -> Result<Decision, StoreError> {
        let outcome = outcome.inspect_err(|error| {
            self.saw(clock, Event::StoreFailed(error, OnStoreError::Refuse));
        })?;
        let decision = outcome.decision(charge);
        self.saw(
            clock,
            match decision.is_admitted() {
                true if outcome.wait().is_zero() => Event::Admitted(charge, &outcome),
                true => Event::Waits(charge, &outcome),
                false => Event::Exceeded(charge, &decision, &Treatment::Reject),
            },
        );
        Ok(decision)
    }

    /// Reports a decision that was made from what a store has counted, and not by the store, about this charge.
    pub fn judged(&self, clock: &Clock, decision: &Decision, charge: &Charge) {
        if !decision.is_admitted() {
            return self.saw_exceeded(clock, charge, decision, &Treatment::Reject);
        }
        self.meter.judged(decision);
        if decision.statuses().any(|status| status.shadowed) {
            self.saw_trial(clock, decision, charge);
        }
    }

    #[inline(never)]
    fn saw_otherwise(&self, clock: &Clock, event: Event<'_>) {
        match event {
            Event::Admitted(charge, outcome) => self.saw_admitted(clock, charge, outcome),
            Event::Waits(charge, outcome) => {
                self.saw_notes(clock, charge, outcome);
                self.counters.waited.add();
                self.meter.waited(charge, outcome);
            }
            Event::Exceeded(charge, decision, treatment) => {
                self.saw_exceeded(clock, charge, decision, treatment);
            }
            Event::Incomplete(missing) => {
                self.counters.keyless.add();
                self.meter.keyless(missing);
                let is_due = missing.is_client() || self.counters.failures.is_over(clock.now());
                if self.events && is_due {
                    report::keyless(missing, self.counters.read().keyless);
                }
            }
            Event::StoreFailed(error, then) => {
                self.counters.store_failures.add();
                self.meter.failed(error);
                if self.events && self.counters.failures.is_over(clock.now()) {
                    report::store_failed(error, then, self.counters.read().store_failures);
                }
            }
            Event::Unread => {
                self.counters.unread.add();
                self.meter.unread();
                if self.events && self.counters.unread_reports.is_over(clock.now()) {
                    report::unread(self.counters.read().unread);
                }
            }
        }
    }

    #[inline(never)]
    fn saw_admitted(&self, clock: &Clock, charge: &Charge, outcome: &Outcome) {
        self.saw_notes(clock, charge, outcome);
        if !self.events || !charge.has_soft() {
            return;
        }
        for (at, debit) in charge.debits().enumerate() {
            let (_, _, is_soft) = outcome.left_of(at, &debit.limit);
            if is_soft && self.counters.soft.is_over(clock.now()) {
                report::soft(&debit.limit, self.show_keys.show(&debit.key));
            }
        }
    }

    /// An admitted request may have exceeded a limit on trial, and the store may have had no room to count it.
    fn saw_notes(&self, clock: &Clock, charge: &Charge, outcome: &Outcome) {
        if outcome.is_shadowed() {
            self.saw_trial(clock, &outcome.decision(charge), charge);
        }
        if outcome.is_uncounted() {
            self.counters.uncounted.add();
            if self.events && self.counters.full.is_over(clock.now()) {
                report::uncounted(&outcome.decision(charge), self.counters.read().uncounted);
            }
        }
    }

    fn saw_trial(&self, clock: &Clock, decision: &Decision, charge: &Charge) {
        self.counters.shadowed.add();
        if let Some(watch) = &self.watch {
            watch.saw(decision, charge);
        }
        let how = "would have been refused or held up by a limit on trial";
        self.report_trial(clock, decision, charge, how, |status| status.shadowed);
    }

    fn saw_exceeded(
        &self,
        clock: &Clock,
        charge: &Charge,
        decision: &Decision,
        treatment: &Treatment,
    ) {
        if let Some(watch) = &self.watch {
            watch.saw(decision, charge);
        }
        let Counters { refused, redirected, degraded, shadowed, .. } = &*self.counters;
        let (counter, label, how) = match treatment {
            Treatment::Reject if decision.is_banned() => (refused, VerdictLabel::Banned, "refused"),
            Treatment::Reject => (refused, VerdictLabel::Refused, "refused"),
            Treatment::Redirect(_) => (redirected, VerdictLabel::Redirected, "redirected"),
            Treatment::Degrade => (degraded, VerdictLabel::Degraded, "served less"),
            Treatment::Shadow => (shadowed, VerdictLabel::Shadowed, "would have been refused"),
        };
        counter.add();
        self.meter.exceeded(decision, label);
        if *treatment == Treatment::Shadow {
            return self.report_trial(clock, decision, charge, how, |status| status.refused);
        }
        if !self.events {
            return;
        }
        let who = || self.who(decision, charge, |status| status.refused);
        if decision.is_banned() && self.counters.bans.is_over(clock.now()) {
            report::banned(decision, who, how);
        } else {
            report::refused(decision, who, how);
        }
    }

    /// Reports a request that a limit on trial would have refused: once a second to operators, the others for
    /// debugging. A trial runs under full traffic.
    fn report_trial(
        &self,
        clock: &Clock,
        decision: &Decision,
        charge: &Charge,
        how: &str,
        on_trial: fn(&LimitStatus) -> bool,
    ) {
        if !self.events {
            return;
        }
        let is_due = self.counters.trials.is_over(clock.now());
        let so_far = is_due.then(|| self.counters.read().shadowed);
        report::on_trial(decision, || self.who(decision, charge, on_trial), on_trial, so_far, how);
    }

    /// What events show of the key that is refused, or would be. If there are several, the first one.
    fn who(
        &self,
        decision: &Decision,
        charge: &Charge,
        is_meant: impl Fn(&LimitStatus) -> bool,
    ) -> Option<String> {
        let mut statuses = decision.statuses().zip(charge.debits());
        let (_, debit) = statuses.find(|(status, _)| is_meant(status))?;
        self.show_keys.show(&debit.key)
    }
}
