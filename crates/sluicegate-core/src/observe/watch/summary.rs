//! The Space-Saving algorithm: A. Metwally, D. Agrawal and A. El Abbadi, "Efficient Computation of
//! Frequent and Top-k Elements in Data Streams", ICDT 2005.

use crate::key::KeyBuf;

/// Counters for the keys that come most often.
///
/// A key without a counter takes over the lowest one, with its count. So a counter is never below the number of its
/// key's refusals, and above it by at most what it took over.
#[derive(Debug, Clone)]
pub(super) struct Summary {
    room: usize,
    /// Apart from the keys, so that searching them takes a few cache lines.
    hashes: Vec<u64>,
    counts: Vec<u64>,
    owners: Vec<Owner>,
    /// The last key: a flood mostly comes from one client.
    latest: usize,
}

#[derive(Debug, Clone, Copy)]
struct Owner {
    key: KeyBuf,
    /// The count when the counter became this key's.
    inherited: u64,
}

/// The bounds of a key's refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RefusalBounds {
    pub(super) key: KeyBuf,
    pub(super) at_least: u64,
    pub(super) at_most: u64,
}

impl Summary {
    /// `room` counters, allocated when they are needed.
    pub(super) const fn new(room: usize) -> Self {
        Self { room, hashes: Vec::new(), counts: Vec::new(), owners: Vec::new(), latest: 0 }
    }

    /// Counts a refusal of `key`, whose hash is `hash`.
    pub(super) fn add(&mut self, hash: u64, key: &KeyBuf) {
        let at = self.find(hash, key).unwrap_or_else(|| self.take_over(hash, key));
        self.counts[at] += 1;
        self.latest = at;
    }

    fn find(&self, hash: u64, key: &KeyBuf) -> Option<usize> {
        let is_at = |at: &usize| self.hashes[*at] == hash && self.owners[*at].key == *key;
        let latest = Some(self.latest).filter(|at| *at < self.hashes.len()).filter(is_at);
        latest.or_else(|| (0..self.hashes.len()).find(is_at))
    }

    fn take_over(&mut self, hash: u64, key: &KeyBuf) -> usize {
        if self.hashes.len() < self.room {
            self.hashes.push(hash);
            self.counts.push(0);
            self.owners.push(Owner { key: *key, inherited: 0 });
            return self.hashes.len() - 1;
        }
        let lowest = (0..self.room).min_by_key(|at| self.counts[*at]).expect("there is room");
        self.hashes[lowest] = hash;
        self.owners[lowest] = Owner { key: *key, inherited: self.counts[lowest] };
        lowest
    }

    /// The keys with a counter.
    pub(super) fn bounds(&self) -> impl Iterator<Item = RefusalBounds> {
        self.owners.iter().zip(&self.counts).map(|(owner, count)| RefusalBounds {
            key: owner.key,
            at_least: count - owner.inherited,
            at_most: *count,
        })
    }

    /// Upper bound for a key that has no counter.
    pub(super) fn at_most_unseen(&self) -> u64 {
        if self.hashes.len() < self.room {
            0
        } else {
            self.counts.iter().copied().min().unwrap_or(0)
        }
    }

    /// The number of refusals.
    pub(super) fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Forgets all keys.
    pub(super) fn clear(&mut self) {
        self.hashes.clear();
        self.counts.clear();
        self.owners.clear();
    }
}
