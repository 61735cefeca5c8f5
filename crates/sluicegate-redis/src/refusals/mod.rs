//! Refusals that are remembered, so that a flood costs the server nothing.
//!
//! What is remembered is not the answer, but the rows, as the server left them when it refused: nobody
//! but those who are admitted changes them, and the time, which passes here as it does there. So
//! [`decide`] says what the server would answer by now, to any cost and any limits that look at the same
//! rows. It is only believed when it refuses, and the server is asked whenever it would admit.

mod epochs;
mod table;
mod watch;

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::adapter::remote::{LimitParameters, state};
use sluicegate_core::adapter::{Attempt, Charge, Debit, Keys, Outcome, State, decide};
use sluicegate_core::clock::Clock;

pub(crate) use self::epochs::{Epochs, Seen};
use self::table::{Row, Table};
pub(crate) use self::watch::{Change, Watch};
use crate::shared::Ask;

/// Rows that have refused, where they are remembered.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refusals(Option<Arc<Inner>>);

struct Inner {
    /// Keyed by the operating system: no client can choose where its key lands, or meet another. A print
    /// is 64 bits; that one of a million keys meets one of 65,536 rows has a chance of 1 in 280 million.
    seed: RandomState,
    table: Table,
    /// Microseconds after which a row is looked at again.
    longest: u64,
    clock: Clock,
    epochs: Arc<Epochs>,
}

/// What is known of several rows, as of one moment.
struct View {
    /// The server's clock, no later than it is.
    now: u64,
    /// No earlier than it is.
    latest: u64,
}

impl Refusals {
    /// Remembers so many `rows`, each for no longer than `longest`; none, if there is no room or no time.
    pub(crate) fn new(
        (rows, longest): (usize, Duration),
        clock: &Clock,
        epochs: &Arc<Epochs>,
    ) -> Self {
        if rows == 0 || longest.is_zero() {
            return Self::default();
        }
        Self(Some(Arc::new(Inner {
            seed: RandomState::new(),
            table: Table::new(rows),
            longest: micros(longest),
            clock: clock.clone(),
            epochs: Arc::clone(epochs),
        })))
    }

    /// What the server would answer, if it is known to refuse.
    #[inline]
    pub(crate) fn recall(&self, charge: &Charge) -> Option<Outcome> {
        let inner = self.0.as_deref()?;
        let mut debit = charge.debits();
        match (debit.next(), debit.next(), charge.patience()) {
            (Some(debit), None, None) => inner.recall_one(charge, debit),
            (Some(_), Some(_), None) => inner.recall_several(charge),
            _ => None,
        }
    }

    /// A question that is about to be asked.
    pub(crate) fn watch(&self, ask: Ask, charge: &Charge) -> Watch {
        self.0.as_ref().map_or(Watch::Off, |inner| Watch::new(inner, ask, charge))
    }

    /// A charge that is about to be settled.
    pub(crate) fn change(&self, debit: &Debit) -> Option<Change> {
        self.0.as_ref().map(|inner| Change::new(inner, std::iter::once(debit)))
    }
}

impl Inner {
    /// Never 0.
    #[inline]
    fn print(&self, debit: &Debit) -> u64 {
        self.seed.hash_one((debit.limit.id(), &debit.key)).max(1)
    }

    /// What was told before the last connection to that server was made, it may have forgotten.
    #[inline]
    fn find(&self, debit: &Debit, at: u64) -> Option<Row> {
        let row = self.table.find(self.print(debit), at)?;
        self.epochs.is_current(row.seen).then_some(row)
    }

    #[inline]
    fn recall_one(&self, charge: &Charge, debit: &Debit) -> Option<Outcome> {
        let at = self.clock.now();
        let row = self.find(debit, at)?;
        let view = row.view(at);
        if !is_remembered(charge) {
            return None;
        }
        let mut state = state(row.cell);
        let attempt = Attempt { limit: &debit.limit, state: &mut state, cost: debit.cost };
        view.refusal(decide(&mut [attempt], view.now, None, Keys::One))
    }

    #[cold]
    fn recall_several(&self, charge: &Charge) -> Option<Outcome> {
        let at = self.clock.now();
        let rows = charge.debits().map(|debit| self.find(debit, at));
        let rows: Vec<_> = rows.collect::<Option<_>>()?;
        let view = rows.iter().map(|row| row.view(at)).reduce(View::joined)?;
        if !is_remembered(charge) {
            return None;
        }
        let mut states: Vec<State> = rows.iter().map(|row| state(row.cell)).collect();
        let attempts = charge.debits().zip(&mut states);
        let attempts =
            attempts.map(|(debit, state)| Attempt { limit: &debit.limit, state, cost: debit.cost });
        let mut attempts: Vec<_> = attempts.collect();
        view.refusal(decide(&mut attempts, view.now, None, charge.keys()))
    }
}

impl Row {
    #[inline]
    fn view(&self, at: u64) -> View {
        let now = self.now.saturating_add(at.saturating_sub(self.told));
        View { now, latest: now.saturating_add(self.took) }
    }
}

impl View {
    /// Each bounds the same clock.
    fn joined(self, other: Self) -> Self {
        Self { now: self.now.max(other.now), latest: self.latest.min(other.latest) }
    }

    /// Refuses whom the server would refuse by any clock that it may show: whoever might be admitted asks.
    /// What is told goes by the earliest, so that who waits so long comes late rather than early.
    #[inline]
    fn refusal(&self, outcome: Outcome) -> Option<Outcome> {
        let spread = self.latest.saturating_sub(self.now);
        let retry_after = outcome.retry_after()?;
        (micros(retry_after) > spread).then_some(outcome)
    }
}

/// Whether a refusal changes nothing, and time alone ends it: what is held can be given back at any moment.
/// Limits of which two words do not tell all have no cell to be remembered.
fn is_remembered(charge: &Charge) -> bool {
    let mut limits = charge.debits().map(|debit| &debit.limit);
    limits.all(|limit| !limit.is_held() && !LimitParameters::of(limit).count_refused)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Shows no seed.
impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").field("longest", &self.longest).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
