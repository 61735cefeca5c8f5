//! A bounded table that removes idle keys by itself.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sluicegate_core::adapter::{Charge, Debit};
use sluicegate_core::key::KeyBuf;

use crate::bucket::Row;

/// The largest number of shards.
const SHARDS: usize = 64;

/// The smallest number of keys in a shard. Keys do not spread evenly over shards. A quarter more room, which is eight
/// standard deviations of a thousand, lets the requested number of keys fit.
const KEYS: usize = 1_024;

/// How many rows are checked for idle ones: whenever a row is added, and when there is no room.
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
    /// Every row once. The sweep continues at the front.
    ring: VecDeque<Id>,
}

/// The row of a key, or a fresh one if there is none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowSlot {
    pub(crate) row: Row,
    /// Whether changes to the row are kept.
    pub(crate) has_room: bool,
}

/// A shard locked by a charge, and how many rows the charge may still add to it.
struct Locked<'a> {
    at: usize,
    shard: MutexGuard<'a, Shard>,
    promised: usize,
}

/// Whether a missing row is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Find {
    Only,
    OrInsert,
}

impl Table {
    pub(crate) fn new(capacity: usize) -> Self {
        let (shards, room) = match (capacity / KEYS).min(SHARDS) {
            0 | 1 => (1, capacity),
            shards => (shards, (capacity / shards).saturating_add(capacity / shards / 4 + 1)),
        };
        let shards = (0..shards).map(|_| Mutex::default()).collect();
        Self { shards, hasher: RandomState::new(), room }
    }

    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).rows.len()).sum()
    }

    /// Locks the rows of a charge, all at once, changes them, and writes back those for which there is room.
    pub(crate) fn rows<T>(
        &self,
        charge: &Charge,
        find: Find,
        now: u64,
        change: impl FnOnce(&mut [RowSlot]) -> T,
    ) -> T {
        let ids: Vec<_> = charge.debits().map(|debit| self.id(debit)).collect();
        // Always in the same order, so that no two charges wait for each other.
        let mut wanted: Vec<_> = ids.iter().map(|(at, _)| *at).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut locked: Vec<_> = wanted.into_iter().map(|at| self.lock(at)).collect();

        let mut found = Vec::with_capacity(ids.len());
        for (at, id) in &ids {
            found.push(of(&mut locked, *at).find(id, find, self.room, now, &ids));
        }
        let outcome = change(&mut found);
        for ((at, id), found) in ids.into_iter().zip(found) {
            if found.has_room {
                of(&mut locked, at).shard.write(id, found.row);
            }
        }
        outcome
    }

    fn id(&self, debit: &Debit) -> (usize, Id) {
        let id = (debit.limit.id(), debit.key);
        let shard = self.hasher.hash_one(id) % self.shards.len() as u64;
        (shard as usize, id)
    }

    fn lock(&self, at: usize) -> Locked<'_> {
        Locked { at, shard: lock(&self.shards[at]), promised: 0 }
    }
}

impl Locked<'_> {
    /// The row of `id`, which is among the `ids` of the charge.
    fn find(&mut self, id: &Id, find: Find, room: usize, now: u64, ids: &[(usize, Id)]) -> RowSlot {
        if let Some(row) = self.shard.rows.get(id) {
            return RowSlot { row: *row, has_room: true };
        }
        // Rows are written at the end. Until then, those that this charge was promised count as taken, or two keys of
        // one request could get the same last place.
        let room = room - self.promised;
        let has_room = find == Find::OrInsert && self.shard.has_room(room, now, ids);
        self.promised += usize::from(has_room);
        RowSlot { row: Row::default(), has_room }
    }
}

impl Shard {
    /// Removes a few idle rows, and says whether there is room for another row. Rows in `kept` are about to be written and
    /// stay.
    fn has_room(&mut self, room: usize, now: u64, kept: &[(usize, Id)]) -> bool {
        // Two looks for each new row: the sweep passes over the table faster than it can grow, so idle rows go without
        // a task that clears up.
        let looks = if self.rows.len() < room { LOOK } else { LOOK_HARDER };
        for _ in 0..looks.min(self.ring.len()) {
            let Some(id) = self.ring.pop_front() else { break };
            let fresh = self.rows.get(&id).is_some_and(|row| row.debt(now) == 0);
            if fresh && !kept.iter().any(|(_, kept)| *kept == id) {
                self.rows.remove(&id);
            } else {
                self.ring.push_back(id);
            }
        }
        self.rows.len() < room
    }

    fn write(&mut self, id: Id, row: Row) {
        if let Some(known) = self.rows.get_mut(&id) {
            *known = row;
        // A row that owes nothing equals a fresh one, so it is not worth a place.
        } else if row.debt > 0 {
            self.rows.insert(id, row);
            self.ring.push_back(id);
        }
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

fn of<'a, 'l>(locked: &'a mut [Locked<'l>], at: usize) -> &'a mut Locked<'l> {
    let found = locked.iter_mut().find(|locked| locked.at == at);
    found.expect("every shard of the charge is locked")
}

#[cfg(test)]
mod tests {
    use sluicegate_core::Limit;
    use sluicegate_core::key::Part;

    use super::*;

    /// However the keys of one charge are spread, and whatever room is left in their shards.
    #[test]
    fn no_shard_has_more_rows_than_room() {
        let table = Table::new(64 * KEYS);
        for round in 0..30_000_u64 {
            let mut charge = Charge::new();
            for name in 0..4_u64 {
                let mut key = KeyBuf::new();
                (round, name).write(&mut key);
                charge.add(Limit::per_hour(9), key, 1).unwrap();
            }
            table.rows(&charge, Find::OrInsert, 0, |found| {
                found.iter_mut().for_each(|found| found.row.debt = u64::MAX);
            });
        }
        let rows = |shard| lock(shard).rows.len();
        assert!(table.shards.iter().all(|shard| rows(shard) <= table.room));
        assert_eq!(table.len(), SHARDS * table.room, "the table has to be full for this test");
    }
}
