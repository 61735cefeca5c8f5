//! The places of concurrency limits that this process holds, and how the server learns that it is alive.
//!
//! In the server, each holder has an entry in the row, which expires unless it is renewed. So the places of a process
//! that has died are free when its lease ends. This process counts how many places it holds in each row, including
//! those of calls without an answer yet. While that is more than none, one task renews the rows.
//!
//! The local count is never lower than the server's rightful count. So if the server counts more in a row from which
//! nothing was taken since, the renewal lowers its count: the difference was taken or given back in a message that was
//! lost.
//!
//! The row of a `Limit::concurrent` ends with an entry of 48 bytes for each process that holds places: the
//! random number of the process, the number of places, the turns of its first and its newest charge, when
//! the entry expires, and the lease. Every script that reads the row passes over expired entries by the
//! server's clock, and the next write drops them. The entry of a process is alive for that process as long
//! as it exists, because then nobody has taken its places. The receipt of a charge holds the turn in which
//! its entry began, so a place that is given back after the entry was lost finds another entry or none, and
//! takes nothing from other processes. Reading a row takes about half a microsecond longer for each process that
//! holds places in it.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use sluicegate_core::adapter::{Charge, Debit, Receipt};

/// A lease is renewed when this fraction of it has passed, which leaves time for a second and a third attempt.
const FRACTION: u32 = 4;

/// How many rows are kept in which this process holds nothing but the server may count more. Places in further ones
/// expire with their lease.
pub(super) const DOUBTFUL: usize = 4_096;

/// Holders have numbers below this, so that sums of them and times are exact in a double.
pub(super) const HOLDERS: u64 = 1 << 48;

/// The places that this process holds.
pub(crate) struct Places {
    /// The number of this process among all holders.
    holder: u64,
    lease: Duration,
    held: Mutex<HeldPlaces>,
}

#[derive(Debug, Default)]
struct HeldPlaces {
    /// Grows with each request for places.
    turn: u64,
    rows: HashMap<Vec<u8>, Row>,
    /// Rows in which this process holds nothing, but the server may count more.
    doubtful: usize,
    /// Whether a task renews the rows.
    is_renewed: bool,
}

/// The places in one row that are held, or about to be charged.
#[derive(Debug, Default)]
struct Row {
    count: u64,
    /// How many of these are held by requests that were admitted and have given back nothing yet. An entry in the
    /// server that is missing was lost only if there are any.
    held: u64,
    /// How many were held when the row was last renewed, and still are.
    renewed: u64,
    /// When its lease last began at the earliest, by this process's clock: a charge that was admitted, or a renewal. A
    /// charge that is refused leaves the entry in the server as it is.
    touched: u64,
    /// Whether the server may count more.
    is_doubtful: bool,
}

/// The rows to renew, and their counts in one turn.
#[derive(Debug)]
pub(crate) struct DueRows {
    pub(crate) turn: u64,
    pub(crate) rows: Vec<(Vec<u8>, u64)>,
}

impl Places {
    pub(crate) fn new(lease: Duration) -> Self {
        // A forked process shares its parent's seeds, but not its process number.
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

    /// The interval between renewals of a row.
    pub(crate) fn pause(&self) -> Duration {
        self.lease / FRACTION
    }

    /// Counts places in these rows, which are about to be charged, and returns the turn.
    pub(super) fn raise(&self, rows: &[(usize, Vec<u8>, u64)], now: u64) -> u64 {
        let mut held = self.lock();
        held.turn += 1;
        for (_, key, count) in rows {
            held.raise(key, *count, now);
        }
        held.turn
    }

    pub(super) fn lower(&self, rows: &[(usize, Vec<u8>, u64)]) {
        let mut held = self.lock();
        rows.iter().for_each(|(_, key, count)| held.lower(key, *count));
    }

    /// Records that the server may count more in these rows.
    pub(super) fn doubt<'k>(&self, keys: impl IntoIterator<Item = &'k Vec<u8>>) {
        let mut held = self.lock();
        keys.into_iter().for_each(|key| held.doubt(key));
    }

    /// Returns whether a task to renew the rows has to be started.
    pub(crate) fn start_renewing(&self) -> bool {
        !std::mem::replace(&mut self.lock().is_renewed, true)
    }

    #[cfg(test)]
    pub(super) fn doubtful(&self) -> usize {
        self.lock().doubtful
    }

    fn lock(&self) -> MutexGuard<'_, HeldPlaces> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rows that have to be renewed. `None` if this process holds no places at all, so that the task may end.
    pub(crate) fn due(&self, now: u64) -> Option<DueRows> {
        // A row that was charged a moment ago was renewed by that.
        let age = self.pause().as_micros() as u64;
        let mut held = self.lock();
        // Under the same lock as `start_renewing`: a row that is raised after this starts a new task, and one that was
        // raised before is seen here.
        if held.rows.is_empty() {
            held.is_renewed = false;
            return None;
        }
        let is_due = |row: &Row| row.is_doubtful || row.touched > now || now - row.touched >= age;
        let rows = held.rows.iter_mut().filter(|(_, row)| is_due(row));
        let rows = rows.map(|(key, row)| {
            row.renewed = row.held;
            (key.clone(), row.count)
        });
        let rows: Vec<_> = rows.collect();
        // Trusted before the call, and doubted again if that fails: a message that gets lost in the meantime sets the
        // doubt anew, and that must survive.
        for (key, _) in &rows {
            held.trust(key);
        }
        Some(DueRows { turn: held.turn, rows })
    }

    /// These rows were renewed by a call that began at `asked`.
    pub(crate) fn renewed(&self, rows: &[(Vec<u8>, u64)], asked: u64) {
        let mut held = self.lock();
        for (key, _) in rows {
            if let Some(row) = held.rows.get_mut(key) {
                row.touched = row.touched.max(asked);
            }
        }
    }

    /// The server counts nothing of this process in these rows. Returns in how many of them places were lost that
    /// requests hold. Their count stays as it is: it may be too high, but never too low.
    pub(crate) fn lose<'k>(&self, keys: impl IntoIterator<Item = &'k Vec<u8>>) -> u64 {
        let mut held = self.lock();
        keys.into_iter().map(|key| u64::from(held.lose(key))).sum()
    }

    /// It is not known whether these rows were renewed.
    pub(crate) fn not_renewed(&self, rows: &[(Vec<u8>, u64)]) {
        self.doubt(rows.iter().map(|(key, _)| key));
    }
}

impl HeldPlaces {
    fn raise(&mut self, key: &[u8], count: u64, now: u64) {
        if !self.rows.contains_key(key) {
            self.rows.insert(key.to_vec(), Row::default());
        } else if self.rows[key].count == 0 {
            // It was kept for its doubt alone. From here on it counts as a row in which something is held.
            self.doubtful -= 1;
        }
        let row = self.rows.get_mut(key).expect("it was inserted above");
        if row.count == 0 {
            row.touched = now;
        }
        row.count += count;
    }

    /// Places that were counted before are held from now on. The call that charged them began at `began`.
    fn hold(&mut self, key: &[u8], count: u64, began: u64) {
        if let Some(row) = self.rows.get_mut(key) {
            row.held += count;
            row.touched = row.touched.max(began);
        }
    }

    /// Places are about to be given back. They are counted until the server knows.
    fn give_back(&mut self, key: &[u8], count: u64) {
        if let Some(row) = self.rows.get_mut(key) {
            row.held = row.held.saturating_sub(count);
            row.renewed = row.renewed.min(row.held);
        }
    }

    /// Returns whether places were held that the server did not count.
    fn lose(&mut self, key: &[u8]) -> bool {
        let Some(row) = self.rows.get_mut(key) else { return false };
        // Not those that were charged since the renewal began: the server may have counted them after it.
        row.held -= row.renewed;
        std::mem::take(&mut row.renewed) > 0
    }

    fn lower(&mut self, key: &[u8], count: u64) {
        let Some(row) = self.rows.get_mut(key).filter(|row| row.count > 0) else { return };
        row.count = row.count.saturating_sub(count);
        if row.count > 0 {
            return;
        }
        // It is kept, though nothing is held in it: the next renewal tells the server so.
        if row.is_doubtful && self.doubtful < DOUBTFUL {
            self.doubtful += 1;
        } else {
            self.rows.remove(key);
        }
    }

    /// Records that the server may count more in a row.
    fn doubt(&mut self, key: &[u8]) {
        match self.rows.get_mut(key) {
            Some(row) => row.is_doubtful = true,
            None if self.doubtful < DOUBTFUL => {
                self.doubtful += 1;
                // The bound is for clients that invent keys while the server is away. Places beyond it end with their
                // lease.
                let row = Row { is_doubtful: true, ..Row::default() };
                self.rows.insert(key.to_vec(), row);
            }
            None => {}
        }
    }

    /// The server is about to learn the count of a row.
    fn trust(&mut self, key: &[u8]) {
        let Some(row) = self.rows.get_mut(key) else { return };
        row.is_doubtful = false;
        if row.count == 0 {
            self.doubtful -= 1;
            self.rows.remove(key);
        }
    }
}

/// Hides the keys.
impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Places").field("lease", &self.lease).finish_non_exhaustive()
    }
}

/// Places that are about to be charged or given back. They count as held until this is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    places: Arc<Places>,
    turn: u64,
    /// When the call began, by this process's clock.
    began: u64,
    /// The index of the debit in its charge, the key of the row, and the number of places.
    rows: Vec<(usize, Vec<u8>, u64)>,
}

impl Claim {
    /// Counts the places that `charge` takes in rows with these `keys`. `None` if it takes none.
    pub(crate) fn charging(
        places: &Arc<Places>,
        charge: &Charge,
        keys: &[Vec<u8>],
        now: u64,
    ) -> Option<Self> {
        let holds = |debit: &Debit| debit.limit.is_held() && debit.cost > 0;
        if !charge.debits().any(holds) {
            return None;
        }
        let rows = charge.debits().zip(keys).enumerate().filter(|(_, (debit, _))| holds(debit));
        let rows: Vec<_> =
            rows.map(|(index, (debit, key))| (index, key.clone(), debit.cost)).collect();
        // Raised before the call is sent. The server lowers its count to ours, so ours may be too high but never too
        // low.
        let turn = places.raise(&rows, now);
        Some(Self { places: Arc::clone(places), turn, began: now, rows })
    }

    /// Places that are about to be given back, and count until the server knows.
    pub(crate) fn returning(places: &Arc<Places>, key: Vec<u8>, count: u64) -> Self {
        places.lock().give_back(&key, count);
        Self { places: Arc::clone(places), turn: 0, began: 0, rows: vec![(0, key, count)] }
    }

    /// The turn in which the places were claimed.
    pub(crate) const fn turn(&self) -> u64 {
        self.turn
    }

    /// The request was admitted. Debits whose receipt, in the order of the debits, is not void were charged: their
    /// places are held until they are [returned](Self::returning).
    pub(crate) fn admitted(&mut self, receipts: &[Receipt]) {
        let (mut held, began) = (self.places.lock(), self.began);
        self.rows.retain(|(index, key, count)| {
            let is_void = receipts.get(*index).is_none_or(Receipt::is_void);
            if !is_void {
                held.hold(key, *count, began);
            }
            is_void
        });
    }

    /// It may never be known whether the server counts these places. The next renewal tells it the count.
    pub(crate) fn doubt(&self) {
        self.places.doubt(self.rows.iter().map(|(_, key, _)| key));
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.rows.is_empty() {
            self.places.lower(&self.rows);
        }
    }
}

#[cfg(test)]
mod tests;
