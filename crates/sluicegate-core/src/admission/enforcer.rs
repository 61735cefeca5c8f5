//! What an adapter is told beside its rule, and what it does about a decision.

use std::sync::Arc;
use std::time::Duration;

use crate::admission::gate::{Gate, Place, Step};
use crate::admission::hold::Hold;
use crate::admission::known::Known;
use crate::admission::paid::Served;
use crate::admission::refusal::Refusal;
use crate::clock::Clock;
use crate::http::headers::Fields;
use crate::key::Missing;
use crate::limit::{Decision, LimitStatus, Outcome};
use crate::observe::counts::Counters;
use crate::observe::meter::{Meter, Told};
use crate::observe::report;
use crate::observe::show::ShowKeys;
use crate::observe::watch::Watch;
use crate::rule::KnownLimits;
use crate::store::OnStoreError;
use crate::store::charge::Charge;
use crate::store::memory::Memory;
use crate::store::{Store, StoreError};

/// How long an adapter waits for a store that is not in this process, unless told otherwise. Stores
/// keep deadlines of their own; this one holds for those that do not.
const DEADLINE: Duration = Duration::from_secs(1);

/// All that a layer is told beside its rule: for adapters, which carry out what it says.
#[derive(Debug, Clone)]
pub struct Policy<S> {
    /// Where counts are kept.
    pub store: S,
    /// The clock that waiting goes by: the store's.
    pub clock: Clock,
    /// What happens to requests that exceed a limit.
    pub gate: Gate,
    /// Which header fields are written.
    pub fields: Fields,
    /// Whether decisions are left in the extensions of requests and responses.
    pub extensions: bool,
    /// What happens when the store cannot decide.
    pub on_store_error: OnStoreError,
    /// How long to wait for a store that is not in this process.
    pub deadline: Duration,
    /// The status of a request that can never be admitted; `None` for 413 or 422, as its cost is measured.
    pub never_fits_status: Option<u16>,
    /// Until when a served request holds its places.
    pub hold: Hold,
    /// What happened so far.
    pub counters: Arc<Counters>,
    /// What decisions are measured with.
    pub meter: Meter,
    /// Who is told of refusals.
    pub watch: Option<Watch>,
    /// What events show of keys.
    pub show_keys: ShowKeys,
    /// The limits that are known before any request is: what a charge to one of them needs to remember
    /// of it is where it stands here.
    pub known: Arc<[Known]>,
}

impl Policy<Memory> {
    /// Counts in the memory of this process.
    ///
    /// # Panics
    ///
    /// When a limit is a log that is [too long](crate::Limit::check_length).
    #[track_caller]
    pub fn in_memory(rule: &impl KnownLimits) -> Self {
        let store = Memory::new();
        must_keep(&store, rule);
        Self::new(store, rule)
    }
}

impl<S: Store> Policy<S> {
    /// What holds where nothing else is said.
    pub fn new(store: S, rule: &impl KnownLimits) -> Self {
        let mut known = Vec::new();
        rule.each_limit(&mut |limit| known.push(Known::new(limit)));
        Self {
            known: known.into(),
            clock: store.clock(),
            store,
            gate: Gate::default(),
            fields: Fields::default(),
            extensions: true,
            on_store_error: OnStoreError::default(),
            deadline: DEADLINE,
            never_fits_status: None,
            hold: Hold::default(),
            counters: Arc::default(),
            meter: Meter::default(),
            watch: None,
            show_keys: ShowKeys::default(),
        }
    }
}

/// What an adapter does with a request.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "it is taken apart where it is returned")]
pub enum Course {
    /// Calls the service.
    Serve(Served),
    /// Waits, then calls the service. The place is held until then: it counts among those that wait.
    Wait(Duration, Outcome, Place),
    /// Answers, and does not call the service.
    Refuse(Refusal),
}

/// A status that an operator gives to requests that can never be admitted.
///
/// # Panics
///
/// When it is not a client's error, 400 to 499: the others say something else, or invite to try again.
#[track_caller]
pub fn client_error(status: u16) -> Option<u16> {
    assert!(
        matches!(status, 400..=499) && status != 429,
        "{status} does not tell the client that its request can never be admitted: use one from 400 to 499, and not 429",
    );
    Some(status)
}

/// Refuses to begin with a store that cannot keep the limits.
///
/// # Panics
///
/// When the store cannot keep one of them.
#[track_caller]
pub fn must_keep(store: &impl Store, limits: &impl KnownLimits) {
    limits.each_limit(&mut |limit| {
        if let Err(reason) = store.check(limit) {
            panic!("the store cannot keep the limit `{limit}`: {reason}");
        }
    });
}

impl<S> Policy<S> {
    /// The same with another store.
    ///
    /// # Panics
    ///
    /// When the store cannot keep a limit of `rule`.
    #[track_caller]
    pub fn with_store<T: Store>(self, store: T, rule: &impl KnownLimits) -> Policy<T> {
        must_keep(&store, rule);
        Policy {
            clock: store.clock(),
            store,
            gate: self.gate,
            fields: self.fields,
            extensions: self.extensions,
            on_store_error: self.on_store_error,
            deadline: self.deadline,
            never_fits_status: self.never_fits_status,
            hold: self.hold,
            counters: self.counters,
            meter: self.meter,
            watch: self.watch,
            show_keys: self.show_keys,
            known: self.known,
        }
    }

    /// Takes a place in the queue for a request, if there is one, and makes its charge as patient as
    /// that queue is long. Where the queue is full, nobody waits in a limit's own queue either.
    #[inline]
    pub fn queue(&self, charge: &mut Charge) -> Option<Place> {
        let longest = self.gate.longest()?;
        let place = self.gate.place().map(|(place, _)| place);
        match place {
            Some(_) => charge.wait_up_to(longest),
            None => charge.crowd_out(),
        }
        place
    }

    /// What becomes of a request that lacks a key.
    pub fn keyless(&self, missing: Missing) -> Refusal {
        self.counters.keyless.add();
        self.meter.keyless(&missing);
        if missing.is_client() || self.counters.told.is_over(self.clock.now()) {
            report::keyless(&missing, self.counters.read().keyless);
        }
        Refusal::Missing(missing)
    }
}

impl<S> Policy<S> {
    /// The request goes ahead at once, as most do: for adapters that ask no more of the policy then.
    #[inline(always)]
    pub fn admitted(&self, charge: &Charge, outcome: &Outcome) {
        self.meter.admitted(charge, outcome);
        if cfg!(feature = "tracing") && charge.has_soft() {
            self.warn(charge, outcome);
        }
    }

    /// Tells the operator of a soft limit that is exceeded.
    #[inline(never)]
    fn warn(&self, charge: &Charge, outcome: &Outcome) {
        for (at, debit) in charge.debits().enumerate() {
            let (_, _, is_soft) = outcome.left_of(at, &debit.limit);
            if is_soft && self.counters.soft.is_over(self.clock.now()) {
                report::soft(&debit.limit, self.show_keys.show(&debit.key));
            }
        }
    }
}

impl<S: Store> Policy<S> {
    /// What becomes of a request once the store has answered; `place` is the one that
    /// [`queue`](Self::queue) took for it.
    #[inline]
    pub fn judge(
        &self,
        outcome: Result<Outcome, StoreError>,
        charge: &Charge,
        place: Option<Place>,
    ) -> Course {
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => return self.without_store(error),
        };
        if !outcome.is_admitted() {
            let decision = outcome.decision(charge);
            // No place was free for it: that is no reason to tell it that it never fits.
            let is_crowded = decision.never_fits() && charge.is_crowded_out(self.gate.longest());
            return self.refuse(if is_crowded { decision.for_now() } else { decision }, charge);
        }
        if outcome.is_shadowed() {
            self.overshadowed(&outcome, charge);
        }
        if outcome.is_uncounted() {
            self.uncounted(&outcome, charge);
        }
        match self.gate.admit(outcome.wait()) {
            Some(wait) => {
                self.counters.waited.add();
                self.meter.waited(charge, &outcome);
                Course::Wait(wait, outcome, self.gate.seat(place))
            }
            None => {
                self.admitted(charge, &outcome);
                Course::Serve(Served::Charged(outcome))
            }
        }
    }

    /// The request goes ahead, and a limit on trial would have kept it.
    #[cold]
    fn overshadowed(&self, outcome: &Outcome, charge: &Charge) {
        self.counters.shadowed.add();
        let decision = outcome.decision(charge);
        if let Some(watch) = &self.watch {
            watch.saw(&decision, charge);
        }
        let how = "would have been refused or held up by a limit on trial";
        self.report_trial(&decision, charge, how, |status| status.shadowed);
    }

    /// The request goes ahead, and the store had no room to count one of its limits.
    #[cold]
    fn uncounted(&self, outcome: &Outcome, charge: &Charge) {
        self.counters.uncounted.add();
        if self.counters.full.is_over(self.clock.now()) {
            report::uncounted(&outcome.decision(charge), self.counters.read().uncounted);
        }
    }

    #[inline(never)]
    fn refuse(&self, decision: Decision, charge: &Charge) -> Course {
        if let Some(watch) = &self.watch {
            watch.saw(&decision, charge);
        }
        let Counters { degraded, shadowed, redirected, refused, .. } = &*self.counters;
        match self.gate.refuse(&decision) {
            Step::Degrade => {
                degraded.add();
                self.meter.exceeded(&decision, Told::Degraded);
                self.report_refused(&decision, charge, "served less");
                Course::Serve(Served::Degraded(Box::new(decision)))
            }
            Step::Shadow => {
                shadowed.add();
                self.meter.exceeded(&decision, Told::Shadowed);
                let how = "would have been refused";
                self.report_trial(&decision, charge, how, |status| status.refused);
                Course::Serve(Served::Shadowed(Box::new(decision)))
            }
            Step::Redirect(redirect) => {
                redirected.add();
                self.meter.exceeded(&decision, Told::Redirected);
                self.report_refused(&decision, charge, "redirected");
                Course::Refuse(Refusal::Elsewhere(decision, redirect))
            }
            Step::Reject => {
                refused.add();
                self.meter.refused(&decision);
                self.report_refused(&decision, charge, "refused");
                if decision.never_fits() {
                    let status = self.status_of_never(&decision, charge);
                    return Course::Refuse(Refusal::NeverFits(decision, status));
                }
                Course::Refuse(Refusal::TooMany(decision))
            }
        }
    }

    /// Where it is the body that is too large, HTTP has a status for it. 400 is what a request without a
    /// key gets, and 403 speaks of who the client is: this one is understood, allowed, and too much.
    fn status_of_never(&self, decision: &Decision, charge: &Charge) -> u16 {
        let mut refused = decision.statuses().zip(charge.debits());
        let is_length = refused.any(|(status, debit)| status.refused && debit.is_length);
        self.never_fits_status.unwrap_or(if is_length { 413 } else { 422 })
    }

    fn report_refused(&self, decision: &Decision, charge: &Charge, how: &str) {
        let who = || self.who(decision, charge, |status| status.refused);
        if decision.is_banned() && self.counters.bans.is_over(self.clock.now()) {
            report::banned(decision, who, how);
        } else {
            report::refused(decision, who, how);
        }
    }

    /// Tells the operator once a second of a request that a limit on trial would have refused. The others are told
    /// at the level of debugging: a trial runs under full traffic.
    fn report_trial(
        &self,
        decision: &Decision,
        charge: &Charge,
        how: &str,
        on_trial: fn(&LimitStatus) -> bool,
    ) {
        let so_far =
            (self.counters.trials.is_over(self.clock.now())).then(|| self.counters.read().shadowed);
        report::on_trial(decision, || self.who(decision, charge, on_trial), on_trial, so_far, how);
    }

    /// What is shown of the key that is refused, or would be: the first, where there are several.
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

    /// The store's failure is not the client's doing: it passes, or is told so.
    #[cold]
    fn without_store(&self, error: StoreError) -> Course {
        self.counters.store_failures.add();
        self.meter.failed(&error);
        if self.counters.told.is_over(self.clock.now()) {
            let so_far = self.counters.read().store_failures;
            report::store_failed(&error, self.on_store_error, so_far);
        }
        match self.on_store_error {
            OnStoreError::Admit if error.must_refuse() => {
                Course::Refuse(Refusal::Unavailable(error))
            }
            OnStoreError::Admit => Course::Serve(Served::Unknown),
            OnStoreError::Refuse => Course::Refuse(Refusal::Unavailable(error)),
        }
    }
}
