//! Remembered refusals, so that a flood of refused requests costs the server nothing.
//!
//! A refusal is remembered as the rows that the server read when it refused, not as an answer. Only admitted requests
//! and the passing of time change these rows, and time passes in this process too. So [`decide`] computes what the
//! server would answer now, to any cost and for any limits on the same rows. Its answer counts only if it refuses;
//! whenever the server might admit, the server decides.
//!
//! [`decide`]: sluicegate_core::adapter::decide
//!
//! The refusal is believed only if the rows refuse by every clock that the server may show. What this
//! process charges, settles or resets makes it forget the row. The operator chooses how long this process
//! may not know what other processes give back.

mod memory;
mod observation;
mod table;

use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::adapter::{Charge, Debit, Outcome};
use sluicegate_core::clock::Clock;

use self::memory::Memory;
pub(crate) use self::observation::{Invalidation, Observation};
use crate::script::Operation;
use crate::wire::epochs::Epochs;

/// Rows that have refused, if they are remembered.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refusals(Option<Arc<Memory>>);

impl Refusals {
    /// Remembers up to `rows`, each for at most `longest`. Remembers nothing if either is zero.
    pub(crate) fn new(
        (rows, longest): (usize, Duration),
        clock: &Clock,
        epochs: &Arc<Epochs>,
    ) -> Self {
        if rows == 0 || longest.is_zero() {
            return Self::default();
        }
        Self(Some(Arc::new(Memory::new((rows, longest), clock, epochs))))
    }

    /// The answer of the server, if it is known to refuse.
    #[inline]
    pub(crate) fn recall(&self, charge: &Charge) -> Option<Outcome> {
        let memory = self.0.as_deref()?;
        let mut debits = charge.debits();
        match (debits.next(), debits.next(), charge.patience()) {
            (Some(debit), None, None) => memory.recall_one(charge, debit),
            (Some(_), Some(_), None) => memory.recall_several(charge),
            _ => None,
        }
    }

    /// Observes a call that is about to be made.
    pub(crate) fn observe(&self, operation: Operation, charge: &Charge) -> Observation {
        self.0
            .as_ref()
            .map_or(Observation::Off, |memory| Observation::new(memory, operation, charge))
    }

    /// Invalidates the row of a charge that is about to be settled.
    pub(crate) fn invalidate(&self, debit: &Debit) -> Option<Invalidation> {
        self.0.as_ref().map(|memory| Invalidation::new(memory, std::iter::once(debit)))
    }
}

#[cfg(test)]
mod tests;
