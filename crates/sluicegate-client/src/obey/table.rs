use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;
use sluicegate::key::KeyBuf;
use tokio::sync::{Notify, Semaphore};

use super::standing::Standing;

/// Parts of the table with a lock each, so that threads seldom meet.
const SHARDS: usize = 16;

/// How the client stands with each server, and who waits for a turn.
///
/// When a part is full, what is idle is forgotten; else what holds requests back for the shortest time.
#[derive(Debug)]
pub(super) struct Table {
    shards: [Mutex<Shard>; SHARDS],
    hasher: RandomState,
    /// Most rows of a part.
    room: usize,
}

type Shard = HashMap<KeyBuf, Row, RandomState>;

#[derive(Debug, Default)]
pub(super) struct Row {
    pub(super) standing: Standing,
    /// Requests that wait, and where they wait.
    pub(super) waiting: usize,
    line: Option<Arc<Line>>,
}

/// Where requests to one server wait: the first asks again and again, the others wait behind it.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) front: Semaphore,
    /// A response has come, or a request was given up.
    pub(super) news: Notify,
}

impl Row {
    /// Joins the line.
    pub(super) fn join(&mut self) -> Arc<Line> {
        self.waiting += 1;
        let new = || Arc::new(Line { front: Semaphore::new(1), news: Notify::new() });
        self.line.get_or_insert_with(new).clone()
    }

    /// Leaves the line.
    pub(super) fn leave(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
        if self.waiting == 0 {
            self.line = None;
        }
    }

    /// Tells the first in the line that there is news.
    pub(super) fn tell(&self) {
        if let Some(line) = &self.line {
            line.news.notify_one();
        }
    }
}

impl Table {
    /// A table of about so many rows.
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::default(),
            room: capacity.div_ceil(SHARDS),
        }
    }

    /// Uses the row of `key`, which is made if there is none. `None` where every row is waited for.
    pub(super) fn with<T>(
        &self,
        key: &KeyBuf,
        now: u64,
        with: impl FnOnce(&mut Row) -> T,
    ) -> Option<T> {
        let mut shard = self.shard(key);
        if let Some(row) = shard.get_mut(key) {
            return Some(with(row));
        }
        if shard.len() >= self.room && !make_room(&mut shard, now, self.room) {
            return None;
        }
        Some(with(shard.entry(*key).or_default()))
    }

    /// Uses the row of `key`, if there is one.
    pub(super) fn with_known<T>(
        &self,
        key: &KeyBuf,
        with: impl FnOnce(&mut Row) -> T,
    ) -> Option<T> {
        self.shard(key).get_mut(key).map(with)
    }

    /// Rows in use.
    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    fn shard(&self, key: &KeyBuf) -> MutexGuard<'_, Shard> {
        // The map uses the low bits of a hash of its own.
        lock(&self.shards[(self.hasher.hash_one(key) >> 60) as usize % SHARDS])
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    // No code of a user runs under the lock.
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Forgets what is idle; if nothing is, one row. False if all are waited for.
fn make_room(shard: &mut Shard, now: u64, room: usize) -> bool {
    shard.retain(|_, row| row.waiting > 0 || !row.standing.is_idle(now));
    if shard.len() < room {
        return true;
    }
    let rows = shard.iter().filter(|(_, row)| row.waiting == 0);
    let soonest = rows.min_by_key(|(_, row)| row.standing.not_before()).map(|(key, _)| *key);
    soonest.is_some_and(|key| shard.remove(&key).is_some())
}
