//! Rows as they were last seen: a fixed number of them, in sets of four.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::epochs::Seen;

/// Rows in a set: one mutex, and nothing to look for anywhere else.
pub(super) const SET: usize = 4;

/// A row as the server left it. Times are in microseconds, those of this process unless they say otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Row {
    /// What tells it from all others; 0 where there is none.
    pub(super) print: u64,
    /// The limit's two words.
    pub(super) cell: [u64; 2],
    /// The server's clock when it decided.
    pub(super) now: u64,
    /// When that was told here.
    pub(super) told: u64,
    /// From before the server was asked to when it had answered.
    pub(super) took: u64,
    /// Which server told it, and when in its life.
    pub(super) seen: Seen,
    /// From when on it is worth nothing.
    pub(super) until: u64,
}

#[derive(Debug)]
pub(super) struct Table(Box<[Mutex<Set>]>);

#[derive(Debug, Default)]
struct Set {
    rows: [Row; SET],
    /// How often a row that belongs here was forgotten because it changed.
    changes: u64,
}

impl Table {
    /// Room for `rows` of them, or up to three more.
    pub(super) fn new(rows: usize) -> Self {
        Self((0..rows.div_ceil(SET).max(1)).map(|_| Mutex::default()).collect())
    }

    /// The row of this print, if it is worth anything yet.
    #[inline]
    pub(super) fn find(&self, print: u64, at: u64) -> Option<Row> {
        let set = self.set(print);
        // A clock that was set back tells nothing.
        set.rows.iter().find(|row| row.print == print && row.told <= at && at < row.until).copied()
    }

    /// To tell whether the row has changed by the time it is put here.
    pub(super) fn changes(&self, print: u64) -> u64 {
        self.set(print).changes
    }

    /// Keeps a row, unless it has changed since there were as many `changes`. What ends first makes room.
    pub(super) fn put(&self, row: Row, changes: u64) {
        let mut set = self.set(row.print);
        if set.changes != changes {
            return;
        }
        let place = set.rows.iter_mut().min_by_key(|old| (old.print != row.print, old.until));
        *place.expect("a set has room") = row;
    }

    /// Forgets a row, of which more is known now.
    pub(super) fn remove(&self, print: u64) {
        self.set(print).remove(print);
    }

    /// Forgets a row that changes, and does not let in what was asked of it before.
    pub(super) fn change(&self, print: u64) {
        let mut set = self.set(print);
        set.remove(print);
        set.changes += 1;
    }

    /// By the upper bits: the print itself is compared in full.
    fn set(&self, print: u64) -> MutexGuard<'_, Set> {
        let at = (u128::from(print) * self.0.len() as u128) >> 64;
        self.0[at as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Set {
    fn remove(&mut self, print: u64) {
        if let Some(row) = self.rows.iter_mut().find(|row| row.print == print) {
            *row = Row::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(print: u64, until: u64) -> Row {
        Row { print, until, ..Row::default() }
    }

    fn found(table: &Table, prints: std::ops::Range<u64>) -> Vec<u64> {
        prints.filter(|print| table.find(*print, 0).is_some()).collect()
    }

    #[test]
    fn what_ends_first_makes_room() {
        let table = Table::new(SET);
        for (print, until) in [(1, 500), (2, 300), (3, 400), (4, 600), (5, 200), (6, 700)] {
            table.put(row(print, until), 0);
        }
        assert_eq!(found(&table, 1..7), [1, 3, 4, 6]);
    }

    #[test]
    fn a_row_is_kept_once() {
        let table = Table::new(SET);
        table.put(row(1, 500), 0);
        table.put(row(2, 500), 0);
        table.remove(1);
        table.put(row(2, 900), 0);
        assert_eq!(table.find(2, 0).map(|row| row.until), Some(900));
        table.remove(2);
        assert_eq!(found(&table, 1..3), []);
    }

    #[test]
    fn a_row_is_found_until_it_ends_and_not_before_it_was_told() {
        let table = Table::new(1);
        table.put(Row { told: 100, ..row(1, 200) }, 0);
        let is_found = |at| table.find(1, at).is_some();
        assert_eq!([99, 100, 199, 200].map(is_found), [false, true, true, false]);
    }

    #[test]
    fn what_was_asked_before_a_change_is_not_let_in() {
        let table = Table::new(1);
        let before = table.changes(1);
        table.put(row(1, 500), before);
        table.change(1);
        table.put(row(1, 500), before);
        assert_eq!(table.find(1, 0), None);
        table.put(row(1, 500), table.changes(1));
        assert!(table.find(1, 0).is_some());
    }

    #[test]
    fn every_print_has_a_set() {
        let table = Table::new(9);
        assert_eq!(table.0.len(), 3);
        for print in [1, u64::MAX / 2, u64::MAX] {
            table.put(row(print, 500), 0);
            assert!(table.find(print, 0).is_some());
        }
    }
}
