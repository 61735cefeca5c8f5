//! SlidingWindow log: when each request came, so that no interval of one period ever holds more than
//! `count`. Half-open: at exactly one period a place is free again.
//!
//! Stamps of a log with a resolution are rounded up to it, so the log never admits more than an exact one
//! would. Rounding down, as most counters of sub-windows do, lets up to twice the limit pass around a
//! border.

use std::collections::VecDeque;

use super::Earliest;
use super::exact::{EXACT, bounded};

/// The most entries that a log ever holds, 1 MiB of them. One that would need more is coarser than it was asked
/// to be; see [`Limit::check_length`](super::Limit::check_length).
pub(crate) const MOST_ENTRIES: usize = 1 << 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SlidingLog {
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
    pub(crate) fn room(&self) -> usize {
        self.entries.capacity() - self.entries.len()
    }

    /// The newest stamp.
    pub(super) fn newest(&self) -> Option<u64> {
        self.entries.back().map(|entry| entry.stamp)
    }

    /// Makes room for `more` entries. The arithmetic never does: it must not allocate.
    pub(crate) fn reserve_exact(&mut self, more: usize) {
        self.entries.reserve_exact(more);
    }

    pub(crate) fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    pub(crate) fn class(&self) -> u8 {
        self.class
    }

    pub(crate) fn set_class(&mut self, class: u8) {
        self.class = class;
    }

    /// Merges neighbours until about half of the `most` entries are left: what was spent at one moment counts
    /// as spent at a later one, as under a [resolution](super::Limit::resolution), so nothing leaves the
    /// window too early.
    ///
    /// Of `most`, which is at least 4, one and a half as many and more go each time, so that an entry costs
    /// no more than a few steps, however often this is done. Steps are powers of two from one zero on: an
    /// entry that is merged again and again is put off by one step at most, which is the window divided by
    /// a quarter of `most` or less.
    pub(crate) fn coarsen(&mut self, most: usize) {
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

    /// The same log in no more than `most` entries, with room for no more.
    pub(crate) fn coarse(&self, most: usize) -> Self {
        let mut log = self.clone();
        if log.entries.len() > most {
            log.coarsen(most);
        }
        let mut entries = VecDeque::with_capacity(most);
        entries.extend(log.entries.drain(..));
        Self { entries, class: 0, ..log }
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

impl SlidingLog {
    /// The most entries that a log of this shape ever holds without places booked ahead.
    pub(super) fn entries(&self) -> u64 {
        // Stamps are whole microseconds, or multiples of the resolution, and those that are equal are one entry.
        self.count.min(self.period / self.resolution + 2)
    }

    pub(super) fn earliest(&self, log: Option<&Log>, now: u64, cost: u64, from: u64) -> Earliest {
        if cost > self.count {
            return Earliest::Never;
        }
        let Some(log) = log else { return Earliest::At(from) };
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
            if log.entries.len() >= MOST_ENTRIES {
                log.coarsen(MOST_ENTRIES);
            }
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

    const EXACTLY: SlidingLog = SlidingLog { count: 3, period: 100, resolution: 1 };
    const MERGED: SlidingLog = SlidingLog { count: 30, period: 100, resolution: 10 };

    fn spent(sieve: SlidingLog, stamps: &[u64]) -> Log {
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
        assert_eq!(EXACTLY.earliest(Some(&log), 1_060, 1, 0), Earliest::At(40));
        assert_eq!(EXACTLY.earliest(Some(&log), 1_060, 3, 0), Earliest::At(100));
        assert_eq!(EXACTLY.earliest(Some(&log), 1_060, 4, 0), Earliest::Never);
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
            if MERGED.earliest(Some(&log), now, 1, 0) == Earliest::At(0) {
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
        assert_eq!(EXACTLY.earliest(Some(&log), 1_500, 1, 0), Earliest::At(97));
    }

    #[test]
    fn a_refused_attempt_that_costs_nothing_makes_no_room() {
        let mut log = spent(EXACTLY, &[1_000, 1_001]);
        EXACTLY.spend(&mut log, 1_001, 2, 99);
        assert_eq!(EXACTLY.earliest(Some(&log), 1_002, 0, 0), Earliest::At(98));
        EXACTLY.record(&mut log, 1_002, 0);
        assert_eq!(EXACTLY.earliest(Some(&log), 1_002, 0, 0), Earliest::At(98));
    }

    #[test]
    fn a_refused_attempt_drives_out_no_place_that_is_booked() {
        let mut log = spent(EXACTLY, &[1_000, 1_001]);
        EXACTLY.spend(&mut log, 1_001, 2, 99);
        EXACTLY.record(&mut log, 1_002, 3);
        // Free when the attempt, and then the place booked for 1,100, is a period ago.
        assert_eq!(EXACTLY.earliest(Some(&log), 1_002, 1, 0), Earliest::At(100));
        assert_eq!(EXACTLY.earliest(Some(&log), 1_002, 3, 0), Earliest::At(198));
    }

    /// However often it is made coarser: each stamp is put off, and by no more than a step.
    #[test]
    fn a_coarser_log_holds_everything_at_least_as_long() {
        const LARGE: SlidingLog = SlidingLog { count: 10_000, period: 1_000_000, resolution: 1 };
        for most in [4, 5, 8, 33, 256] {
            let mut log = Log::default();
            let mut stamps = VecDeque::new();
            for turn in 0..20_000_u64 {
                let now = 5_000_000 + turn * 97 + (turn * turn) % 91;
                LARGE.tidy(&mut log, now);
                if log.entries.len() == most {
                    log.coarsen(most);
                    assert!(log.entries.len() <= most / 2 + 1);
                }
                LARGE.spend(&mut log, now, 1, 0);
                stamps.push_back(now);
                while stamps.front().is_some_and(|stamp| stamp + LARGE.period <= now) {
                    stamps.pop_front();
                }
                let late = 1_000_000 / (most as u64 / 4) * 2;
                let known = stamps.len() as u64;
                assert!(log.total >= known, "{} of {known} at {now}", log.total);
                assert!(log.total <= known + late / 80, "{} of {known} at {now}", log.total);
            }
            assert_eq!(log.coarse(4).total, log.total);
            assert!(log.coarse(4).entries.capacity() <= 4);
        }
    }

    #[test]
    fn a_short_period_bounds_a_log_of_any_count() {
        const SHORT: SlidingLog = SlidingLog { count: 1_000_003, period: 17, resolution: 1 };
        let mut log = Log::default();
        for now in 0..1_000 {
            assert_eq!(SHORT.earliest(Some(&log), now, 9, 0), Earliest::At(0));
            SHORT.spend(&mut log, now, 9, 0);
            assert!(log.entries.len() as u64 <= SHORT.entries());
        }
    }

    #[test]
    fn a_log_never_holds_more_entries_than_its_bound() {
        const HUGE: SlidingLog =
            SlidingLog { count: 3_000_000, period: 86_400_000_000, resolution: 1 };
        let mut log = Log::default();
        for now in 0..300_000 {
            assert_eq!(HUGE.earliest(Some(&log), now, 1, 0), Earliest::At(0));
            HUGE.spend(&mut log, now, 1, 0);
        }
        assert!(log.entries.len() <= MOST_ENTRIES);
        assert_eq!(log.total, 300_000);
        HUGE.spend(&mut log, 300_000, 2_700_000, 0);
        assert!(matches!(HUGE.earliest(Some(&log), 300_001, 1, 0), Earliest::At(1..)));
    }

    #[test]
    fn stamps_merge_however_the_clock_steps_back() {
        let mut log = Log::default();
        for turn in 0..1_000 {
            let now = 50_000 - 7 * turn;
            MERGED.tidy(&mut log, now);
            if MERGED.earliest(Some(&log), now, 1, 0) == Earliest::At(0) {
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
        assert_eq!(EXACTLY.earliest(Some(&log), 5_060, 1, 0), Earliest::At(40));
        EXACTLY.tidy(&mut log, 5_060);
        assert_eq!(EXACTLY.earliest(Some(&log), 5_060, 1, 0), Earliest::At(40));
        assert_eq!(EXACTLY.earliest(Some(&log), 5_099, 1, 0), Earliest::At(1));
    }
}
