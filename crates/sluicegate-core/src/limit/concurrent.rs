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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_giving_back_makes_room() {
        let three = Concurrent::new(3);
        let mut cell = [0; 2];
        Concurrent::spend(&mut cell, 2);
        assert_eq!(three.enter(cell, 1, 0), Enter::At(0));
        assert_eq!(three.enter(cell, 2, 0), Enter::Unknown);
        assert_eq!(three.enter(cell, 4, 0), Enter::Never);
        Concurrent::give(&mut cell, 1);
        assert_eq!(three.enter(cell, 2, 0), Enter::At(0));
        // Given back twice by mistake, it is still no more than there was.
        Concurrent::give(&mut cell, 9);
        assert_eq!(three.remaining(cell), 3);
    }
}
