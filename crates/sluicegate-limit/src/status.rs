use core::time::Duration;

use super::algorithm::token_bucket::TokenBucket;
use super::definition::Limit;
use super::state::{Receipt, State};
use super::words::{Words, time_left};

/// The status of one limit for a key, once a request has been decided.
///
/// Holds durations only, never an instant, because the clock belongs to the store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitStatus {
    /// The limit.
    pub limit: Limit,
    /// How much more could be spent at this moment: nothing while a [gap](Limit::min_gap) or a ban lasts.
    pub remaining: u64,
    /// The effective window: until it has passed, no more than `remaining` can be spent, and afterwards more. Zero if
    /// nothing is spent; `None` if only giving back makes room.
    pub window: Option<Duration>,
    /// How long until the key is as good as new, if nobody spends; `None` if only giving back does that.
    pub reset: Option<Duration>,
    /// What was charged; zero if the request was refused.
    pub charged: u64,
    /// Whether it is this limit that refuses.
    pub refused: bool,
    /// Whether this limit, a [shadow](Limit::shadow), would have refused the request, or held it up.
    pub shadowed: bool,
    /// Whether this limit was not counted, because the store had no room for the key: nothing was charged
    /// to it, and it had no part in the decision.
    pub uncounted: bool,
    /// Whether the key was counted together with others in a row that they share, because the store had no
    /// room for a row of its own: see [`WhenFull::CountTogether`](crate::WhenFull::CountTogether).
    pub together: bool,
    /// How long until this limit would admit the request: zero if it does now; `None` if that is unknown (only giving
    /// back makes room) or never happens (the cost is more than it ever allows).
    pub retry: Option<Duration>,
    /// Whether more than the soft limit is spent.
    pub soft: bool,
    /// Whether the key is banned.
    pub banned: bool,
    /// What the store needs to give the charge back.
    pub receipt: Receipt,
}

impl LimitStatus {
    /// The status of a key about which nothing is known: for stores that cannot report more.
    pub fn fresh(limit: Limit) -> Self {
        Self {
            limit,
            remaining: limit.capacity(),
            window: Some(Duration::ZERO),
            reset: Some(Duration::ZERO),
            charged: 0,
            refused: false,
            shadowed: false,
            uncounted: false,
            together: false,
            retry: Some(Duration::ZERO),
            soft: false,
            banned: false,
            receipt: Receipt::default(),
        }
    }
}

impl Limit {
    #[inline]
    pub(super) fn status(&self, state: &State, now: u64, receipt: Receipt) -> LimitStatus {
        let banned = self.ban > 0 && time_left(state.ban, now) > 0;
        let (remaining, window, soft) = self.left_of(state, now, banned);
        LimitStatus {
            limit: *self,
            remaining,
            window,
            reset: self.own_fresh_in(state, now),
            charged: 0,
            refused: false,
            shadowed: false,
            uncounted: false,
            together: false,
            retry: Some(Duration::ZERO),
            soft,
            banned,
            receipt,
        }
    }

    /// What remains, until when, and whether that is beyond the soft limit.
    fn left_of(&self, state: &State, now: u64, banned: bool) -> (u64, Option<Duration>, bool) {
        let left = if banned { 0 } else { self.algorithm.remaining(state, now) };
        // During the gap nothing can be spent, whatever the count has left.
        let remaining = if self.gap_left(state, now) > 0 { 0 } else { left };
        let window = if remaining < self.capacity() {
            self.retry(state, now, remaining + 1)
        } else {
            Some(Duration::ZERO)
        };
        let soft = self.soft.is_some_and(|soft| self.capacity() - left > soft);
        (remaining, window, soft)
    }

    /// How much longer the gap lasts.
    fn gap_left(&self, state: &State, now: u64) -> u64 {
        if self.gap == 0 { 0 } else { TokenBucket::gap(self.gap).fresh_in(state.gap, now) }
    }

    /// Like [`left_of`](Self::left_of), for a state of two words.
    pub(super) fn left(&self, words: Words, now: u64) -> (u64, Option<Duration>, bool) {
        self.left_of(&State::of(words), now, false)
    }

    /// What remains, of a state of two words.
    #[inline]
    pub(super) fn remaining_of(&self, words: Words, now: u64) -> u64 {
        self.algorithm.remaining(&State::of(words), now)
    }

    pub(super) fn status_of_words(&self, words: Words, now: u64) -> LimitStatus {
        self.status(&State::of(words), now, Receipt::default())
    }

    pub(super) fn retry_of_words(&self, words: Words, now: u64, cost: u64) -> Option<Duration> {
        self.retry(&State::of(words), now, cost)
    }
}
