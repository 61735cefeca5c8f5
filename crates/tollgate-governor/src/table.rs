//! A bounded table that tidies itself.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tollgate_core::{Charge, KeyBuf, Owed};

use crate::bucket::Row;

/// From this capacity on the table is cut into shards: below, one lock is as good.
const SHARDED: usize = 1_024;
const SHARDS: usize = 64;

/// Rows that are looked at for one to take away: whenever one is added, and when there is no room.
const LOOK: usize = 2;
const LOOK_HARDER: usize = 16;

/// The limit and the key that a row belongs to.
type Id = (u64, KeyBuf);

pub(crate) struct Table {
    shards: Box<[Mutex<Shard>]>,
    hasher: RandomState,
    /// Rows that a shard has room for.
    room: usize,
}

#[derive(Default)]
struct Shard {
    rows: HashMap<Id, Row>,
    /// Every row once; the hand of the clock is at its front.
    ring: VecDeque<Id>,
}

/// Whether a row that is not there is about to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Find {
    Only,
    OrInsert,
}

impl Table {
    pub(crate) fn new(capacity: usize) -> Self {
        let (shards, room) = match capacity {
            // Keys do not fall evenly: a quarter more room lets as many in as were asked for.
            SHARDED.. => (SHARDS, (capacity / SHARDS).saturating_add(capacity / SHARDS / 4 + 1)),
            few => (1, few),
        };
        let shards = (0..shards).map(|_| Mutex::default()).collect();
        Self { shards, hasher: RandomState::new(), room }
    }

    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).rows.len()).sum()
    }

    /// Hands out the rows of a charge, all locked at once, and writes them back. `None`: there is no
    /// room for one that is new.
    pub(crate) fn rows<T>(
        &self,
        charge: &Charge,
        find: Find,
        now: u64,
        change: impl FnOnce(&mut [Row]) -> T,
    ) -> Option<T> {
        let ids: Vec<_> = charge.owed().map(|owed| self.id(owed)).collect();
        // In one order everywhere, so that no two wait for each other.
        let mut wanted: Vec<_> = ids.iter().map(|(shard, _)| *shard).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut locked: Vec<_> =
            wanted.iter().map(|shard| (*shard, lock(&self.shards[*shard]))).collect();

        let mut rows = Vec::with_capacity(ids.len());
        for (shard, id) in &ids {
            let shard = of(&mut locked, *shard);
            let known = shard.rows.get(id).copied();
            if known.is_none() && find == Find::OrInsert && !shard.has_room(self.room, now) {
                return None;
            }
            rows.push(known.unwrap_or_default());
        }
        let outcome = change(&mut rows);
        for ((shard, id), row) in ids.into_iter().zip(rows) {
            of(&mut locked, shard).write(id, row, find);
        }
        Some(outcome)
    }

    fn id(&self, owed: &Owed) -> (usize, Id) {
        let id = (owed.limit.id(), owed.key);
        let shard = self.hasher.hash_one(id) % self.shards.len() as u64;
        (shard as usize, id)
    }
}

impl Shard {
    /// A row that owes nothing any more equals none: it is taken away as the hand passes.
    fn has_room(&mut self, room: usize, now: u64) -> bool {
        let looks = if self.rows.len() < room { LOOK } else { LOOK_HARDER };
        for _ in 0..looks.min(self.ring.len()) {
            let Some(id) = self.ring.pop_front() else { break };
            if self.rows.get(&id).is_some_and(|row| row.debt(now) == 0) {
                self.rows.remove(&id);
            } else {
                self.ring.push_back(id);
            }
        }
        self.rows.len() < room
    }

    fn write(&mut self, id: Id, row: Row, find: Find) {
        if let Some(known) = self.rows.get_mut(&id) {
            *known = row;
        } else if find == Find::OrInsert && row.debt > 0 {
            self.rows.insert(id, row);
            self.ring.push_back(id);
        }
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

fn of<'a>(locked: &'a mut [(usize, MutexGuard<'_, Shard>)], shard: usize) -> &'a mut Shard {
    let found = locked.iter_mut().find(|(locked, _)| *locked == shard);
    &mut found.expect("every shard of the charge is locked").1
}
