//! What an adapter is told beside its rule, and what it does about a decision.

use std::sync::Arc;
use std::time::Duration;

use crate::account::Reply;
use crate::adapter::OnStoreError;
use crate::charge::Charge;
use crate::clock::Clock;
use crate::counts::Counters;
use crate::gate::{Gate, Place, Step};
use crate::headers::Fields;
use crate::key::Missing;
use crate::limit::{Decision, Outcome, Verdict};
use crate::memory::Memory;
use crate::refusal::Refusal;
use crate::report;
use crate::rule::KnownLimits;
use crate::store::{Store, StoreError};
use crate::ticket::Ticket;

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
    /// What happened so far.
    pub counters: Arc<Counters>,
}

impl Default for Policy<Memory> {
    fn default() -> Self {
        Self::new(Memory::new())
    }
}

impl<S: Store> Policy<S> {
    /// What holds where nothing else is said.
    pub fn new(store: S) -> Self {
        Self {
            clock: store.clock(),
            store,
            gate: Gate::default(),
            fields: Fields::default(),
            extensions: true,
            on_store_error: OnStoreError::default(),
            deadline: DEADLINE,
            counters: Arc::default(),
        }
    }
}

/// What an adapter does with a request.
#[derive(Debug)]
pub enum Course<S: Store> {
    /// Calls the service.
    Serve(Paid<S>),
    /// Waits, then calls the service.
    Wait(Duration, Ticket<S>),
    /// Answers, and does not call the service.
    Refuse(Refusal),
}

/// What a request that is served has paid; to be [closed](Self::close) when it has been answered.
#[derive(Debug)]
pub struct Paid<S: Store>(Payment<S>);

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a box would be an allocation for each request")]
enum Payment<S: Store> {
    Ticket(Ticket<S>),
    /// Nothing: it was refused, and is served less.
    Degraded(S, Box<Decision>),
    /// Nothing: it would have been refused, were the limit more than a shadow.
    Shadowed(Box<Decision>),
    /// Nothing is known of it.
    Unknown,
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
            counters: self.counters,
        }
    }

    /// Takes a place in the queue for a request, if there is one, and makes its charge as patient as
    /// that queue is long.
    pub fn queue(&self, charge: Charge) -> (Charge, Option<Place>) {
        match self.gate.place() {
            Some((place, longest)) => (charge.patient(longest), Some(place)),
            None => (charge, None),
        }
    }

    /// What becomes of a request that lacks a key.
    pub fn keyless(&self, missing: Missing) -> Refusal {
        self.counters.keyless.add();
        if missing.is_client() || self.counters.tell(self.clock.now()) {
            report::keyless(&missing, self.counters.read().keyless);
        }
        Refusal::Missing(missing)
    }
}

impl<S: Store> Policy<S> {
    /// What becomes of a request once the store has answered. `store` is what the ticket settles with:
    /// the policy's own, or something that leads to it.
    #[inline]
    pub fn judge<T: Store>(
        &self,
        outcome: Result<Outcome, StoreError>,
        charge: Charge,
        store: impl FnOnce() -> T,
    ) -> Course<T> {
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => return self.without_store(error),
        };
        let Verdict::Admit { wait } = outcome.verdict() else {
            return self.refuse(outcome.decision(&charge), store);
        };
        let mut ticket = Ticket::new(store(), charge, outcome);
        match self.gate.admit(wait) {
            Step::Wait(wait) => {
                self.counters.waited.add();
                Course::Wait(wait, ticket)
            }
            _ => {
                // Under a shadow nobody waits, not even where the limit says so.
                ticket.begin();
                Course::Serve(Paid(Payment::Ticket(ticket)))
            }
        }
    }

    fn refuse<T: Store>(&self, decision: Decision, store: impl FnOnce() -> T) -> Course<T> {
        match self.gate.refuse(&decision) {
            Step::Degrade => {
                self.counters.degraded.add();
                report::refused(&decision, "served less");
                Course::Serve(Paid(Payment::Degraded(store(), Box::new(decision))))
            }
            Step::Shadow => {
                self.counters.shadowed.add();
                report::shadowed(&decision);
                Course::Serve(Paid(Payment::Shadowed(Box::new(decision))))
            }
            Step::Redirect(redirect) => {
                self.counters.redirected.add();
                report::refused(&decision, "redirected");
                Course::Refuse(Refusal::Elsewhere(decision, redirect))
            }
            Step::Forward | Step::Wait(_) | Step::Reject => {
                self.counters.refused.add();
                report::refused(&decision, "refused");
                Course::Refuse(Refusal::TooMany(decision))
            }
        }
    }

    /// The store's failure is not the client's doing: it passes, or is told so.
    #[cold]
    fn without_store<T: Store>(&self, error: StoreError) -> Course<T> {
        self.counters.store_failures.add();
        if self.counters.tell(self.clock.now()) {
            let so_far = self.counters.read().store_failures;
            report::store_failed(&error, self.on_store_error, so_far);
        }
        match self.on_store_error {
            OnStoreError::Admit => Course::Serve(Paid::unknown()),
            OnStoreError::Refuse => Course::Refuse(Refusal::Unavailable(error)),
        }
    }
}

impl<S: Store> Paid<S> {
    /// Nothing was owed, or nobody could tell what.
    pub fn unknown() -> Self {
        Self(Payment::Unknown)
    }

    /// What settles the ticket, or leads to it, where there is something to tell the client.
    #[inline]
    pub fn store(&self) -> Option<&S> {
        match &self.0 {
            Payment::Ticket(ticket) => Some(ticket.store()),
            Payment::Degraded(store, _) => Some(store),
            Payment::Shadowed(_) | Payment::Unknown => None,
        }
    }

    /// The decision, for handlers to see.
    pub fn decision(&self) -> Option<Decision> {
        match &self.0 {
            Payment::Ticket(ticket) => Some(ticket.decision()),
            Payment::Degraded(_, decision) | Payment::Shadowed(decision) => {
                Some((**decision).clone())
            }
            Payment::Unknown => None,
        }
    }

    /// Whether the handler is to serve less.
    pub fn is_degraded(&self) -> bool {
        matches!(self.0, Payment::Degraded(..))
    }

    /// Settles with the response, and says whether there is anything to tell the client of it: nothing
    /// where a limit further in refused, since what was charged here is then given back.
    #[inline]
    pub fn close(&mut self, reply: &dyn Reply) -> bool {
        match &mut self.0 {
            Payment::Ticket(ticket) => ticket.close(reply),
            Payment::Degraded(..) => {}
            Payment::Shadowed(_) | Payment::Unknown => return false,
        }
        !reply.is_refusal()
    }
}

impl<S: Store> From<Ticket<S>> for Paid<S> {
    fn from(ticket: Ticket<S>) -> Self {
        Self(Payment::Ticket(ticket))
    }
}
