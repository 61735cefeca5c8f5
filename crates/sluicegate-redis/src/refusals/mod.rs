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

use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::adapter::{Charge, Debit, Outcome};
use sluicegate_core::clock::Clock;
use sluicegate_core::limit::Verdict;

use self::memory::{Memory, Row, is_remembered, micros};
use crate::script::{Operation, Reply};
use crate::wire::epochs::{Epochs, ServerEpoch};

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

/// A call whose answer may be remembered.
#[derive(Debug)]
pub(crate) enum Observation {
    /// Nothing is remembered.
    Off,
    Decision(Snapshot),
    Reset(Invalidation),
}

/// The state of the memory before the call.
#[derive(Debug)]
pub(crate) struct Snapshot {
    memory: Arc<Memory>,
    began: u64,
    /// The epoch of the server, once the call is sent.
    epoch: Option<ServerEpoch>,
    /// For each row, its fingerprint and the number of its changes.
    rows: Vec<(u64, u64)>,
}

/// Rows that are being changed. They are forgotten at once, and again when this is dropped: an answer that arrives in
/// between may be from before the change.
#[derive(Debug)]
pub(crate) struct Invalidation {
    memory: Arc<Memory>,
    fingerprints: Vec<u64>,
}

impl Observation {
    fn new(memory: &Arc<Memory>, operation: Operation, charge: &Charge) -> Self {
        match operation {
            Operation::Reset => Self::Reset(Invalidation::new(memory, charge.debits())),
            Operation::Take | Operation::Peek => Self::Decision(Snapshot::new(memory, charge)),
        }
    }

    /// The call is about to be sent to a server in this epoch.
    pub(crate) fn sent(&mut self, epoch: ServerEpoch) {
        if let Self::Decision(snapshot) = self {
            snapshot.epoch = Some(epoch);
        }
    }

    /// Learns from the reply. The caller must not see the reply before.
    pub(crate) fn learn(&mut self, charge: &Charge, reply: Option<&Reply>) {
        match (std::mem::replace(self, Self::Off), reply) {
            (Self::Decision(snapshot), Some(reply)) => snapshot.learn(charge, reply),
            (Self::Reset(invalidation), _) => drop(invalidation),
            _ => {}
        }
    }
}

impl Snapshot {
    fn new(memory: &Arc<Memory>, charge: &Charge) -> Self {
        // The numbers of changes as of now, before the call is sent. `put` compares them: if anything was settled or
        // reset since, the answer may be from before it, and is not remembered.
        let rows = charge.debits().map(|debit| {
            let fingerprint = memory.fingerprint(debit);
            (fingerprint, memory.table.changes(fingerprint))
        });
        Self {
            rows: rows.collect(),
            began: memory.clock.now(),
            epoch: None,
            memory: Arc::clone(memory),
        }
    }

    fn learn(&self, charge: &Charge, reply: &Reply) {
        match reply.verdict {
            Verdict::Refuse { retry_after: Some(retry_after) } if is_remembered(charge) => {
                self.remember(reply, micros(retry_after));
            }
            // The row was charged, or the refusal was recorded in it.
            _ => self.rows.iter().for_each(|(row, _)| self.memory.table.remove(*row)),
        }
    }

    fn remember(&self, reply: &Reply, retry_after: u64) {
        let Some(epoch) = self.epoch else { return };
        let received = self.memory.clock.now();
        // The server decided at some moment of the call, so its clock is known up to the time that the call took.
        let took = received.saturating_sub(self.began);
        let until = received.saturating_add(retry_after.min(self.memory.longest));
        for ((fingerprint, changes), outcome) in self.rows.iter().zip(&reply.outcomes) {
            if let Some(words) = outcome.words() {
                let (fingerprint, now) = (*fingerprint, reply.now);
                let row = Row { fingerprint, words, now, received, took, epoch, until };
                self.memory.table.put(row, *changes);
            }
        }
    }
}

impl Invalidation {
    fn new<'o>(memory: &Arc<Memory>, debits: impl Iterator<Item = &'o Debit>) -> Self {
        let debits = debits.filter(|debit| !debit.limit.is_held());
        let fingerprints = debits.map(|debit| memory.fingerprint(debit)).collect();
        let invalidation = Self { memory: Arc::clone(memory), fingerprints };
        invalidation.forget();
        invalidation
    }

    fn forget(&self) {
        self.fingerprints.iter().for_each(|row| self.memory.table.change(*row));
    }
}

impl Drop for Invalidation {
    fn drop(&mut self) {
        self.forget();
    }
}

#[cfg(test)]
mod tests;
