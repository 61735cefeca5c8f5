use std::future::Ready;

use sluicegate_core::adapter::{Answer, Charge, Debit, Outcome, Receipt, remote};
use sluicegate_core::clock::Clock;
use sluicegate_core::limit::{LimitError, LimitStatus};
use sluicegate_core::store::{Store, StoreError};
use sluicegate_core::{Limit, Memory};

use super::leased::LeasedLimit;
use super::several::{ANOTHER, Operation, decide_several, fact};
use super::state::Decided;

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
        let Decided { verdict, status } = match operation {
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
