use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::slab::{Id, Slab};

/// More entries than this, and most of them of requests that have left, are cleared away.
const FEW: usize = 64;

/// When the deadlines of queued requests pass, the next one first.
///
/// A request that leaves the queue leaves its entry behind, until it is the first one, or until such entries are more
/// than half of all.
#[derive(Debug, Default)]
pub(super) struct Deadlines(BinaryHeap<Reverse<(u64, Id)>>);

impl Deadlines {
    /// Memory for a queued request, with as much again for entries of requests that have left.
    pub(super) const BYTES: usize = 2 * size_of::<(u64, Id)>();

    pub(super) fn push(&mut self, deadline: u64, id: Id, slab: &Slab, queued: usize) {
        if self.0.len() >= FEW.max(2 * queued) {
            self.0.retain(|Reverse((_, id))| slab.find(*id).is_some());
        }
        self.0.push(Reverse((deadline, id)));
    }

    /// When the next deadline passes.
    pub(super) fn next_at(&self) -> Option<u64> {
        self.0.peek().map(|Reverse((deadline, _))| *deadline)
    }

    /// A request whose deadline has passed.
    pub(super) fn pop_missed(&mut self, now: u64) -> Option<Id> {
        self.next_at().filter(|deadline| *deadline <= now)?;
        self.0.pop().map(|Reverse((_, id))| id)
    }

    /// Clears entries of requests that have left from the front: nobody has to come for them.
    pub(super) fn clear_front(&mut self, slab: &Slab) {
        while self.0.peek().is_some_and(|Reverse((_, id))| slab.find(*id).is_none()) {
            self.0.pop();
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
