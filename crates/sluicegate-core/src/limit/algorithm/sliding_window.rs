//! Sliding window counter: the current window's count, plus the previous one's weighted by how much
//! of it still overlaps, in integers.
//!
//! The words are `[index of the window, previous count << 32 | current count]`.

use crate::limit::earliest::{Earliest, StepResult};
use crate::limit::exact::{EXACT, TICKS};
use crate::limit::words::{Parameters, Words};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SlidingWindow {
    count: u64,
    /// Ticks in a window.
    period: u64,
    /// Microseconds in a tick.
    tick: u64,
}

/// The two counts at a moment that is `into` ticks into the window `index`.
#[derive(Clone, Copy)]
struct Windows {
    index: u64,
    into: u64,
    previous: u64,
    current: u64,
}

impl SlidingWindow {
    /// `None` when the count times the period does not stay exact at any tick.
    pub(crate) const fn new(count: u64, period: u64) -> Option<Self> {
        let mut i = 0;
        while i < TICKS.len() {
            let tick = TICKS[i];
            if period % tick != 0 {
                break;
            }
            if count <= u32::MAX as u64 && count * 2 < EXACT / (period / tick) {
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
        let mut followed = words;
        self.follow(&mut followed, now);
        let mut at = self.windows(followed, now + from);
        loop {
            if let Some(into) = self.room(at, cost) {
                let when = (at.index * self.period + into) * self.tick;
                return Earliest::At(from.max(when.saturating_sub(now)));
            }
            // Ends: two windows on, nothing overlaps any more.
            at = Windows { index: at.index + 1, into: 0, previous: at.current, current: 0 };
        }
    }

    /// Whether a place `wait` ahead can be booked: there is a count for this window, none for later.
    pub(crate) fn books(&self, now: u64, wait: u64) -> bool {
        self.window_begins(now, wait) == 0
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

    /// Charges a cost that fits even if all of the previous window counts; `None` if it does not. The words must not be
    /// of a later time.
    #[inline]
    pub(crate) fn admit_now(&self, words: Words, now: u64, cost: u64) -> Option<StepResult> {
        let at = self.windows(words, now);
        let current = at.current.saturating_add(cost);
        if current == 0 || at.previous.saturating_add(current) > self.count {
            return None;
        }
        // Neither half holds more than the count, so there is nothing to cut off.
        let words = [at.index, at.previous << 32 | current];
        let fresh_in = Some((at.index + 2) * self.period * self.tick - now);
        Some(StepResult::Admit { words, fresh_in })
    }

    pub(crate) fn spend(&self, words: &mut Words, now: u64, cost: u64) {
        let at = self.windows(*words, now);
        self.write(words, Windows { current: at.current.saturating_add(cost), ..at });
    }

    /// Gives back in the window in which it was spent, the current or the previous one.
    pub(crate) fn give(&self, words: &mut Words, receipt: Words, now: u64, back: u64) {
        let at = self.windows(*words, now);
        let given = match at.index.checked_sub(receipt[0]) {
            Some(0) => Windows { current: at.current.saturating_sub(back), ..at },
            Some(1) => Windows { previous: at.previous.saturating_sub(back), ..at },
            _ => return,
        };
        self.write(words, given);
    }

    pub(crate) fn remaining(&self, words: Words, now: u64) -> u64 {
        let at = self.windows(words, now);
        self.count.saturating_sub(at.current + at.previous * (self.period - at.into) / self.period)
    }

    /// When both counts have left the window.
    pub(crate) fn fresh_in(&self, words: Words, now: u64) -> u64 {
        let at = self.windows(words, now);
        let windows = match (at.previous, at.current) {
            (0, 0) => return 0,
            (_, 0) => 1,
            _ => 2,
        };
        (at.index + windows) * self.period * self.tick - now
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
    fn windows(&self, [index, counts]: Words, now: u64) -> Windows {
        let ticks = now / self.tick;
        let (at, into) = (ticks / self.period, ticks % self.period);
        let (previous, current) = (counts >> 32, counts & u64::from(u32::MAX));
        let (previous, current) = match at.checked_sub(index) {
            None => (0, previous + current),
            Some(0) => (previous, current),
            Some(1) => (current, 0),
            Some(_) => (0, 0),
        };
        Windows { index: at, into, previous, current }
    }

    /// Refused attempts may be counted too, but only as many as keep the products exact.
    fn most(&self) -> u64 {
        (EXACT / 2 / self.period).min(u64::from(u32::MAX))
    }

    fn write(&self, words: &mut Words, at: Windows) {
        let most = self.most();
        *words = [at.index, at.previous.min(most) << 32 | at.current.min(most)];
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
        sliding().spend(&mut words, 1_000, 10);
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
        sliding().spend(&mut words, 1_050, 10);
        assert_eq!(sliding().earliest(words, 1_050, 1, 0), Earliest::At(51));
        assert_eq!(sliding().earliest(words, 1_050, 10, 0), Earliest::At(141));
        assert_eq!(sliding().earliest(words, 1_050, 11, 0), Earliest::Never);
        // A cost that fits earlier also fits at a later moment.
        assert_eq!(sliding().earliest(words, 1_050, 1, 70), Earliest::At(70));
    }

    #[test]
    fn places_are_booked_in_the_present_window_alone() {
        assert!(sliding().books(1_050, 49));
        assert!(!sliding().books(1_050, 50));
        assert_eq!(sliding().window_begins(1_050, 49), 0);
        assert_eq!(sliding().window_begins(1_050, 70), 50);
        assert_eq!(sliding().window_begins(1_050, 170), 150);
    }

    #[test]
    fn refused_attempts_without_end_stay_exact() {
        let sliding = SlidingWindow::new(4_000_000_000, 1_000_000).expect("stays exact");
        let mut words = [0; 2];
        for _ in 0..3 {
            sliding.spend(&mut words, 0, u64::MAX);
        }
        let full = words[1] & u64::from(u32::MAX);
        assert!(full >= 4_000_000_000 && full * 1_000_000 < EXACT);
        assert_eq!(sliding.remaining(words, 2_000_000), 4_000_000_000);
    }
}
