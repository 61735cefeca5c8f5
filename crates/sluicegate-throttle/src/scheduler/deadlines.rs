use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::slab::{Id, Slab};

/// If there are more entries than this, and most belong to requests that have left, those are removed.
const FEW: usize = 64;

/// The deadlines of queued requests, the next one first.
///
/// The entry of a request stays behind when the request leaves the queue. It is removed when it becomes the first one,
/// or when such entries are more than half of all.
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

    /// Removes entries of requests that have left from the front, so that no timer fires for them.
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
