//! Sliding log: when each request came, so that no interval of one period ever holds more than
//! `count`. Half-open: at exactly one period a place is free again.

use std::collections::VecDeque;

use super::Enter;
use super::exact::{EXACT, bounded};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Sieve {
    pub(super) count: u64,
    pub(super) period: u64,
    /// Stamps are rounded up to a multiple of this and merged; 1 keeps each microsecond apart.
    pub(super) resolution: u64,
}

/// The stamps of one key, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Log {
    /// The clock at the last write, or up to one resolution later: a clock that steps back is told
    /// by it.
    seen: u64,
    /// All that `entries` hold.
    total: u64,
    entries: VecDeque<Entry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    stamp: u64,
    cost: u64,
}

impl Log {
    /// Entries that fit before the log has to be given more room.
    pub(crate) fn room(&self) -> usize {
        self.entries.capacity() - self.entries.len()
    }

    /// Makes room for `more` entries. The arithmetic never does: it must not allocate.
    pub(crate) fn reserve_exact(&mut self, more: usize) {
        self.entries.reserve_exact(more);
    }

    pub(crate) fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    /// When it was written last, and each stamp with its cost.
    pub(super) fn numbers(&self) -> (u64, Vec<[u64; 2]>) {
        (self.seen, self.entries.iter().map(|entry| [entry.stamp, entry.cost]).collect())
    }

    /// In order of time: a place booked ahead may stand behind the present one.
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

impl Sieve {
    /// The most entries that a log of this shape ever holds without places booked ahead.
    pub(super) fn entries(&self) -> u64 {
        match self.resolution {
            1 => self.count,
            resolution => self.count.min(self.period / resolution + 2),
        }
    }

    pub(super) fn enter(&self, log: Option<&Log>, now: u64, cost: u64, from: u64) -> Enter {
        if cost > self.count {
            return Enter::Never;
        }
        let Some(log) = log else { return Enter::At(from) };
        let back = self.back(log, now);
        let mut excess = (log.total + cost).saturating_sub(self.count);
        let mut when = now + from;
        for entry in &log.entries {
            if excess == 0 {
                break;
            }
            excess = excess.saturating_sub(entry.cost);
            when = when.max(entry.stamp.saturating_sub(back) + self.period);
        }
        Enter::At(bounded(when - now))
    }

    /// How far the clock stepped back since the last write, in whole resolutions: stamps stay multiples
    /// of it, so that they still merge. The rest is carried on to the next step.
    fn back(&self, log: &Log, now: u64) -> u64 {
        let back = log.seen.saturating_sub(now);
        back - back % self.resolution
    }

    /// Drops what has left the window and follows a clock that stepped back: costs nothing where
    /// there is nothing to drop, and each stamp is dropped once.
    pub(super) fn tidy(&self, log: &mut Log, now: u64) {
        let back = self.back(log, now);
        if back > 0 {
            for entry in &mut log.entries {
                entry.stamp = entry.stamp.saturating_sub(back);
            }
            log.seen -= back;
        }
        log.drop_oldest_while(|oldest, _| oldest.stamp + self.period <= now);
    }

    /// Writes the stamp, and returns it.
    pub(super) fn spend(&self, log: &mut Log, now: u64, cost: u64, wait: u64) -> u64 {
        self.tidy(log, now);
        let stamp = (now + wait).next_multiple_of(self.resolution);
        // What costs nothing leaves nothing behind, or the log would have no bound.
        if cost > 0 {
            log.insert(stamp, cost);
        }
        log.seen = log.seen.max(now);
        stamp
    }

    /// Charges what has been spent already, as long as the total stays exact.
    pub(super) fn force(&self, log: &mut Log, now: u64, cost: u64) {
        let cost = cost.min((EXACT / 2).saturating_sub(log.total));
        self.spend(log, now, cost, 0);
    }

    /// Writes down an attempt that was refused. Only the newest `count` can make a difference.
    pub(super) fn record(&self, log: &mut Log, now: u64, cost: u64) {
        let cost = cost.min(self.count);
        let stamp = now.next_multiple_of(self.resolution);
        self.tidy(log, now);
        // First make room, then write: the log is no longer than it was made for.
        log.drop_oldest_while(|oldest, total| {
            oldest.stamp <= stamp && total - oldest.cost + cost >= self.count
        });
        let booked_later = log.entries.front().is_some_and(|oldest| oldest.stamp > stamp);
        if !(booked_later && log.total >= self.count) {
            self.spend(log, now, cost, 0);
        }
    }

    pub(super) fn give(&self, log: &mut Log, stamp: u64, now: u64, back: u64) {
        self.tidy(log, now);
        let Ok(at) = log.entries.binary_search_by_key(&stamp, |entry| entry.stamp) else { return };
        let entry = &mut log.entries[at];
        let given = entry.cost.min(back);
        entry.cost -= given;
        log.total -= given;
        if entry.cost == 0 {
            log.entries.remove(at);
        }
    }

    pub(super) fn remaining(&self, log: Option<&Log>, now: u64) -> u64 {
        let Some(log) = log else { return self.count };
        let gone: u64 = log
            .entries
            .iter()
            .take_while(|entry| entry.stamp + self.period <= now)
            .map(|entry| entry.cost)
            .sum();
        self.count.saturating_sub(log.total - gone)
    }

    pub(super) fn fresh_in(&self, log: Option<&Log>, now: u64) -> u64 {
        let Some((log, newest)) = log.and_then(|log| Some((log, log.entries.back()?))) else {
            return 0;
        };
        let back = self.back(log, now);
        bounded((newest.stamp.saturating_sub(back) + self.period).saturating_sub(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXACTLY: Sieve = Sieve { count: 3, period: 100, resolution: 1 };
    const MERGED: Sieve = Sieve { count: 30, period: 100, resolution: 10 };

    fn spent(sieve: Sieve, stamps: &[u64]) -> Log {
        let mut log = Log::default();
        for stamp in stamps {
            sieve.spend(&mut log, *stamp, 1, 0);
        }
        log
    }

    #[test]
    fn at_exactly_one_period_a_place_is_free_again() {
        let log = spent(EXACTLY, &[1_000, 1_030, 1_060]);
        assert_eq!(EXACTLY.remaining(Some(&log), 1_099), 0);
        assert_eq!(EXACTLY.remaining(Some(&log), 1_100), 1);
        assert_eq!(EXACTLY.enter(Some(&log), 1_060, 1, 0), Enter::At(40));
        assert_eq!(EXACTLY.enter(Some(&log), 1_060, 3, 0), Enter::At(100));
        assert_eq!(EXACTLY.enter(Some(&log), 1_060, 4, 0), Enter::Never);
    }

    #[test]
    fn stamps_are_rounded_up_to_the_resolution_and_merged() {
        let log = spent(MERGED, &[1_000, 1_001, 1_009, 1_010, 1_011]);
        let stamps: Vec<_> = log.entries.iter().map(|entry| (entry.stamp, entry.cost)).collect();
        assert_eq!(stamps, [(1_000, 1), (1_010, 3), (1_020, 1)]);
        assert_eq!(MERGED.remaining(Some(&log), 1_109), 26);
        assert_eq!(MERGED.remaining(Some(&log), 1_110), 29);
    }

    #[test]
    fn the_log_is_no_longer_than_its_resolution_allows() {
        let mut log = Log::default();
        for now in 1_000..3_000 {
            if MERGED.enter(Some(&log), now, 1, 0) == Enter::At(0) {
                MERGED.spend(&mut log, now, 1, 0);
            }
            assert!(log.entries.len() as u64 <= MERGED.entries());
        }
    }

    #[test]
    fn what_costs_nothing_leaves_no_entry() {
        let mut log = Log::default();
        for now in 0..1_000 {
            EXACTLY.spend(&mut log, now, 0, 0);
        }
        assert_eq!(log.entries.len(), 0);
    }

    #[test]
    fn of_refused_attempts_the_newest_are_kept_and_no_more_than_there_is_room_for() {
        let mut log = Log::default();
        log.reserve_exact(EXACTLY.entries() as usize);
        let capacity = log.capacity();
        for now in 1_000..1_500 {
            EXACTLY.record(&mut log, now, 1);
        }
        assert_eq!(log.capacity(), capacity);
        assert_eq!(log.entries.front().map(|entry| entry.stamp), Some(1_497));
        assert_eq!(EXACTLY.enter(Some(&log), 1_500, 1, 0), Enter::At(97));
    }

    #[test]
    fn a_refused_attempt_drives_out_no_place_that_is_booked() {
        let mut log = spent(EXACTLY, &[1_000, 1_001]);
        EXACTLY.spend(&mut log, 1_001, 2, 99);
        EXACTLY.record(&mut log, 1_002, 3);
        // Free when the attempt, and then the place booked for 1,100, is a period ago.
        assert_eq!(EXACTLY.enter(Some(&log), 1_002, 1, 0), Enter::At(100));
        assert_eq!(EXACTLY.enter(Some(&log), 1_002, 3, 0), Enter::At(198));
    }

    #[test]
    fn stamps_merge_however_the_clock_steps_back() {
        let mut log = Log::default();
        for turn in 0..1_000 {
            let now = 50_000 - 7 * turn;
            MERGED.tidy(&mut log, now);
            if MERGED.enter(Some(&log), now, 1, 0) == Enter::At(0) {
                MERGED.spend(&mut log, now, 1, 0);
            }
            assert!(log.entries.len() as u64 <= MERGED.entries());
            let newest = log.entries.back().map_or(0, |entry| entry.stamp);
            assert!(newest < now + 20, "{newest} at {now}");
        }
    }

    #[test]
    fn stamps_follow_a_clock_that_steps_back() {
        let mut log = spent(EXACTLY, &[10_000, 10_050, 10_060]);
        assert_eq!(EXACTLY.enter(Some(&log), 5_060, 1, 0), Enter::At(40));
        EXACTLY.tidy(&mut log, 5_060);
        assert_eq!(EXACTLY.enter(Some(&log), 5_060, 1, 0), Enter::At(40));
        assert_eq!(EXACTLY.enter(Some(&log), 5_099, 1, 0), Enter::At(1));
    }
}
