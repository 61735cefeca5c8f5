//! What is learnt of rows from the questions that are asked about them.

use std::sync::Arc;

use sluicegate_core::adapter::{Charge, Debit};
use sluicegate_core::limit::Verdict;

use super::epochs::Seen;
use super::table::Row;
use super::{Inner, is_remembered, micros};
use crate::script::Reply;
use crate::shared::Ask;

/// A question that is asked about rows.
#[derive(Debug)]
pub(crate) enum Watch {
    /// Nothing is remembered, or nothing more to be learnt.
    Off,
    Decision(Before),
    Change(Change),
}

/// What was known before the server was asked.
#[derive(Debug)]
pub(crate) struct Before {
    inner: Arc<Inner>,
    asked: u64,
    /// Who is asked, once that is known.
    seen: Option<Seen>,
    /// Of each row, its print, and how often it had changed.
    rows: Vec<(u64, u64)>,
}

/// Rows that are being changed: forgotten at once, and once more when it is done, which is when this is
/// dropped. What is decided in between may have been before it.
#[derive(Debug)]
pub(crate) struct Change {
    inner: Arc<Inner>,
    prints: Vec<u64>,
}

impl Watch {
    pub(super) fn new(inner: &Arc<Inner>, ask: Ask, charge: &Charge) -> Self {
        match ask {
            Ask::Reset => Self::Change(Change::new(inner, charge.debits())),
            Ask::Take | Ask::Peek => Self::Decision(Before::new(inner, charge)),
        }
    }

    /// It is about to be asked.
    pub(crate) fn ask(&mut self, seen: Seen) {
        if let Self::Decision(before) = self {
            before.seen = Some(seen);
        }
    }

    /// Learns what became of it. Whoever is told so afterwards finds it learnt.
    pub(crate) fn learn(&mut self, charge: &Charge, reply: Option<&Reply>) {
        match (std::mem::replace(self, Self::Off), reply) {
            (Self::Decision(before), Some(reply)) => before.learn(charge, reply),
            (Self::Change(change), _) => drop(change),
            _ => {}
        }
    }
}

impl Before {
    fn new(inner: &Arc<Inner>, charge: &Charge) -> Self {
        let rows = charge.debits().map(|debit| {
            let print = inner.print(debit);
            (print, inner.table.changes(print))
        });
        Self {
            rows: rows.collect(),
            asked: inner.clock.now(),
            seen: None,
            inner: Arc::clone(inner),
        }
    }

    fn learn(&self, charge: &Charge, reply: &Reply) {
        match reply.verdict {
            Verdict::Refuse { retry_after: Some(retry_after) } if is_remembered(charge) => {
                self.remember(reply, micros(retry_after));
            }
            // It was charged, or recorded that it was not.
            _ => self.rows.iter().for_each(|(print, _)| self.inner.table.remove(*print)),
        }
    }

    fn remember(&self, reply: &Reply, retry_after: u64) {
        let Some(seen) = self.seen else { return };
        let told = self.inner.clock.now();
        let took = told.saturating_sub(self.asked);
        let until = told.saturating_add(retry_after.min(self.inner.longest));
        for ((print, changes), fact) in self.rows.iter().zip(&reply.facts) {
            if let Some(cell) = fact.words() {
                let row = Row { print: *print, cell, now: reply.now, told, took, seen, until };
                self.inner.table.put(row, *changes);
            }
        }
    }
}

impl Change {
    pub(super) fn new<'o>(inner: &Arc<Inner>, debit: impl Iterator<Item = &'o Debit>) -> Self {
        let prints = debit.filter(|debit| !debit.limit.is_held()).map(|debit| inner.print(debit));
        let change = Self { inner: Arc::clone(inner), prints: prints.collect() };
        change.forget();
        change
    }

    fn forget(&self) {
        self.prints.iter().for_each(|print| self.inner.table.change(*print));
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        self.forget();
    }
}
