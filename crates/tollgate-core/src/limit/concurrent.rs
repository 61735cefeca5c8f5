//! Concurrency: so many at a time, whatever the clock says. The cell is `[held, unused]`.

use super::{Cell, Enter};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Concurrent {
    count: u64,
}

impl Concurrent {
    pub(super) const fn new(count: u64) -> Self {
        Self { count }
    }

    pub(super) fn enter(&self, [held, _]: Cell, cost: u64, from: u64) -> Enter {
        if cost > self.count {
            Enter::Never
        } else if held + cost <= self.count {
            Enter::At(from)
        } else {
            Enter::Unknown
        }
    }

    pub(super) fn spend(cell: &mut Cell, cost: u64) {
        cell[0] += cost;
    }

    pub(super) fn give(cell: &mut Cell, back: u64) {
        cell[0] = cell[0].saturating_sub(back);
    }

    pub(super) fn remaining(&self, [held, _]: Cell) -> u64 {
        self.count.saturating_sub(held)
    }
}
