use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::adapter::remote::{LimitParameters, state};
use sluicegate_core::adapter::{Attempt, Charge, Debit, Keys, Outcome, State, decide};
use sluicegate_core::clock::Clock;

use super::table::{Row, Table};
use crate::wire::epochs::Epochs;

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
        let earliest = self.now.saturating_add(at.saturating_sub(self.received));
        ServerTime { earliest, latest: earliest.saturating_add(self.took) }
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
