//! What calls to the server reveal about rows.

use std::sync::Arc;

use sluicegate_core::adapter::{Charge, Debit};
use sluicegate_core::limit::Verdict;

use super::memory::{Memory, is_remembered, micros};
use super::table::Row;
use crate::script::{Operation, Reply};
use crate::wire::epochs::ServerEpoch;

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
    pub(super) fn new(memory: &Arc<Memory>, operation: Operation, charge: &Charge) -> Self {
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
    pub(super) fn new<'o>(memory: &Arc<Memory>, debits: impl Iterator<Item = &'o Debit>) -> Self {
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
