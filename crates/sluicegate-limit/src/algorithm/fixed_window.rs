//! Fixed window: `count` from each border to the next.
//!
//! The words are `[start of the window, spent since]`. If more than `count` is spent, the rest is booked in the windows
//! that follow. Each window is filled before the next.
//!
//! In a part of a limit, the words say how much of the whole is spent, as those of a bucket do: a full window is the count
//! of the whole. So a window that is spent is spent in every part, and a part that shrinks finds no debt. The arithmetic
//! is in requests of the part. What is read and written is converted.

use crate::exact::{EXACT, Earliest, bounded};
use crate::state::{Parameters, Words};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FixedWindow {
    count: u64,
    period: u64,
    /// Whether a window begins with its first request instead of at a multiple of the period.
    pub(crate) from_first: bool,
    /// The count of the whole limit. It is `count` unless this is a part.
    whole: u64,
}

impl FixedWindow {
    pub(crate) const fn new(count: u64, period: u64, from_first: bool) -> Self {
        Self { count, period, from_first, whole: count }
    }

    /// A part that admits `count` in a window.
    pub(crate) const fn with_count(self, count: u64) -> Self {
        Self { count, ..self }
    }

    /// The numbers that define the meaning of the words, and the capacity.
    pub(crate) const fn parameters(&self) -> Parameters {
        let whole = if self.whole == self.count { 0 } else { self.whole };
        [self.count, self.period, self.from_first as u64, whole]
    }

    /// The window of those numbers.
    pub(crate) const fn with_parameters([count, period, from_first, whole]: Parameters) -> Self {
        let whole = if whole > count { whole } else { count };
        Self { count, period, from_first: from_first != 0, whole }
    }

    /// The requests of this part that words of the row stand for. What is left of one counts as one.
    #[inline]
    fn requests(&self, spent: u64) -> u64 {
        if self.whole == self.count { spent } else { self.requests_of_part(spent) }
    }

    fn requests_of_part(&self, spent: u64) -> u64 {
        let (windows, fill) = (spent / self.whole, spent % self.whole);
        let of_fill = (u128::from(fill) * u128::from(self.count)).div_ceil(self.whole.into());
        // The count of a part is no more than that of the whole, so this is no more than what was spent.
        windows * self.count + of_fill as u64
    }

    /// What this part writes for as many requests, which [`requests`](Self::requests) reads as the same number.
    fn units(&self, requests: u64) -> u64 {
        if self.whole == self.count {
            return requests;
        }
        let (windows, fill) = (requests / self.count, requests % self.count);
        let of_fill = u128::from(fill) * u128::from(self.whole) / u128::from(self.count);
        windows.saturating_mul(self.whole).saturating_add(of_fill as u64)
    }

    #[inline]
    fn words(&self, start: u64, requests: u64) -> Words {
        [start, self.units(requests).min(EXACT / 2)]
    }

    /// The amount in the present window that words of other numbers stand for. Also whether marks keep their meaning:
    /// if the windows are the same, nothing is booked in a later one, and all of it fits.
    pub(crate) fn taken_over(
        &self,
        words: Words,
        parameters: Parameters,
        now: u64,
    ) -> (Words, bool) {
        let before = Self::with_parameters(parameters);
        let [start, spent] = before.current(words, now);
        let begun = match self.from_first {
            false => now - now % self.period,
            true if start + self.period > now => start,
            true => now,
        };
        let same = before.period == self.period && before.from_first == self.from_first;
        let fits = spent <= self.count && spent <= before.count;
        (self.words(begun, spent.min(self.count)), same && fits)
    }

    pub(crate) fn spent(&self, words: Words, now: u64) -> u64 {
        self.current(words, now)[1]
    }

    pub(crate) fn spent_up_to_all(&self, now: u64, tokens: u64) -> Words {
        let [start, _] = self.current([0; 2], now);
        self.words(start, tokens.min(self.count))
    }

    pub(crate) fn charge_up_to_all(&self, words: &mut Words, now: u64, cost: u64) -> bool {
        let [start, spent] = self.current(*words, now);
        let after = spent.saturating_add(cost);
        *words = self.words(start, after.min(self.count).max(spent));
        after <= self.count
    }

    /// Gives back a charge in its own window, if nothing is booked after it.
    pub(crate) fn give_charged(&self, words: &mut Words, then: u64, now: u64, back: u64) {
        let [start, spent] = self.current(*words, now);
        if then >= start && spent <= self.count {
            *words = self.words(start, spent.saturating_sub(back));
        }
    }

    pub(crate) fn earliest(&self, words: Words, now: u64, cost: u64, from: u64) -> Earliest {
        if cost > self.count {
            return Earliest::Never;
        }
        let [start, spent] = self.current(words, now);
        // Places are given out in order: a cost may join the last window that has been booked, or begin a later one,
        // but never an earlier one, even if something would fit there.
        let wanted = (now + from - start) / self.period;
        let (last, fill) = self.last_window(spent);
        if wanted > last || wanted == last && fill + cost <= self.count {
            return Earliest::At(from);
        }
        let window = if fill + cost <= self.count { last } else { last + 1 };
        Earliest::At(from.max(self.until(start, window, now)))
    }

    /// Charges a cost that fits into the present window: the words after it, and when they equal fresh ones. `None` if
    /// it does not fit. In a window that has begun, this needs no division.
    #[inline]
    pub(crate) fn admit_now(&self, words: Words, now: u64, cost: u64) -> Option<(Words, u64)> {
        let [start, spent] = [words[0], self.requests(words[1])];
        // Within a window that has begun, which is where nearly all requests are, comparing with its start is enough.
        // Only a new window costs a division by the period.
        let has_begun = spent > 0 && now >= start && now - start < self.period;
        let [start, spent] = if has_begun { [start, spent] } else { self.current(words, now) };
        let after = spent.saturating_add(cost);
        let fresh_in = if after == 0 { 0 } else { self.until(start, 1, now) };
        (after <= self.count).then(|| ([start, self.units(after)], fresh_in))
    }

    pub(crate) fn spend(&self, words: &mut Words, now: u64, cost: u64, wait: u64) {
        let [start, spent] = self.current(*words, now);
        let window = (now + wait - start) / self.period;
        // A cost that does not fit into the rest of a window goes to the next window as a whole. The rest stays unused.
        // Then one number says which places are taken: windows before the last place count as full.
        let before = spent.max(window.saturating_mul(self.count));
        *words = self.words(start, before.saturating_add(cost));
    }

    /// Whether a place `wait` ahead can be booked. The arithmetic has to stay exact. If `another` limit holds the
    /// request back, the place must not skip the rest of an earlier window, which others may use.
    pub(crate) fn books(
        &self,
        words: Words,
        now: u64,
        cost: u64,
        wait: u64,
        another: bool,
    ) -> bool {
        let [start, spent] = self.current(words, now);
        let Earliest::At(earliest) = self.earliest(words, now, cost, 0) else { return false };
        let window = |wait| (now + wait - start) / self.period;
        let before = spent.max(window(wait).saturating_mul(self.count));
        (!another || window(wait) == window(earliest))
            && self.units(before.saturating_add(cost)) <= EXACT / 2
    }

    /// Microseconds until the window of that place begins.
    pub(crate) fn window_begins(&self, words: Words, now: u64, wait: u64) -> u64 {
        let [start, _] = self.current(words, now);
        self.until(start, (now + wait - start) / self.period, now)
    }

    /// Follows a clock that stepped back into the window that it shows.
    pub(crate) fn follow(&self, words: &mut Words, now: u64) {
        if now < words[0] {
            let [start, spent] = self.current(*words, now);
            *words = self.words(start, spent);
        }
    }

    pub(crate) fn force(&self, words: &mut Words, now: u64, cost: u64) {
        let [start, spent] = self.current(*words, now);
        *words = self.words(start, spent.saturating_add(cost));
    }

    /// Gives back in the window in which it was spent, and only while no other request is booked after it.
    pub(crate) fn give(&self, words: &mut Words, receipt: Words, now: u64, back: u64) {
        let [start, spent] = self.current(*words, now);
        // The receipt has the words as they were after its charge, so its last window is the one that it was booked in.
        let (own, _) = self.last_window(self.requests(receipt[1]));
        let (last, fill) = self.last_window(spent);
        // By its absolute beginning: `start` moves on with each window, so the same window has another index then.
        if self.begin(receipt[0], own) == self.begin(start, last) {
            *words = self.words(start, spent - back.min(fill));
        }
    }

    pub(crate) fn remaining(&self, words: Words, now: u64) -> u64 {
        self.count.saturating_sub(self.current(words, now)[1])
    }

    pub(crate) fn fresh_in(&self, words: Words, now: u64) -> u64 {
        match self.current(words, now) {
            [_, 0] => 0,
            [start, spent] => self.until(start, self.last_window(spent).0 + 1, now),
        }
    }

    /// How long until a window begins, counted from the one that began at `start`.
    fn until(&self, start: u64, window: u64, now: u64) -> u64 {
        bounded(self.begin(start, window).saturating_sub(now))
    }

    fn begin(&self, start: u64, window: u64) -> u64 {
        start.saturating_add(window.saturating_mul(self.period))
    }

    /// The last window with anything spent in it, as an index counted from the current window, and the amount.
    fn last_window(&self, spent: u64) -> (u64, u64) {
        let last = spent.saturating_sub(1) / self.count;
        (last, spent - last * self.count)
    }

    /// The beginning of the present window, and the requests that are spent since. A clock that stepped back keeps what was
    /// spent, in the window that it stepped into.
    fn current(&self, [start, spent]: Words, now: u64) -> Words {
        let spent = self.requests(spent);
        // An empty row has no phase. A window that begins with its first request begins now; the others begin at the
        // border.
        let fresh = if self.from_first { now } else { now - now % self.period };
        if spent == 0 || now < start {
            return [fresh, spent];
        }
        // Each window that has passed took a whole count of what was booked, and the rest moves up.
        let passed = (now - start) / self.period;
        match spent.saturating_sub(passed.saturating_mul(self.count)) {
            0 => [fresh, 0],
            spent => [start + passed * self.period, spent],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALIGNED: FixedWindow = FixedWindow::new(5, 100, false);
    const FROM_FIRST: FixedWindow = FixedWindow::new(5, 100, true);

    fn spent(fixed: FixedWindow, now: u64, cost: u64) -> Words {
        let mut words = [0; 2];
        fixed.spend(&mut words, now, cost, 0);
        words
    }

    #[test]
    fn an_aligned_window_ends_at_a_multiple_of_the_period() {
        let words = spent(ALIGNED, 1_099, 5);
        assert_eq!(ALIGNED.earliest(words, 1_099, 1, 0), Earliest::At(1));
        assert_eq!(ALIGNED.remaining(words, 1_100), 5);
    }

    #[test]
    fn a_window_from_first_use_ends_a_period_after_it() {
        let words = spent(FROM_FIRST, 1_099, 5);
        assert_eq!(FROM_FIRST.earliest(words, 1_099, 1, 0), Earliest::At(100));
        assert_eq!(FROM_FIRST.remaining(words, 1_198), 0);
        assert_eq!(FROM_FIRST.remaining(words, 1_199), 5);
        // The next begins with its own first use.
        let mut words = words;
        FROM_FIRST.spend(&mut words, 1_250, 5, 0);
        assert_eq!(FROM_FIRST.earliest(words, 1_250, 1, 0), Earliest::At(100));
    }

    #[test]
    fn a_cost_that_does_not_fit_goes_to_the_next_window_whole() {
        let mut words = spent(ALIGNED, 1_000, 3);
        assert_eq!(ALIGNED.earliest(words, 1_000, 4, 0), Earliest::At(100));
        ALIGNED.spend(&mut words, 1_000, 4, 100);
        assert_eq!(ALIGNED.remaining(words, 1_100), 1);
        // No later request gets in before the booked one.
        assert_eq!(ALIGNED.earliest(words, 1_050, 1, 0), Earliest::At(50));
        assert_eq!(ALIGNED.earliest(words, 1_050, 2, 0), Earliest::At(150));
    }

    #[test]
    fn a_part_reads_the_requests_that_it_has_written() {
        for (count, whole) in [(1, 8), (2, 8), (3, 8), (7, 8), (66, 100), (1, EXACT / 2 - 1)] {
            let part = FixedWindow::new(whole, 100, false).with_count(count);
            assert_eq!(FixedWindow::with_parameters(part.parameters()), part);
            for requests in 0..(3 * count).min(300) {
                let units = part.units(requests);
                assert_eq!(part.requests(units), requests, "{count} of {whole}");
                // What others have spent is rounded up, and never less after it is written again.
                assert_eq!(part.requests(units + 1), requests + 1, "{count} of {whole}");
                assert!(part.units(part.requests(units + 1)) > units);
            }
            assert_eq!(part.units(count), whole);
        }
    }

    #[test]
    fn what_a_part_owes_ends_at_the_bound() {
        let part = FixedWindow::new(EXACT / 4, 100, false).with_count(1);
        let mut words = spent(part, 1_000, 1);
        part.force(&mut words, 1_000, u64::MAX);
        assert_eq!(words, [1_000, EXACT / 2]);
        assert!(!part.books(words, 1_000, 1, 10_000, false));
    }

    #[test]
    fn what_was_charged_beyond_the_count_is_owed_to_the_windows_that_follow() {
        let mut words = spent(ALIGNED, 1_000, 5);
        ALIGNED.force(&mut words, 1_000, 7);
        assert_eq!(ALIGNED.remaining(words, 1_100), 0);
        assert_eq!(ALIGNED.remaining(words, 1_200), 3);
        ALIGNED.force(&mut words, 1_000, u64::MAX);
        assert!(ALIGNED.fresh_in(words, 1_000) < EXACT);
    }
}
