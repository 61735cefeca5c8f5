//! The entries of a sliding log.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The stamps of one key, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Log {
    /// The clock at the last write, or up to one resolution later: a clock that steps back is told
    /// by it.
    pub(super) seen: u64,
    /// All that `entries` hold.
    pub(super) total: u64,
    /// Which of the store's counts its room is part of.
    pub(super) class: u8,
    pub(super) entries: VecDeque<Entry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) stamp: u64,
    pub(super) cost: u64,
}

impl Log {
    /// Entries that fit before the log has to be given more room.
    pub fn room(&self) -> usize {
        self.entries.capacity() - self.entries.len()
    }

    /// The newest stamp.
    pub(crate) fn newest(&self) -> Option<u64> {
        self.entries.back().map(|entry| entry.stamp)
    }

    /// Makes room for `more` entries. The arithmetic never does: it must not allocate.
    pub fn reserve_exact(&mut self, more: usize) {
        self.entries.reserve_exact(more);
    }

    /// How many entries it has room for.
    pub fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    /// The number of the count that its room is part of.
    pub fn class(&self) -> u8 {
        self.class
    }

    /// Sets that number.
    pub fn set_class(&mut self, class: u8) {
        self.class = class;
    }

    /// Merges neighbours until about half of the `most` entries are left: what was spent at one moment counts
    /// as spent at a later one, as under a [resolution](crate::Limit::resolution), so nothing leaves the
    /// window too early.
    ///
    /// Of `most`, which is at least 4, one and a half as many and more go each time, so that an entry costs
    /// no more than a few steps, however often this is done. Steps are powers of two from one zero on: an
    /// entry that is merged again and again is put off by one step at most, which is the window divided by
    /// a quarter of `most` or less.
    pub fn coarsen(&mut self, most: usize) {
        let (Some(oldest), Some(newest)) = (self.entries.front(), self.entries.back()) else {
            return;
        };
        let parts = (most as u64 / 2).max(1);
        let step = ((newest.stamp - oldest.stamp) / parts + 1).next_power_of_two();
        let entries = self.entries.make_contiguous();
        let mut last = 0;
        for at in 1..entries.len() {
            let Entry { stamp, cost } = entries[at];
            if entries[last].stamp / step == stamp / step {
                entries[last] = Entry { stamp, cost: entries[last].cost + cost };
            } else {
                last += 1;
                entries[last] = Entry { stamp, cost };
            }
        }
        self.entries.truncate(last + 1);
    }

    /// A copy of the log in at most `most` entries, with room for no more.
    pub fn coarse(&self, most: usize) -> Self {
        let mut log = self.clone();
        if log.entries.len() > most {
            log.coarsen(most);
        }
        let mut entries = VecDeque::with_capacity(most);
        entries.extend(log.entries.drain(..));
        Self { entries, class: 0, ..log }
    }

    /// When it was written last, and each stamp with its cost.
    pub(crate) fn numbers(&self) -> (u64, Vec<[u64; 2]>) {
        (self.seen, self.entries.iter().map(|entry| [entry.stamp, entry.cost]).collect())
    }

    /// In order of time: a place booked ahead may come after the present one.
    pub(super) fn insert(&mut self, stamp: u64, cost: u64) {
        self.total += cost;
        match self.entries.back_mut() {
            Some(newest) if newest.stamp == stamp => newest.cost += cost,
            Some(newest) if newest.stamp > stamp => {
                match self.entries.binary_search_by_key(&stamp, |entry| entry.stamp) {
                    Ok(at) => self.entries[at].cost += cost,
                    Err(at) => self.entries.insert(at, Entry { stamp, cost }),
                }
            }
            _ => self.entries.push_back(Entry { stamp, cost }),
        }
    }

    pub(super) fn drop_oldest_while(&mut self, goes: impl Fn(Entry, u64) -> bool) {
        while let Some(&oldest) = self.entries.front() {
            if !goes(oldest, self.total) {
                break;
            }
            self.total -= oldest.cost;
            self.entries.pop_front();
        }
    }
}
