//! Requests that are charged to other limits too, which the memory beside the lease keeps.

use std::future::Ready;
use std::time::Duration;

use sluicegate_core::adapter::{Answer, Charge, Debit, Outcome, Receipt, remote};
use sluicegate_core::clock::Clock;
use sluicegate_core::limit::{LimitError, LimitStatus, Verdict};
use sluicegate_core::store::{Store, StoreError};
use sluicegate_core::{Limit, Memory};

use super::leased::LeasedLimit;
use super::state::LimitAnswer;

impl LeasedLimit {
    /// The store that keeps a limit other than that of the lease.
    fn beside(&self, debit: &Debit) -> Option<&Memory> {
        self.0.beside.as_ref().filter(|_| !self.is_own(&debit.limit))
    }

    fn decide(&self, charge: &Charge, operation: Operation) -> Result<Outcome, StoreError> {
        let mut debits = charge.debits();
        match (debits.next(), debits.next()) {
            (Some(debit), None) if self.is_own(&debit.limit) => {
                Ok(self.decide_one(charge, debit, operation))
            }
            _ => decide_several(self, charge, operation),
        }
    }

    fn decide_one(&self, charge: &Charge, debit: &Debit, operation: Operation) -> Outcome {
        let mut state = self.turn();
        let patience = charge.patience().unwrap_or_default();
        let LimitAnswer { verdict, status } = match operation {
            Operation::Take => state.take(debit.cost, patience),
            // What was spent of a lease cannot be forgotten: others have the rest.
            Operation::Peek | Operation::Reset => state.peek(debit.cost, patience),
        };
        if operation == Operation::Take {
            self.decided(state);
        }
        remote::outcome(verdict, [fact(status)])
    }
}

/// Resetting does not fill a lease.
impl Store for LeasedLimit {
    type Future = Ready<Result<Outcome, StoreError>>;

    fn take(&self, charge: &Charge) -> Answer<Self::Future> {
        Answer::Now(self.decide(charge, Operation::Take))
    }

    fn peek(&self, charge: &Charge) -> Answer<Self::Future> {
        Answer::Now(self.decide(charge, Operation::Peek))
    }

    fn reset(&self, charge: &Charge) -> Answer<Self::Future> {
        Answer::Now(self.decide(charge, Operation::Reset))
    }

    fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) {
        if receipt.is_void() {
            return;
        }
        if self.is_own(&debit.limit) {
            self.turn().settle(receipt, debit.cost, spent);
        } else if let Some(memory) = self.beside(debit) {
            memory.settle(debit, receipt, spent);
        }
    }

    /// The lease itself follows nothing: the server knows what others have spent of it.
    fn follow(&self, debit: &Debit, charged: u64, spent: u64) {
        if let Some(memory) = self.beside(debit) {
            memory.follow(debit, charged, spent);
        }
    }

    fn follow_status(&self, debit: &Debit, status: &LimitStatus) {
        if let Some(memory) = self.beside(debit) {
            memory.follow_status(debit, status);
        }
    }

    fn clock(&self) -> Clock {
        self.0.clock.clone()
    }

    fn check(&self, limit: &Limit) -> Result<(), LimitError> {
        match &self.0.beside {
            _ if *limit == self.0.limit => Ok(()),
            Some(memory) if !self.is_own(limit) => memory.check(limit),
            _ => Err(ANOTHER),
        }
    }
}

/// What is asked of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Take,
    Peek,
    Reset,
}

impl Operation {
    fn ask(self, memory: &Memory, charge: &Charge) -> Result<Outcome, StoreError> {
        match self {
            Self::Take => memory.take(charge),
            Self::Peek => memory.peek(charge),
            Self::Reset => memory.reset(charge),
        }
        .now()
    }
}

pub(super) const ANOTHER: LimitError = LimitError::new(
    "the store of a lease keeps the limit of the lease only, as it is: use a layer for each, or `beside`",
);

/// Decides by the lease and the other limits, all or none.
pub(super) fn decide_several(
    leased: &LeasedLimit,
    charge: &Charge,
    operation: Operation,
) -> Result<Outcome, StoreError> {
    let Some(memory) = &leased.0.beside else {
        return match charge.is_empty() {
            true => Ok(Outcome::free()),
            false => Err(StoreError::unsupported(ANOTHER)),
        };
    };
    let Some(own) = charge.debits().find(|debit| leased.is_own(&debit.limit)) else {
        return operation.ask(memory, charge);
    };
    if charge.debits().filter(|debit| leased.is_own(&debit.limit)).count() > 1 {
        // On several keys, which share the lease.
        return Err(StoreError::unsupported(ANOTHER));
    }
    // The memory must not see the limit of the lease: its numbers have no meaning.
    let others = without(charge, own);

    let mut state = leased.turn();
    // Nobody else sees the state in between, so that restoring it undoes the charge.
    let before = (state.meter, state.learned.clone(), state.retries);
    let mut decided = match operation {
        Operation::Take => state.take(own.cost, Duration::ZERO),
        Operation::Peek | Operation::Reset => state.peek(own.cost, Duration::ZERO),
    };
    let is_taken = operation == Operation::Take && decided.verdict.is_admitted();
    let ask = if is_taken || operation == Operation::Reset { operation } else { Operation::Peek };
    let outcome = ask.ask(memory, &others);
    let admitted = outcome.as_ref().is_ok_and(Outcome::is_admitted);
    if !admitted {
        // What other limits keep out is no demand for the lease.
        (state.meter, state.learned, state.retries) = before;
        decided = state.peek(own.cost, Duration::ZERO);
    }
    if is_taken && admitted {
        let wait = outcome.as_ref().map_or(Duration::ZERO, Outcome::wait);
        state.hold_back(own.cost, wait);
    }
    if operation == Operation::Take && admitted {
        leased.decided(state);
    }
    Ok(joined(charge, own, decided, &outcome?, &others))
}

/// The charge without one of its debits.
fn without(charge: &Charge, own: &Debit) -> Charge {
    let mut others = Charge::new();
    for debit in charge.debits().filter(|debit| debit.limit.id() != own.limit.id()) {
        others.add(debit.limit, debit.key, debit.cost).expect("a part of a charge that was made");
    }
    match charge.patience() {
        Some(patience) => others.patient(patience),
        None => others,
    }
}

/// The outcome of both.
fn joined(
    charge: &Charge,
    own: &Debit,
    decided: LimitAnswer,
    outcome: &Outcome,
    others: &Charge,
) -> Outcome {
    let verdict = match (decided.verdict, outcome.verdict()) {
        (_, Verdict::Never) => Verdict::Never,
        (Verdict::Admit { .. }, others) => others,
        (own, Verdict::Admit { .. }) => own,
        (Verdict::Refuse { retry_after: one }, Verdict::Refuse { retry_after: other }) => {
            Verdict::Refuse { retry_after: one.and_then(|one| Some(one.max(other?))) }
        }
        (own, _) => own,
    };
    let decision = outcome.decision(others);
    let mut statuses = decision.statuses().cloned();
    let mut own_status = Some(decided.status);
    let facts = charge.debits().filter_map(|debit| {
        if debit.limit.id() == own.limit.id() {
            return own_status.take().map(fact);
        }
        statuses.next().map(remote::LimitOutcome::of_status)
    });
    remote::outcome(verdict, facts.collect::<Vec<_>>())
}

/// A status by the numbers that are in force.
pub(super) fn fact(status: LimitStatus) -> remote::LimitOutcome {
    remote::LimitOutcome::of_other_numbers(status)
}
