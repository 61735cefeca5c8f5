//! Fixed window: `count` from each border to the next.
//!
//! The cell is `[start of the window, spent since]`. More than `count` spent means places booked in
//! the windows that follow, each filled before the next.

use super::exact::{EXACT, bounded};
use super::{Cell, Enter};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Fixed {
    count: u64,
    period: u64,
    /// Whether a window begins with the first request in it, not at a multiple of the period.
    pub(super) from_first: bool,
}

impl Fixed {
    pub(super) const fn new(count: u64, period: u64, from_first: bool) -> Self {
        Self { count, period, from_first }
    }

    pub(super) fn enter(&self, cell: Cell, now: u64, cost: u64, from: u64) -> Enter {
        if cost > self.count {
            return Enter::Never;
        }
        let [start, spent] = self.current(cell, now);
        let wanted = (now + from - start) / self.period;
        let (last, fill) = self.last_window(spent);
        if wanted > last || wanted == last && fill + cost <= self.count {
            return Enter::At(from);
        }
        let window = if fill + cost <= self.count { last } else { last + 1 };
        Enter::At(from.max(self.until(start, window, now)))
    }

    pub(super) fn spend(&self, cell: &mut Cell, now: u64, cost: u64, wait: u64) {
        let [start, spent] = self.current(*cell, now);
        let window = (now + wait - start) / self.period;
        // Room that a cost did not fit into is left behind: it went to the next window whole.
        let before = spent.max(window.saturating_mul(self.count));
        *cell = [start, before.saturating_add(cost).min(EXACT / 2)];
    }

    /// Whether what a place `wait` ahead adds up to stays exact.
    pub(super) fn books(&self, cell: Cell, now: u64, cost: u64, wait: u64) -> bool {
        let [start, spent] = self.current(cell, now);
        let window = (now + wait - start) / self.period;
        spent.max(window.saturating_mul(self.count)).saturating_add(cost) <= EXACT / 2
    }

    /// Follows a clock that stepped back into the window that it shows.
    pub(super) fn follow(&self, cell: &mut Cell, now: u64) {
        if now < cell[0] {
            *cell = self.current(*cell, now);
        }
    }

    pub(super) fn force(&self, cell: &mut Cell, now: u64, cost: u64) {
        let [start, spent] = self.current(*cell, now);
        *cell = [start, spent.saturating_add(cost).min(EXACT / 2)];
    }

    /// Gives back in the window in which it was spent, and only while nobody is booked behind it.
    pub(super) fn give(&self, cell: &mut Cell, mark: Cell, now: u64, back: u64) {
        let [start, spent] = self.current(*cell, now);
        let (own, _) = self.last_window(mark[1]);
        let (last, fill) = self.last_window(spent);
        if self.begin(mark[0], own) == self.begin(start, last) {
            *cell = [start, spent - back.min(fill)];
        }
    }

    pub(super) fn remaining(&self, cell: Cell, now: u64) -> u64 {
        self.count.saturating_sub(self.current(cell, now)[1])
    }

    pub(super) fn fresh_in(&self, cell: Cell, now: u64) -> u64 {
        match self.current(cell, now) {
            [_, 0] => 0,
            [start, spent] => self.until(start, self.last_window(spent).0 + 1, now),
        }
    }

    /// Until a window begins, counted from the one that began at `start`.
    fn until(&self, start: u64, window: u64, now: u64) -> u64 {
        bounded(self.begin(start, window).saturating_sub(now))
    }

    fn begin(&self, start: u64, window: u64) -> u64 {
        start.saturating_add(window.saturating_mul(self.period))
    }

    /// The index, counted from the current window, of the last one with anything spent in it, and
    /// how much that is.
    fn last_window(&self, spent: u64) -> (u64, u64) {
        let last = spent.saturating_sub(1) / self.count;
        (last, spent - last * self.count)
    }

    /// A clock that stepped back keeps what was spent, in the window that it stepped into.
    fn current(&self, [start, spent]: Cell, now: u64) -> Cell {
        let fresh = if self.from_first { now } else { now - now % self.period };
        if spent == 0 || now < start {
            return [fresh, spent];
        }
        let passed = (now - start) / self.period;
        match spent.saturating_sub(passed.saturating_mul(self.count)) {
            0 => [fresh, 0],
            spent => [start + passed * self.period, spent],
        }
    }
}
