//! What another store has decided, counted in the state that takes over when that store fails.

use super::algorithm::Algorithm;
use super::definition::Limit;
use super::exact::bounded;
use super::state::{Receipt, State};
use super::status::LimitStatus;
use super::words::Words;

impl Limit {
    /// Makes a charge of `charged` that was made elsewhere into one of `spent`, as far as a state can hold it
    /// that counts less than that: a bucket up to twice its size, so that what was spent faster than it drains
    /// is made up for; everything else until it is full. What is held is not followed: nobody would give it
    /// back.
    #[doc(hidden)]
    pub fn follow_charge(&self, state: &mut State, now: u64, charged: u64, spent: u64) {
        if self.is_held() {
            return;
        }
        if spent <= charged {
            let latest = self.latest(state);
            self.settle(state, now, &latest, charged, spent);
            return;
        }
        let more = (spent - charged).min(self.room(state, bounded(now)));
        if more > 0 {
            self.settle(state, now, &Receipt::default(), 0, more);
        }
    }

    /// Whether a status says more than is counted by following each charge: where something drains, what is spent
    /// elsewhere counts here too. Of a window, the charges that are followed are enough.
    #[doc(hidden)]
    pub fn can_follow(&self, status: &LimitStatus) -> bool {
        !status.uncounted && self.is_bucket() && status.limit.is_bucket()
    }

    fn is_bucket(&self) -> bool {
        matches!(self.algorithm, Algorithm::TokenBucket(_))
    }

    /// Counts no less than `status` says of another limit, of which this is a part or the whole: a part that is
    /// used as much. Beyond half of it up to twice its size, since a store that has all to give when it is back
    /// must not find that its second has given it as well.
    #[doc(hidden)]
    pub fn follow_status(&self, state: &mut State, now: u64, status: &LimitStatus) {
        let (Algorithm::TokenBucket(part), Algorithm::TokenBucket(whole)) =
            (&self.algorithm, &status.limit.algorithm)
        else {
            return;
        };
        let now = bounded(now);
        let (used, all) = status.reset.map_or((0, 1), |reset| whole.used_until(reset));
        // `all` is below 2^73 and a size below 2^52, so that twice their product fits.
        let size = u128::from(part.size());
        let spent = (size * used / all).max((size * (3 * used).saturating_sub(all)).div_ceil(all));
        let known = (2 * part.size()).saturating_sub(part.room_twice(state.words, now));
        let more = u64::try_from(spent).unwrap_or(u64::MAX).saturating_sub(known);
        let more = more.min(self.room(state, now));
        if more > 0 {
            self.settle(state, now, &Receipt::default(), 0, more);
        }
    }

    fn room(&self, state: &State, now: u64) -> u64 {
        match &self.algorithm {
            Algorithm::TokenBucket(bucket) if !self.carried => bucket.room_twice(state.words, now),
            _ => self.status(state, now, Receipt::default()).remaining,
        }
    }

    /// The receipt of the latest charge.
    fn latest(&self, state: &State) -> Receipt {
        let newest = state.log.as_deref().and_then(|log| log.newest());
        let words: Words = newest.map_or(state.words, |stamp| [stamp, 0]);
        Receipt { since: state.written.since, ..Receipt::from_words(words) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NOW: u64 = 1_700_000_000_000_000;
    const MINUTE: Duration = Duration::from_secs(60);

    fn limits() -> [Limit; 6] {
        [
            Limit::per_minute(8),
            Limit::per_minute(8).refill(8, MINUTE),
            Limit::fixed_window(8, MINUTE),
            Limit::sliding_log(8, MINUTE),
            Limit::sliding_window(8, MINUTE),
            Limit::per_minute(8).named("a").carried(),
        ]
    }

    fn left(limit: Limit, state: &State) -> Option<u64> {
        limit.peek(state, NOW, 1).remaining()
    }

    #[test]
    fn what_was_charged_and_given_back_elsewhere_counts_here() {
        for limit in limits() {
            let mut state = limit.fresh();
            limit.follow_charge(&mut state, NOW, 0, 3);
            assert_eq!(left(limit, &state), Some(5), "{limit}");
            limit.follow_charge(&mut state, NOW, 3, 1);
            assert_eq!(left(limit, &state), Some(7), "{limit}");
            limit.follow_charge(&mut state, NOW, 1, 2);
            assert_eq!(left(limit, &state), Some(6), "{limit}");
        }
    }

    #[test]
    fn a_part_that_is_followed_beyond_its_size_is_free_again_after_twice_its_time() {
        for limit in limits() {
            let mut state = limit.fresh();
            for _ in 0..1_000 {
                limit.follow_charge(&mut state, NOW, 0, 5);
            }
            assert_eq!(left(limit, &state), Some(0), "{limit}");
            let fresh = limit.fresh_in(&state, NOW).expect("time heals it");
            assert!(fresh <= 2 * MINUTE, "{limit}: {fresh:?}");
        }
    }

    #[test]
    fn a_part_is_used_as_much_as_the_whole() {
        let (whole, part) = (Limit::per_minute(100), Limit::per_minute(20));
        // Of the whole, what is spent; of the part, what is left, and what is left a third of the time later.
        for (spent, left_now, left_later) in
            [(0, 20, 20), (5, 19, 20), (50, 10, 16), (75, 0, 1), (100, 0, 0)]
        {
            let (mut used, mut state) = (whole.fresh(), part.fresh());
            let answer = whole.take(&mut used, NOW, spent);
            let status = answer.statuses().next().expect("one limit").clone();
            assert!(part.can_follow(&status));
            // Twice is no more than once.
            part.follow_status(&mut state, NOW, &status);
            part.follow_status(&mut state, NOW, &status);
            assert_eq!(left(part, &state), Some(left_now), "{spent}");
            let later = NOW + 20_000_000;
            assert_eq!(part.peek(&state, later, 1).remaining(), Some(left_later), "{spent}");
        }
        let window = Limit::fixed_window(100, MINUTE);
        assert!(!window.can_follow(&LimitStatus::fresh(window)), "nothing drains");
    }

    #[test]
    fn what_is_held_elsewhere_is_not_held_here() {
        let limit = Limit::concurrent(3);
        let mut state = limit.fresh();
        limit.follow_charge(&mut state, NOW, 0, 2);
        assert_eq!(left(limit, &state), Some(3));
    }
}
