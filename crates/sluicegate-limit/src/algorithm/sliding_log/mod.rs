//! Sliding log: when each request came, so that no interval of one period ever holds more than
//! `count`. Half-open: at exactly one period a place is free again.
//!
//! Stamps of a log with a resolution are rounded up to it, so the log never admits more than an exact one
//! would. Rounding down, as most counters of sub-windows do, lets up to twice the limit pass around a
//! border.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::exact::{EXACT, Earliest, bounded};

/// The most entries that a log ever holds, 1 MiB of them. One that would need more is coarser than it was asked
/// to be; see [`Limit::check_length`](crate::Limit::check_length).
pub const MOST_ENTRIES: usize = 1 << 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SlidingLog {
    pub(crate) count: u64,
    pub(crate) period: u64,
    /// Stamps are rounded up to a multiple of this and merged; 1 keeps each microsecond apart.
    pub(crate) resolution: u64,
}

impl SlidingLog {
    /// The most entries that a log of this shape ever holds without places booked ahead.
    pub(crate) fn entries(&self) -> u64 {
        // Stamps are whole microseconds, or multiples of the resolution, and those that are equal are one entry.
        self.count.min(self.period / self.resolution + 2)
    }

    pub(crate) fn earliest(&self, log: Option<&Log>, now: u64, cost: u64, from: u64) -> Earliest {
        if cost > self.count {
            return Earliest::Never;
        }
        let Some(log) = log else { return Earliest::At(from) };
        let back = self.back(log, now);
        // Entries leave in the order of their stamps. The request may come in when as much has left as is too much now.
        let mut excess = (log.total + cost).saturating_sub(self.count);
        let mut when = now + from;
        // Stops at the first entry that makes room, so a log that is not full costs one look.
        for entry in &log.entries {
            if excess == 0 {
                break;
            }
            excess = excess.saturating_sub(entry.cost);
            // The log may have been written before the clock stepped back, and `earliest` writes nothing. So the step
            // is taken off here, as `tidy` would take it off.
            when = when.max(entry.stamp.saturating_sub(back) + self.period);
        }
        Earliest::At(bounded(when - now))
    }

    /// How far the clock stepped back since the last write, in whole resolutions: stamps stay multiples
    /// of it, so that they still merge. The rest is carried on to the next step.
    fn back(&self, log: &Log, now: u64) -> u64 {
        let back = log.seen.saturating_sub(now);
        back - back % self.resolution
    }

    /// Drops what has left the window and follows a clock that stepped back: costs nothing where
    /// there is nothing to drop, and each stamp is dropped once.
    pub(crate) fn tidy(&self, log: &mut Log, now: u64) {
        let back = self.back(log, now);
        if back > 0 {
            for entry in &mut log.entries {
                entry.stamp = entry.stamp.saturating_sub(back);
            }
            log.seen -= back;
        }
        log.drop_oldest_while(|oldest, _| oldest.stamp + self.period <= now);
    }

    /// Whether a place `wait` ahead can be booked. Its entry counts from now on, and until a period after the place. If
    /// `another` limit holds requests back, their places are as far apart as that limit demands. So places of up to half a
    /// period ahead fill the log with at most half as much again as that limit admits in a period.
    pub(crate) const fn books(&self, wait: u64, another: bool) -> bool {
        !another || wait <= self.period / 2
    }

    /// Writes the stamp, and returns it.
    pub(crate) fn spend(&self, log: &mut Log, now: u64, cost: u64, wait: u64) -> u64 {
        self.tidy(log, now);
        let stamp = (now + wait).next_multiple_of(self.resolution);
        // What costs nothing leaves nothing behind, or the log would have no bound.
        if cost > 0 {
            // Places booked ahead are beyond what the shape of the log bounds. Merging is stricter than exact, and
            // never more generous.
            if log.entries.len() >= MOST_ENTRIES {
                log.coarsen(MOST_ENTRIES);
            }
            log.insert(stamp, cost);
        }
        log.seen = log.seen.max(now);
        stamp
    }

    /// Charges what has been spent already. What exceeds the count takes the places that become free next: all stamps
    /// move on by a period for each whole count of it, and the rest is booked ahead.
    pub(crate) fn force(&self, log: &mut Log, now: u64, cost: u64) {
        self.tidy(log, now);
        let fits = cost.min(self.count.saturating_sub(log.total));
        self.spend(log, now, fits, 0);
        let over = cost - fits;
        let Some(newest) = log.newest().filter(|_| over > 0) else { return };
        // Every stamp stays exact, and a period after it.
        let most = ((EXACT - 1).saturating_sub(newest) / self.period).saturating_sub(3);
        let periods = (over / self.count).min(most);
        if periods > 0 {
            for entry in &mut log.entries {
                entry.stamp += periods * self.period;
            }
        }
        // What is left of the debt is less than a whole count, so one place ahead has room for it.
        let rest = over % self.count;
        if let Earliest::At(wait) = self.earliest(Some(log), now, rest, 0) {
            self.spend(log, now, rest, wait);
        }
    }

    /// Writes down an attempt that was refused. Only the newest `count` can make a difference.
    pub(crate) fn record(&self, log: &mut Log, now: u64, cost: u64) {
        if cost == 0 {
            // It writes nothing down, so nothing has to make room for it.
            return;
        }
        let cost = cost.min(self.count);
        let stamp = now.next_multiple_of(self.resolution);
        self.tidy(log, now);
        // First make room, then write: the log is no longer than it was made for.
        log.drop_oldest_while(|oldest, total| {
            oldest.stamp <= stamp && total - oldest.cost + cost >= self.count
        });
        // With the log full of places booked ahead, the attempt could not be written without pushing one of them out.
        let booked_later = log.entries.front().is_some_and(|oldest| oldest.stamp > stamp);
        if !(booked_later && log.total >= self.count) {
            self.spend(log, now, cost, 0);
        }
    }

    pub(crate) fn give(&self, log: &mut Log, stamp: u64, now: u64, back: u64) {
        self.tidy(log, now);
        // Merged or gone: a stamp that is no longer there has left the window or lies in a later one, and what it held
        // is not known any more.
        let Ok(at) = log.entries.binary_search_by_key(&stamp, |entry| entry.stamp) else { return };
        let entry = &mut log.entries[at];
        let given = entry.cost.min(back);
        entry.cost -= given;
        log.total -= given;
        if entry.cost == 0 {
            log.entries.remove(at);
        }
    }

    pub(crate) fn remaining(&self, log: Option<&Log>, now: u64) -> u64 {
        let Some(log) = log else { return self.count };
        let gone: u64 = log
            .entries
            .iter()
            .take_while(|entry| entry.stamp + self.period <= now)
            .map(|entry| entry.cost)
            .sum();
        self.count.saturating_sub(log.total - gone)
    }

    pub(crate) fn fresh_in(&self, log: Option<&Log>, now: u64) -> u64 {
        let Some((log, newest)) = log.and_then(|log| Some((log, log.entries.back()?))) else {
            return 0;
        };
        let back = self.back(log, now);
        bounded((newest.stamp.saturating_sub(back) + self.period).saturating_sub(now))
    }
}

/// The stamps of one key, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Log {
    /// The clock at the last write, or up to one resolution later: a clock that steps back is told
    /// by it.
    seen: u64,
    /// All that `entries` hold.
    total: u64,
    /// Which of the store's counts its room is part of.
    class: u8,
    entries: VecDeque<Entry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    stamp: u64,
    cost: u64,
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
            // The later stamp of the two stands for both, so nothing leaves the window before its time.
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

    /// The log of these numbers. `None` if its stamps are not in order.
    pub(crate) fn of(seen: u64, numbers: &[[u64; 2]]) -> Option<Self> {
        let is_in_order = numbers.is_sorted_by(|[before, _], [after, _]| before < after);
        let total = numbers.iter().try_fold(0_u64, |all, [_, cost]| all.checked_add(*cost))?;
        let entries = numbers.iter().map(|&[stamp, cost]| Entry { stamp, cost }).collect();
        is_in_order.then_some(Self { seen, total, class: 0, entries })
    }

    /// In order of time: a place booked ahead may come after the present one.
    fn insert(&mut self, stamp: u64, cost: u64) {
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

    fn drop_oldest_while(&mut self, goes: impl Fn(Entry, u64) -> bool) {
        while let Some(&oldest) = self.entries.front() {
            if !goes(oldest, self.total) {
                break;
            }
            self.total -= oldest.cost;
            self.entries.pop_front();
        }
    }
}

#[cfg(test)]
mod tests;
