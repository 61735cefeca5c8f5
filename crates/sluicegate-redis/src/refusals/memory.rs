//! The rows that are remembered: a fixed number, in sets of four. What the server would answer is computed from them.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sluicegate_core::adapter::remote::{LimitParameters, state};
use sluicegate_core::adapter::{Attempt, Charge, Debit, Keys, Outcome, State, decide};
use sluicegate_core::clock::Clock;

use crate::wire::epochs::{Epochs, ServerEpoch};

/// Rows that have refused.
pub(super) struct Memory {
    /// Random for each process, so that no client can choose where its key lands, or make it collide with another.
    /// Fingerprints have 64 bits: the chance that one of a million keys collides with one of 65,536 rows is 1 in 280
    /// million.
    seed: RandomState,
    pub(super) table: Table,
    /// Microseconds after which the server is asked about a row again.
    pub(super) longest: u64,
    pub(super) clock: Clock,
    epochs: Arc<Epochs>,
}

/// The server's clock runs ahead of this machine's by less than one part in this.
const DRIFT: u64 = 5_000;

/// Bounds of the server's clock at one moment.
struct ServerTime {
    earliest: u64,
    latest: u64,
}

impl Memory {
    pub(super) fn new(
        (rows, longest): (usize, Duration),
        clock: &Clock,
        epochs: &Arc<Epochs>,
    ) -> Self {
        Self {
            seed: RandomState::new(),
            table: Table::new(rows),
            longest: micros(longest),
            clock: clock.clone(),
            epochs: Arc::clone(epochs),
        }
    }

    /// The fingerprint of a row; never 0.
    #[inline]
    pub(super) fn fingerprint(&self, debit: &Debit) -> u64 {
        self.seed.hash_one((debit.limit.id(), &debit.key)).max(1)
    }

    /// The row of a debit. Rows from before the last connection to their server do not count: it may have lost them.
    #[inline]
    fn find(&self, debit: &Debit, at: u64) -> Option<Row> {
        let row = self.table.find(self.fingerprint(debit), at)?;
        self.epochs.is_current(row.epoch).then_some(row)
    }

    #[inline]
    pub(super) fn recall_one(&self, charge: &Charge, debit: &Debit) -> Option<Outcome> {
        let at = self.clock.now();
        let row = self.find(debit, at)?;
        let time = row.server_time(at);
        if !is_remembered(charge) {
            return None;
        }
        let mut state = state(row.words);
        let attempt = Attempt { limit: &debit.limit, state: &mut state, cost: debit.cost };
        time.refusal(decide(&mut [attempt], time.earliest, None, Keys::One))
    }

    #[cold]
    pub(super) fn recall_several(&self, charge: &Charge) -> Option<Outcome> {
        let at = self.clock.now();
        let rows = charge.debits().map(|debit| self.find(debit, at));
        let rows: Vec<_> = rows.collect::<Option<_>>()?;
        let time = rows.iter().map(|row| row.server_time(at)).reduce(ServerTime::and)?;
        if !is_remembered(charge) {
            return None;
        }
        let mut states: Vec<State> = rows.iter().map(|row| state(row.words)).collect();
        let attempts = charge.debits().zip(&mut states);
        let attempts =
            attempts.map(|(debit, state)| Attempt { limit: &debit.limit, state, cost: debit.cost });
        let mut attempts: Vec<_> = attempts.collect();
        time.refusal(decide(&mut attempts, time.earliest, None, charge.keys()))
    }
}

impl Row {
    #[inline]
    fn server_time(&self, at: u64) -> ServerTime {
        let passed = at.saturating_sub(self.received);
        let earliest = self.now.saturating_add(passed);
        ServerTime { earliest, latest: earliest.saturating_add(self.took + passed / DRIFT) }
    }
}

impl ServerTime {
    /// Combines two bounds of the same clock.
    fn and(self, other: Self) -> Self {
        Self { earliest: self.earliest.max(other.earliest), latest: self.latest.min(other.latest) }
    }

    /// The outcome, if the server refuses at every time within the bounds. `retry_after` is that of the earliest time:
    /// a client that waits for it comes late rather than early.
    #[inline]
    fn refusal(&self, outcome: Outcome) -> Option<Outcome> {
        // `retry_after` was worked out for the earliest time. If it is longer than the spread, the server also refuses
        // at the latest time. If not, it might admit, and is asked.
        let spread = self.latest.saturating_sub(self.earliest);
        let retry_after = outcome.retry_after()?;
        (micros(retry_after) > spread).then_some(outcome)
    }
}

/// Whether a refusal changes no row and ends only with time. Held places can be given back at any moment, so they are
/// not remembered. Limits with more than two words of state are not remembered either.
pub(super) fn is_remembered(charge: &Charge) -> bool {
    let mut limits = charge.debits().map(|debit| &debit.limit);
    limits.all(|limit| !limit.is_held() && !LimitParameters::of(limit).count_refused)
}

pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Hides the seed.
impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("longest", &self.longest).finish_non_exhaustive()
    }
}

/// Rows in a set. A row can only be in its own set, which has one mutex.
pub(super) const SET: usize = 4;

/// A row as the server left it. Times are in microseconds, by the clock of this process unless noted otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Row {
    /// Identifies the row; 0 if there is none.
    pub(super) fingerprint: u64,
    /// The limit's two words.
    pub(super) words: [u64; 2],
    /// The server's clock when it decided.
    pub(super) now: u64,
    /// When the answer arrived.
    pub(super) received: u64,
    /// How long the call took.
    pub(super) took: u64,
    /// The epoch of the server that answered.
    pub(super) epoch: ServerEpoch,
    /// When the row stops to be valid.
    pub(super) until: u64,
}

#[derive(Debug)]
pub(super) struct Table(Box<[Mutex<Set>]>);

#[derive(Debug, Default)]
struct Set {
    rows: [Row; SET],
    /// How often a row of this set was changed.
    changes: u64,
}

impl Table {
    /// Room for `rows` of them, or up to three more.
    pub(super) fn new(rows: usize) -> Self {
        Self((0..rows.div_ceil(SET).max(1)).map(|_| Mutex::default()).collect())
    }

    /// The row with this fingerprint, if it is valid.
    #[inline]
    pub(super) fn find(&self, fingerprint: u64, at: u64) -> Option<Row> {
        let set = self.set(fingerprint);
        // If the clock was set back, nothing is known.
        set.rows
            .iter()
            .find(|row| row.fingerprint == fingerprint && row.received <= at && at < row.until)
            .copied()
    }

    /// How often rows of this set have changed, to be passed to [`put`](Self::put).
    pub(super) fn changes(&self, fingerprint: u64) -> u64 {
        self.set(fingerprint).changes
    }

    /// Stores a row, unless it has changed since `changes` was read. The row that ends first makes room.
    pub(super) fn put(&self, row: Row, changes: u64) {
        let mut set = self.set(row.fingerprint);
        // One number for the four rows of a set. A change of a neighbour costs one question, and no answer is wrong.
        if set.changes != changes {
            return;
        }
        let place =
            set.rows.iter_mut().min_by_key(|old| (old.fingerprint != row.fingerprint, old.until));
        *place.expect("a set has room") = row;
    }

    /// Forgets a row after a newer answer.
    pub(super) fn remove(&self, fingerprint: u64) {
        self.set(fingerprint).remove(fingerprint);
    }

    /// Forgets a row that is being changed, and rejects answers to calls from before.
    pub(super) fn change(&self, fingerprint: u64) {
        let mut set = self.set(fingerprint);
        set.remove(fingerprint);
        set.changes += 1;
    }

    /// The set is chosen by the upper bits. The fingerprint itself is compared in full.
    fn set(&self, fingerprint: u64) -> MutexGuard<'_, Set> {
        // A multiplication spreads over any number of sets, without a division and without a power of two.
        let at = (u128::from(fingerprint) * self.0.len() as u128) >> 64;
        self.0[at as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Set {
    fn remove(&mut self, fingerprint: u64) {
        if let Some(row) = self.rows.iter_mut().find(|row| row.fingerprint == fingerprint) {
            *row = Row::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(fingerprint: u64, until: u64) -> Row {
        Row { fingerprint, until, ..Row::default() }
    }

    fn found(table: &Table, fingerprints: std::ops::Range<u64>) -> Vec<u64> {
        fingerprints.filter(|fingerprint| table.find(*fingerprint, 0).is_some()).collect()
    }

    #[test]
    fn the_row_that_ends_first_makes_room() {
        let table = Table::new(SET);
        for (fingerprint, until) in [(1, 500), (2, 300), (3, 400), (4, 600), (5, 200), (6, 700)] {
            table.put(row(fingerprint, until), 0);
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
        assert_eq!(found(&table, 1..3), [0_u64; 0]);
    }

    #[test]
    fn a_row_is_found_from_its_answer_to_its_end() {
        let table = Table::new(1);
        table.put(Row { received: 100, ..row(1, 200) }, 0);
        let is_found = |at| table.find(1, at).is_some();
        assert_eq!([99, 100, 199, 200].map(is_found), [false, true, true, false]);
    }

    #[test]
    fn answers_from_before_a_change_are_rejected() {
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
    fn every_fingerprint_has_a_set() {
        let table = Table::new(9);
        assert_eq!(table.0.len(), 3);
        for fingerprint in [1, u64::MAX / 2, u64::MAX] {
            table.put(row(fingerprint, 500), 0);
            assert!(table.find(fingerprint, 0).is_some());
        }
    }
}
