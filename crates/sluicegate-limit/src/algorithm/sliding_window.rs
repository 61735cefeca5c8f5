//! Sliding window counter: the current window's count, plus the previous one's weighted by how much
//! of it still overlaps, in integers.
//!
//! The words are `[index of the window, previous count << 32 | current count]`.
//!
//! What is spent in a later window is stored too: places that are booked ahead, and what requests have used beyond the
//! count. Windows are filled one after the other, so the number of full windows and the count of the one after them
//! say everything. The number takes the place of the previous count, above every count that a limit may have. A full
//! window holds the count of the limit that reads it. So a count that was spent under a larger limit is not taken for
//! a debt under a smaller one: only what was charged beyond the limit at that moment, or booked ahead, fills windows.

use crate::exact::{EXACT, Earliest, TICKS};
use crate::state::{Parameters, Words};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SlidingWindow {
    count: u64,
    /// Ticks in a window.
    period: u64,
    /// Microseconds in a tick.
    tick: u64,
}

/// Above this, the upper half of the second word is a number of full windows, and not the previous count. There are up
/// to 67,108,863 of them, which is 127 years of windows of a minute and two years of windows of a second.
const AHEAD: u64 = 0xFC00_0000;

/// The largest number of full windows.
const MOST_AHEAD: u64 = u32::MAX as u64 - AHEAD;

/// The two counts at a moment that is `into` ticks into the window `index`.
#[derive(Clone, Copy)]
struct Windows {
    index: u64,
    into: u64,
    previous: u64,
    /// The count of the window `index + ahead`.
    current: u64,
    /// How many windows are full, beginning with `index`. If there are any, `previous` is unknown and 0.
    ahead: u64,
}

impl SlidingWindow {
    /// `None` when the count is too large, or the count times the period does not stay exact at any tick.
    pub(crate) const fn new(count: u64, period: u64) -> Option<Self> {
        let mut i = 0;
        while i < TICKS.len() {
            let tick = TICKS[i];
            if period % tick != 0 {
                break;
            }
            if count < AHEAD && count * 2 < EXACT / (period / tick) {
                return Some(Self { count, period: period / tick, tick });
            }
            i += 1;
        }
        None
    }

    /// This window with a smaller count. Words mean the same in both.
    pub(crate) const fn with_count(&self, count: u64) -> Self {
        Self { count, ..*self }
    }

    pub(crate) const fn tick(&self) -> u64 {
        self.tick
    }

    /// The numbers that define the meaning of the words. The count is not one of them.
    pub(crate) const fn parameters(&self) -> Parameters {
        [0, self.period, self.tick, 0]
    }

    /// A window that interprets words of those numbers and admits nothing.
    pub(crate) const fn with_parameters([_, period, tick, _]: Parameters) -> Self {
        Self { count: 0, period, tick }
    }

    /// The amount in the present window that words of other numbers stand for.
    pub(crate) fn taken_over(&self, words: Words, parameters: Parameters, now: u64) -> Words {
        self.spent_up_to_all(now, Self::with_parameters(parameters).spent(words, now))
    }

    pub(crate) fn spent(&self, words: Words, now: u64) -> u64 {
        let at = self.windows(words, now);
        if at.ahead > 0 {
            // A full window, by whatever count.
            // More than any count, so that an account that takes this over is full too.
            return AHEAD;
        }
        // Rounded down, as Redis' script rounds. `room` inverts exactly this expression, so a client that waits as long
        // as it is told is admitted.
        at.current + at.previous * (self.period - at.into) / self.period
    }

    pub(crate) fn spent_up_to_all(&self, now: u64, tokens: u64) -> Words {
        [now / self.tick / self.period, tokens.min(self.count)]
    }

    /// Gives back a charge in its own window, the current or the previous one.
    pub(crate) fn give_charged(&self, words: &mut Words, then: u64, now: u64, back: u64) {
        self.give(words, [then / self.tick / self.period, 0], now, back);
    }

    pub(crate) fn earliest(&self, words: Words, now: u64, cost: u64, from: u64) -> Earliest {
        if cost > self.count {
            return Earliest::Never;
        }
        // As the request itself would find them: a clock that stepped back counts everything in the present window.
        let mut followed = words;
        self.follow(&mut followed, now);
        let mut at = self.windows(followed, now + from);
        // Full windows admit nothing, whatever overlaps them, so the search begins behind the last of them.
        if at.ahead > 0 {
            at = Windows {
                index: at.index + at.ahead,
                into: 0,
                previous: self.count,
                ahead: 0,
                ..at
            };
        }
        loop {
            if let Some(into) = self.room(at, cost) {
                let when = (at.index * self.period + into) * self.tick;
                return Earliest::At(from.max(when.saturating_sub(now)));
            }
            // Ends: two windows on, nothing overlaps any more.
            let (index, previous) = (at.index + 1, at.current);
            at = Windows { index, into: 0, previous, current: 0, ahead: 0 };
        }
    }

    /// Whether a place `wait` ahead can be booked. If `another` limit holds the request back, the place must not skip
    /// the rest of an earlier window, which others may use. A window with more than the count, of refused attempts or
    /// by other numbers, weighs more than a full one, so nothing is booked after it.
    pub(crate) fn books(
        &self,
        words: Words,
        now: u64,
        cost: u64,
        wait: u64,
        another: bool,
    ) -> bool {
        if self.window_begins(now, wait) == 0 {
            return true;
        }
        let at = self.windows(words, now);
        // In the present window there is nothing to skip. Beyond it, a place has to be in the first window that would
        // admit the cost by this limit alone, if other keys share it.
        let Earliest::At(earliest) = self.earliest(words, now, cost, 0) else { return false };
        let ahead = |wait| (now + wait) / self.tick / self.period - at.index;
        (at.ahead > 0 || at.current <= self.count)
            && ahead(wait) <= self.most_ahead(at.index)
            && (!another || ahead(wait) == ahead(earliest))
    }

    /// Microseconds until the window of that place begins.
    pub(crate) fn window_begins(&self, now: u64, wait: u64) -> u64 {
        wait.saturating_sub((now + wait) % (self.period * self.tick))
    }

    /// Follows a clock that stepped back into the window that it shows.
    pub(crate) fn follow(&self, words: &mut Words, now: u64) {
        if self.since(*words) > now {
            self.write(words, self.windows(*words, now));
        }
    }

    /// The earliest moment at which the words can have been written.
    pub(crate) fn since(&self, [index, _]: Words) -> u64 {
        index.saturating_mul(self.period * self.tick)
    }

    /// Charges a cost that fits even if all of the previous window counts: the words after it, and when they equal fresh
    /// ones. `None` if it does not fit. The words must not be of a later time.
    #[inline]
    pub(crate) fn admit_now(&self, words: Words, now: u64, cost: u64) -> Option<(Words, u64)> {
        let at = self.windows(words, now);
        let current = at.current.saturating_add(cost);
        if current == 0 || at.ahead > 0 || at.previous.saturating_add(current) > self.count {
            return None;
        }
        // Neither half holds more than the count, so there is nothing to cut off.
        let words = [at.index, at.previous << 32 | current];
        // Two windows on: in the next one, this count still weighs as the previous one.
        Some((words, (at.index + 2) * self.period * self.tick - now))
    }

    /// Charges `cost` in the window of a place `wait` ahead. The windows before it count as full from then on.
    pub(crate) fn spend(&self, words: &mut Words, now: u64, cost: u64, wait: u64) {
        let at = self.windows(*words, now);
        let ahead = (now + wait) / self.tick / self.period - at.index;
        // A place in a window behind the last booked one begins that window. The rest of those before stays unused, because
        // two numbers cannot tell which windows have gaps.
        let before = if ahead > at.ahead { 0 } else { at.current };
        let (ahead, current) = (ahead.max(at.ahead), before.saturating_add(cost));
        self.write(words, Windows { ahead, current, ..at });
    }

    /// Charges what has been spent already. What exceeds the count is taken from the windows that follow.
    pub(crate) fn force(&self, words: &mut Words, now: u64, cost: u64) {
        let at = self.windows(*words, now);
        let before = match at.ahead {
            // Refused attempts, or what other numbers allowed, keep out for one more window, as they do alone.
            0 if at.current > self.count => self.count + (at.current - self.count).min(self.count),
            _ => at.current,
        };
        let current = before.saturating_add(cost);
        if at.ahead == 0 && current <= self.count {
            return self.write(words, Windows { current, ..at });
        }
        // A window that is filled exactly is the last one, not a full one before an empty one.
        let full = current.saturating_sub(1) / self.count;
        let (ahead, current) = (at.ahead.saturating_add(full), current - full * self.count);
        self.write(words, Windows { ahead, current, ..at });
    }

    /// Counts an attempt that was refused. While later windows are spent already, it fills the last of them.
    pub(crate) fn record(&self, words: &mut Words, now: u64, cost: u64) {
        let at = self.windows(*words, now);
        // Refused attempts must not book windows ahead: nothing would bound how long a client that hammers is kept out.
        let most = if at.ahead == 0 { u64::MAX } else { at.current.max(self.count) };
        self.write(words, Windows { current: at.current.saturating_add(cost).min(most), ..at });
    }

    /// Gives back in the window in which it was spent: the last one, or the one before if it is over.
    pub(crate) fn give(&self, words: &mut Words, receipt: Words, now: u64, back: u64) {
        let at = self.windows(*words, now);
        let charged = receipt[0] + (receipt[1] >> 32).saturating_sub(AHEAD);
        // Behind a full window, others have booked places by what was spent in it.
        let given = match (at.index + at.ahead).checked_sub(charged) {
            Some(0) => Windows { current: at.current.saturating_sub(back), ..at },
            Some(1) if at.ahead == 0 => {
                Windows { previous: at.previous.saturating_sub(back), ..at }
            }
            _ => return,
        };
        self.write(words, given);
    }

    pub(crate) fn remaining(&self, words: Words, now: u64) -> u64 {
        self.count.saturating_sub(self.spent(words, now))
    }

    /// When both counts have left the window.
    pub(crate) fn fresh_in(&self, words: Words, now: u64) -> u64 {
        let at = self.windows(words, now);
        let windows = match (at.previous, at.current) {
            (0, 0) if at.ahead == 0 => return 0,
            (_, 0) => 1,
            _ => 2,
        };
        (at.index + at.ahead + windows) * self.period * self.tick - now
    }

    /// The first tick of this window, from `at` on, at which `cost` more fits.
    fn room(&self, at: Windows, cost: u64) -> Option<u64> {
        let spare = self.count.checked_sub(at.current + cost)?;
        if at.previous <= spare {
            return Some(at.into);
        }
        // The first `into` with previous × (period - into) / period, rounded down, at most `spare`.
        let into = (at.previous - spare - 1) * self.period / at.previous + 1;
        (into < self.period).then_some(into.max(at.into))
    }

    /// If the clock stepped back into an earlier window, everything that was spent counts as spent there. The moment
    /// could be late in that window, when the previous count has almost no weight.
    #[inline]
    fn windows(&self, [index, counts]: Words, now: u64) -> Windows {
        let ticks = now / self.tick;
        let (at, into) = (ticks / self.period, ticks % self.period);
        let (previous, current) = (counts >> 32, counts & u64::from(u32::MAX));
        if previous > AHEAD {
            let passed = at.saturating_sub(index);
            return self.windows_ahead(at, into, current, (previous - AHEAD, passed));
        }
        let (previous, current) = match at.checked_sub(index) {
            None => (0, previous + current),
            Some(0) => (previous, current),
            Some(1) => (current, 0),
            Some(_) => (0, 0),
        };
        Windows { index: at, into, previous, current, ahead: 0 }
    }

    /// The counts in the window `index`, where `current` was spent after `full` windows, of which some have passed.
    #[inline(never)]
    fn windows_ahead(
        &self,
        index: u64,
        into: u64,
        current: u64,
        (full, passed): (u64, u64),
    ) -> Windows {
        let (previous, current, ahead) = match passed.checked_sub(full) {
            None => (0, current, full - passed),
            // Of the account of other numbers, the count is unknown: the last full window stays one.
            Some(0) if self.count == 0 => {
                return Windows { index: index - 1, into, previous: 0, current, ahead: 1 };
            }
            Some(0) => (self.count, current, 0),
            Some(1) => (current, 0, 0),
            Some(_) => (0, 0, 0),
        };
        Windows { index, into, previous, current, ahead }
    }

    /// Counts stay as small as keeps the products exact.
    fn most(&self) -> u64 {
        (EXACT / 2 / self.period).min(AHEAD - 1)
    }

    /// How many windows can be full so that the end of the last is an exact time.
    fn most_ahead(&self, index: u64) -> u64 {
        (EXACT / (self.period * self.tick)).saturating_sub(index + 3).min(MOST_AHEAD)
    }

    fn write(&self, words: &mut Words, at: Windows) {
        let most = self.most();
        let ahead = at.ahead.min(self.most_ahead(at.index));
        let upper = if ahead > 0 { AHEAD + ahead } else { at.previous.min(most) };
        *words = [at.index, upper << 32 | at.current.min(most)];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sliding() -> SlidingWindow {
        SlidingWindow::new(10, 100).expect("stays exact")
    }

    #[test]
    fn the_overlap_is_rounded_down() {
        let mut words = [0; 2];
        sliding().spend(&mut words, 1_000, 10, 0);
        assert_eq!(sliding().remaining(words, 1_099), 0);
        assert_eq!(sliding().remaining(words, 1_100), 0);
        // 10 × 99 / 100 is 9.9.
        assert_eq!(sliding().remaining(words, 1_101), 1);
        assert_eq!(sliding().remaining(words, 1_110), 1);
        assert_eq!(sliding().remaining(words, 1_111), 2);
        assert_eq!(sliding().remaining(words, 1_199), 10);
        assert_eq!(sliding().fresh_in(words, 1_101), 99);
    }

    #[test]
    fn the_first_tick_that_fits_is_told() {
        let mut words = [0; 2];
        sliding().spend(&mut words, 1_050, 10, 0);
        assert_eq!(sliding().earliest(words, 1_050, 1, 0), Earliest::At(51));
        assert_eq!(sliding().earliest(words, 1_050, 10, 0), Earliest::At(141));
        assert_eq!(sliding().earliest(words, 1_050, 11, 0), Earliest::Never);
        // A cost that fits earlier also fits at a later moment.
        assert_eq!(sliding().earliest(words, 1_050, 1, 70), Earliest::At(70));
    }

    #[test]
    fn places_are_booked_in_any_window() {
        let sliding = sliding();
        let mut words = [0; 2];
        sliding.spend(&mut words, 1_050, 10, 0);
        let mut waits = Vec::new();
        for _ in 0..11 {
            let Earliest::At(wait) = sliding.earliest(words, 1_050, 1, 0) else { panic!() };
            assert!(sliding.books(words, 1_050, 1, wait, true));
            sliding.spend(&mut words, 1_050, 1, wait);
            waits.push(wait);
        }
        assert_eq!(waits, [51, 61, 71, 81, 91, 101, 111, 121, 131, 141, 151]);
        // Ten in the next window, and one in the one after that.
        assert_eq!(sliding.fresh_in(words, 1_050), 350);
        assert_eq!(sliding.remaining(words, 1_199), 0);
        assert_eq!(sliding.earliest(words, 1_250, 9, 0), Earliest::At(41));
        // Another limit holds it back, and others may use the windows before.
        assert!(!sliding.books([0; 2], 1_050, 1, 70, true));
        assert!(sliding.books([0; 2], 1_050, 1, 70, false));
    }

    #[test]
    fn the_window_of_a_place_is_told() {
        assert_eq!(sliding().window_begins(1_050, 49), 0);
        assert_eq!(sliding().window_begins(1_050, 70), 50);
        assert_eq!(sliding().window_begins(1_050, 170), 150);
    }

    #[test]
    fn refused_attempts_without_end_stay_exact() {
        let sliding = SlidingWindow::new(4_000_000_000, 1_000_000).expect("stays exact");
        let mut words = [0; 2];
        for _ in 0..3 {
            sliding.record(&mut words, 0, u64::MAX);
        }
        let full = words[1] & u64::from(u32::MAX);
        assert!(full >= 4_000_000_000 && full * 1_000_000 < EXACT);
        assert_eq!(sliding.remaining(words, 2_000_000), 4_000_000_000);
    }

    #[test]
    fn what_was_charged_beyond_the_count_is_taken_from_the_windows_that_follow() {
        let sliding = sliding();
        let mut words = [0; 2];
        sliding.spend(&mut words, 1_000, 1, 0);
        sliding.force(&mut words, 1_000, 34);
        // Three windows of ten, and five in the fourth.
        assert_eq!(sliding.earliest(words, 1_000, 1, 0), Earliest::At(351));
        assert_eq!(sliding.earliest(words, 1_000, 5, 0), Earliest::At(391));
        assert_eq!(sliding.remaining(words, 1_299), 0);
        assert_eq!(sliding.remaining(words, 1_399), 5);
        assert_eq!(sliding.remaining(words, 1_499), 10);
        assert_eq!(sliding.fresh_in(words, 1_000), 500);
        // Charged again, at the next moment or later: nothing is forgotten.
        for (then, earliest) in [(1_000, 451), (1_299, 152), (1_399, 52)] {
            let mut words = words;
            sliding.force(&mut words, then, 10);
            assert_eq!(sliding.earliest(words, then, 1, 0), Earliest::At(earliest), "{then}");
        }
    }

    #[test]
    fn a_debt_without_end_stays_exact() {
        for (count, period) in [(10, 100), (4_000_000_000, 1_000_000), (1, EXACT / 3)] {
            let sliding = SlidingWindow::new(count, period).expect("stays exact");
            let mut words = [0; 2];
            for _ in 0..3 {
                sliding.force(&mut words, 1_050, u64::MAX);
            }
            assert_eq!(sliding.remaining(words, 1_050), 0, "{count}");
            assert!(sliding.fresh_in(words, 1_050) < EXACT, "{count}");
            let Earliest::At(earliest) = sliding.earliest(words, 1_050, 1, 0) else { panic!() };
            assert!(earliest < EXACT, "{count}");
        }
    }

    #[test]
    fn a_count_that_a_larger_limit_allowed_is_no_debt() {
        let (large, small) = (SlidingWindow::new(100, 100), SlidingWindow::new(10, 100));
        let (large, small) = (large.expect("exact"), small.expect("exact"));
        let mut words = [0; 2];
        large.spend(&mut words, 1_000, 100, 0);
        assert_eq!(small.earliest(words, 1_000, 1, 0), Earliest::At(191));
    }
}
