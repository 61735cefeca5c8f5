//! Places that this process holds of limits of concurrency, and how the server learns that it is alive.
//!
//! In the server, each holder has an entry in the row, which lapses unless it is renewed: what a process that
//! has died held is free again when its lease is over. Here it is counted how much this process holds in each
//! row, or may hold, as long as a question has no answer. While that is anything, one task renews it.
//!
//! The count here is never less than what the server rightly counts. So a row in which the server counts more,
//! though nothing was taken since, is lowered when it is renewed: that is what was taken or given back in a
//! message that was lost.

mod claim;
mod renewal;

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use sluicegate_core::adapter::{Charge, Debit};

pub(crate) use self::claim::Claim;
pub(crate) use self::renewal::keep;

/// A lease is renewed when this part of it is over, so that a second and a third attempt are in time.
const PART: u32 = 4;

/// Rows in which nothing is held by what is known, but which the server may see otherwise. What is beyond
/// lapses, unless more is taken of it.
const DOUBTFUL: usize = 4_096;

/// Numbers of holders are below this: sums of them and times stay exact.
const HOLDERS: u64 = 1 << 48;

/// What this process holds.
pub(crate) struct Places {
    /// The number of this process among all holders.
    holder: u64,
    lease: Duration,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// Grows with each request for places.
    turn: u64,
    rows: HashMap<Vec<u8>, Row>,
    /// Rows of which nothing is known to be held.
    doubtful: usize,
    /// Whether a task renews them.
    is_renewed: bool,
}

/// What is held in one row, or asked for.
#[derive(Debug, Default)]
struct Row {
    count: u64,
    /// When it was taken from or renewed last, by this process's clock.
    touched: u64,
    /// Whether the server may count more.
    is_doubtful: bool,
}

/// What is to be renewed, and what is known of it as of one turn.
#[derive(Debug)]
struct Due {
    turn: u64,
    rows: Vec<(Vec<u8>, u64)>,
}

impl Places {
    pub(crate) fn new(lease: Duration) -> Self {
        // A child process has its parent's seeds, but another number.
        let unlike_others = (std::process::id(), SystemTime::now());
        let holder = RandomState::new().hash_one(unlike_others) % (HOLDERS - 1) + 1;
        Self { holder, lease, held: Mutex::default() }
    }

    pub(crate) const fn holder(&self) -> u64 {
        self.holder
    }

    /// In microseconds.
    pub(crate) fn lease(&self) -> u64 {
        self.lease.as_micros() as u64
    }

    /// How long after it was touched a row is renewed.
    fn pause(&self) -> Duration {
        self.lease / PART
    }

    /// Counts what is asked for in rows of these `keys`, until it is known what became of it. None, where
    /// nothing is held.
    pub(crate) fn claim(
        self: &Arc<Self>,
        charge: &Charge,
        keys: &[Vec<u8>],
        now: u64,
    ) -> Option<Claim> {
        let holds = |debit: &Debit| debit.limit.is_held() && debit.cost > 0;
        if !charge.debits().any(holds) {
            return None;
        }
        let places = charge.debits().enumerate().zip(keys);
        let places = places.filter(|((_, debit), _)| holds(debit));
        let places: Vec<_> =
            places.map(|((at, debit), key)| (at, key.clone(), debit.cost)).collect();
        let mut held = self.lock();
        held.turn += 1;
        for (_, key, cost) in &places {
            held.raise(key, *cost, now);
        }
        Some(Claim::new(self, held.turn, places))
    }

    /// What is about to be given back: counted until it is.
    pub(crate) fn returned(self: &Arc<Self>, key: Vec<u8>, count: u64) -> Claim {
        Claim::new(self, 0, vec![(0, key, count)])
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was touched so long ago that it has to be renewed; none, if nothing is held at all: who renews
    /// it may end.
    fn due(&self, now: u64) -> Option<Due> {
        let age = self.pause().as_micros() as u64;
        let mut held = self.lock();
        if held.rows.is_empty() {
            held.is_renewed = false;
            return None;
        }
        let is_due = |row: &Row| row.is_doubtful || row.touched > now || now - row.touched >= age;
        let rows = held.rows.iter().filter(|(_, row)| is_due(row));
        let rows: Vec<_> = rows.map(|(key, row)| (key.clone(), row.count)).collect();
        for (key, _) in &rows {
            held.trust(key);
        }
        Some(Due { turn: held.turn, rows })
    }

    /// They were renewed by a question asked then.
    fn renewed(&self, rows: &[(Vec<u8>, u64)], asked: u64) {
        let mut held = self.lock();
        for (key, _) in rows {
            if let Some(row) = held.rows.get_mut(key) {
                row.touched = row.touched.max(asked);
            }
        }
    }

    /// Nobody knows whether they were renewed.
    fn not_renewed(&self, rows: &[(Vec<u8>, u64)]) {
        let mut held = self.lock();
        rows.iter().for_each(|(key, _)| held.doubt(key));
    }
}

impl Held {
    fn raise(&mut self, key: &[u8], count: u64, now: u64) {
        if !self.rows.contains_key(key) {
            self.rows.insert(key.to_vec(), Row::default());
        } else if self.rows[key].count == 0 {
            self.doubtful -= 1;
        }
        let row = self.rows.get_mut(key).expect("it is there now");
        (row.count, row.touched) = (row.count + count, now);
    }

    fn lower(&mut self, key: &[u8], count: u64) {
        let Some(row) = self.rows.get_mut(key).filter(|row| row.count > 0) else { return };
        row.count = row.count.saturating_sub(count);
        if row.count > 0 {
            return;
        }
        if row.is_doubtful && self.doubtful < DOUBTFUL {
            self.doubtful += 1;
        } else {
            self.rows.remove(key);
        }
    }

    /// The server may count more in that row.
    fn doubt(&mut self, key: &[u8]) {
        match self.rows.get_mut(key) {
            Some(row) => row.is_doubtful = true,
            None if self.doubtful < DOUBTFUL => {
                self.doubtful += 1;
                let row = Row { is_doubtful: true, ..Row::default() };
                self.rows.insert(key.to_vec(), row);
            }
            None => {}
        }
    }

    /// The server is about to learn what is known here.
    fn trust(&mut self, key: &[u8]) {
        let Some(row) = self.rows.get_mut(key) else { return };
        row.is_doubtful = false;
        if row.count == 0 {
            self.doubtful -= 1;
            self.rows.remove(key);
        }
    }
}

/// Shows no keys.
impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Places").field("lease", &self.lease).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
