use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

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
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
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
    /// When it was last charged or renewed, by this process's clock.
    touched: u64,
    /// Whether the server may count more.
    is_doubtful: bool,
}

/// The rows to renew, and their counts in one turn.
#[derive(Debug)]
pub(crate) struct Due {
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

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rows that have to be renewed. `None` if this process holds no places at all, so that the task may end.
    pub(crate) fn due(&self, now: u64) -> Option<Due> {
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

    /// These rows were renewed by a call that began at `asked`.
    pub(crate) fn renewed(&self, rows: &[(Vec<u8>, u64)], asked: u64) {
        let mut held = self.lock();
        for (key, _) in rows {
            if let Some(row) = held.rows.get_mut(key) {
                row.touched = row.touched.max(asked);
            }
        }
    }

    /// It is not known whether these rows were renewed.
    pub(crate) fn not_renewed(&self, rows: &[(Vec<u8>, u64)]) {
        self.doubt(rows.iter().map(|(key, _)| key));
    }
}

impl Held {
    fn raise(&mut self, key: &[u8], count: u64, now: u64) {
        if !self.rows.contains_key(key) {
            self.rows.insert(key.to_vec(), Row::default());
        } else if self.rows[key].count == 0 {
            self.doubtful -= 1;
        }
        let row = self.rows.get_mut(key).expect("it was inserted above");
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

    /// Records that the server may count more in a row.
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
