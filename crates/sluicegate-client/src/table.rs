//! A bounded table of what is known by key.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use foldhash::fast::FixedState;
use sluicegate::adapter::KeyHash;
use sluicegate::key::KeyBuf;

/// Parts of the table with a lock each, so that threads seldom meet.
const SHARDS: usize = 16;

/// Most rows that a table may be asked for.
pub(crate) const MOST_ROWS: usize = 10_000_000;

/// A row of the table.
pub(crate) trait Row: Default {
    /// What would be lost if it were forgotten.
    fn worth(&self, now: u64) -> Worth;
}

/// What would be lost if a row were forgotten; the least goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Worth {
    Nothing,
    Something(u64),
    /// It is in use.
    Keep,
}

/// What a row is found by: a hash of its key, as in `Memory`. Of 10,000 keys, two have the same one in one program of
/// 300,000,000,000; they then share a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RowKey(u64);

/// Rows by key. When a part is full, what is worth nothing is forgotten, else what is worth the least.
#[derive(Debug)]
pub(crate) struct Table<T> {
    shards: [Mutex<Shard<T>>; SHARDS],
    hash: KeyHash,
    /// Most rows of a part.
    room: usize,
}

type Shard<T> = HashMap<RowKey, T, FixedState>;

impl<T: Row> Table<T> {
    /// A table of about this many rows.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            hash: KeyHash::new(),
            room: capacity.div_ceil(SHARDS),
        }
    }

    /// What the row of `key` is found by.
    #[inline]
    pub(crate) fn key(&self, key: &KeyBuf) -> RowKey {
        RowKey(self.hash.of(0, key))
    }

    /// What the row of two keys together is found by.
    #[inline]
    pub(crate) fn both(&self, first: RowKey, second: RowKey) -> RowKey {
        RowKey(self.hash.of(first.0, &KeyBuf::of(second.0)))
    }

    /// Uses the row of `key`, which is made if there is none. `None` where every row has to be kept.
    pub(crate) fn with<O>(
        &self,
        key: RowKey,
        now: u64,
        with: impl FnOnce(&mut T) -> O,
    ) -> Option<O> {
        let mut shard = self.shard(key);
        if let Some(row) = shard.get_mut(&key) {
            return Some(with(row));
        }
        if shard.len() >= self.room && !make_room(&mut shard, now, self.room) {
            return None;
        }
        Some(with(shard.entry(key).or_default()))
    }

    /// Uses the row of `key`, if there is one.
    pub(crate) fn with_known<O>(&self, key: RowKey, with: impl FnOnce(&mut T) -> O) -> Option<O> {
        self.shard(key).get_mut(&key).map(with)
    }

    /// Rows in use.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    fn shard(&self, key: RowKey) -> MutexGuard<'_, Shard<T>> {
        // The map hashes it once more.
        lock(&self.shards[(key.0 >> 60) as usize % SHARDS])
    }
}

fn lock<T>(shard: &Mutex<Shard<T>>) -> MutexGuard<'_, Shard<T>> {
    // No code of a user runs under the lock.
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Forgets what is worth nothing; if there is nothing of that, one row. False if all have to be kept.
fn make_room<T: Row>(shard: &mut Shard<T>, now: u64, room: usize) -> bool {
    // All of them at once: the shard is then not full again with the next request.
    shard.retain(|_, row| row.worth(now) > Worth::Nothing);
    if shard.len() < room {
        return true;
    }
    let least =
        shard.iter().map(|(key, row)| (row.worth(now), key)).min_by_key(|(worth, _)| *worth);
    match least {
        Some((Worth::Something(_), key)) => {
            let key = *key;
            shard.remove(&key).is_some()
        }
        _ => false,
    }
}
