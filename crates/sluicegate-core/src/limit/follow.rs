//! What another store has decided, counted in the state that takes over when that store fails.

use super::algorithm::Algorithm;
use super::definition::Limit;
use super::exact::bounded;
use super::state::{Receipt, State};
use super::words::Words;

impl Limit {
    /// Makes a charge of `charged` that was made elsewhere into one of `spent`, as far as a state can hold it
    /// that counts less than that: a bucket up to twice its size, so that what was spent faster than it drains
    /// is made up for; everything else until it is full. What is held is not followed: nobody would give it
    /// back.
    pub(crate) fn follow_charge(&self, state: &mut State, now: u64, charged: u64, spent: u64) {
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

    fn room(&self, state: &State, now: u64) -> u64 {
        match &self.algorithm {
            Algorithm::TokenBucket(bucket) if !self.carried => bucket.room_twice(state.words, now),
            _ => self.status(state, now, Receipt::default()).remaining,
        }
    }

    /// Stands for what was charged last.
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
    fn what_is_held_elsewhere_is_not_held_here() {
        let limit = Limit::concurrent(3);
        let mut state = limit.fresh();
        limit.follow_charge(&mut state, NOW, 0, 2);
        assert_eq!(left(limit, &state), Some(3));
    }
}
