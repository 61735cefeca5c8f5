//! The one step of a limit: its shape, and around it the gap and the ban.
//!
//! Nothing here reads a clock, fails or allocates; `now` is passed in, in microseconds.
//!
//! Every algorithm answers one question: when may this cost come in, not before a given moment (`enter`)?
//! Refusals, `retry_after`, the wait of a queue, bans, gaps and the agreement of several limits on one
//! moment are all made of the answer.
//!
//! A queue is not a list of waiters. A request that may wait books a place ahead in the state itself. Order
//! is the order of arrival at the store, the wait is known at once, and a request that cannot be served in
//! time is refused instead of waiting in vain. Every algorithm books ahead, except concurrency, which
//! cannot know. The sliding window books within its current window only, because it has no count for the
//! next one.
//!
//! Giving back asks who waits behind. Places behind a booked one were computed with it. So only the last in
//! line can give its place back to a bucket or a fixed window. A sliding log can always take a stamp out.

use std::time::Duration;

use super::algorithm::{Algorithm, NO_PARAMETERS};
use super::ban::banned_for;
use super::decide::settle_on;
use super::exact::bounded;
use super::sliding_log::MOST_ENTRIES;
use super::state::{Receipt, State};
use super::token_bucket::TokenBucket;
use super::{
    AlgorithmSpec, Attempt, Decision, Earliest, Keys, Limit, LimitStatus, Log, Words, decide,
};
use crate::store::few::Few;

/// What came of spending from two words.
pub(crate) enum StepResult {
    /// It is spent.
    Admit {
        /// What stands there now.
        words: Words,
        /// In how many microseconds that equals a fresh one; `None`: when it is given back.
        fresh_in: Option<u64>,
    },
    /// Nothing has changed.
    Refuse(Earliest),
}

impl Limit {
    /// The earliest moment at which a state of two words can have been written.
    pub(crate) fn since(&self, words: Words) -> u64 {
        self.algorithm.since(words)
    }

    /// Spends `cost` by a [plain](Self::is_plain) limit, if that may come in at once. The words must not be
    /// of a later time.
    pub(crate) fn step(&self, words: Words, now: u64, cost: u64) -> StepResult {
        if let Algorithm::TokenBucket(bucket) = &self.algorithm {
            return bucket.step(words, now, cost);
        }
        let mut state = State::of(words);
        match self.algorithm.earliest(&state, now, cost, 0) {
            Earliest::At(0) => {
                self.algorithm.spend(&mut state, now, cost, 0);
                let fresh_in = self.algorithm.fresh_in(&state, now);
                StepResult::Admit { words: state.words, fresh_in }
            }
            earliest => StepResult::Refuse(earliest),
        }
    }
}

impl Limit {
    /// The state of a key that has spent nothing.
    ///
    /// For a sliding log this makes room for all the entries that it can ever hold, up to 65,536 of
    /// them (1 MiB), so that [`take`](Self::take) never allocates.
    pub fn fresh(&self) -> State {
        let mut state = State::default();
        if self.carried && self.algorithm.parameters() != NO_PARAMETERS {
            // Whatever other numbers come, there is room for their accounts.
            state.others = Some(Box::default());
        }
        if let Algorithm::SlidingLog(sieve) = self.algorithm {
            let log = state.log.get_or_insert_default();
            log.reserve_exact(sieve.entries().min(MOST_ENTRIES as u64) as usize);
        }
        state
    }

    /// Spends `cost` at `now`, in microseconds since the Unix epoch, if the limit admits it.
    ///
    /// This is the bare arithmetic, for a key whose state you hold; a [`Store`](crate::store::Store) holds
    /// the states of many. The same step decides in both.
    ///
    /// ```
    /// use sluicegate::Limit;
    ///
    /// let limit = Limit::per_second(3);
    /// let mut state = limit.fresh();
    /// let now = 1_700_000_000_000_000;
    ///
    /// assert!(limit.take(&mut state, now, 3).is_admitted());
    /// let refused = limit.take(&mut state, now, 1);
    /// assert_eq!(refused.retry_after().unwrap().as_micros(), 333_334);
    /// ```
    pub fn take(&self, state: &mut State, now: u64, cost: u64) -> Decision {
        self.told(&mut [Attempt { limit: self, state, cost }], now, None)
    }

    /// The same, booking a place ahead if one is free within `patience`: then the decision says how
    /// long to [`wait`](Decision::wait), and that is never longer than the patience. How many may wait
    /// in a leaky bucket is said by its [`queue`](Self::queue), however patient they are.
    pub fn take_within(
        &self,
        state: &mut State,
        now: u64,
        cost: u64,
        patience: Duration,
    ) -> Decision {
        self.told(&mut [Attempt { limit: self, state, cost }], now, Some(patience))
    }

    /// What [`take`](Self::take) would answer, without spending.
    pub fn peek(&self, state: &State, now: u64, cost: u64) -> Decision {
        let state = &mut state.clone();
        let attempts = &mut [Attempt { limit: self, state, cost }];
        super::preview(attempts, now, None, Keys::One).about(std::iter::once((self, cost)))
    }

    fn told(&self, attempts: &mut [Attempt<'_>], now: u64, patience: Option<Duration>) -> Decision {
        if self.is_plain() {
            let outcome = decide(attempts, now, patience, Keys::One);
            return outcome.about(attempts.iter().map(|attempt| (attempt.limit, attempt.cost)));
        }
        let mut statuses = Few::new();
        let verdict = settle_on(attempts, now, patience, Keys::One, |attempt, fact| {
            statuses.push(fact.status(attempt.limit, attempt.cost));
        });
        Decision::new(verdict, statuses)
    }

    /// Makes a charge of `cost`, whose `receipt` stands in the decision's
    /// [`LimitStatus`](super::LimitStatus::receipt), into one of `spent`: gives back what was too much, or
    /// charges more, beyond the limit if need be.
    ///
    /// A bucket takes back what of this charge has not drained meanwhile, and is never better than
    /// fresh; a window takes back only what was spent in that window. Where several charges that
    /// overlap in time are given back to a bucket, together they can return as much as drained while
    /// they were under way.
    ///
    /// Giving back lifts a ban that began while the charge counted, once as much is given back as has
    /// been refused since; and refusals that are counted towards a ban likewise.
    pub fn settle(&self, state: &mut State, now: u64, receipt: &Receipt, cost: u64, spent: u64) {
        let now = bounded(now);
        if receipt.void {
            return;
        }
        if spent > cost {
            self.meet(state, now);
        } else if !self.knows(state, receipt) {
            return;
        }
        self.follow_all(state, now);
        if spent > cost {
            self.algorithm.force(state, now, spent - cost);
            self.charge_others(state, now, spent - cost);
            return;
        }
        self.algorithm.give(state, receipt, now, cost - spent);
        if self.carried {
            self.give_others(state, receipt, now, cost, cost - spent);
        }
        // What is held is given back at its ordinary end, too: that makes nothing undone.
        if self.is_held() {
            return;
        }
        if spent == 0 && self.gap > 0 {
            TokenBucket::gap(self.gap).give(&mut state.gap, receipt.gap, now, 1);
        }
        self.pardon(state, receipt, now, cost - spent);
    }

    /// Whether one look at two words tells all: no ban, no gap, no log, no queue of its own, nothing to
    /// record of refusals, and no shadow.
    #[inline]
    pub(crate) const fn is_plain(&self) -> bool {
        self.plain
    }

    /// The bucket of a plain limit of which a microsecond drains one, as of most.
    #[inline]
    pub(crate) const fn one_word_bucket(&self) -> Option<&TokenBucket> {
        match &self.algorithm {
            Algorithm::TokenBucket(bucket) if self.plain && bucket.drains_one_per_microsecond() => {
                Some(bucket)
            }
            _ => None,
        }
    }

    /// Whether the state is that of a limit [with a one-word row](Self::one_word_bucket): a shadow's is too, so that it is the
    /// same when it becomes one that refuses.
    #[inline]
    pub(crate) const fn fits_one_word(&self) -> bool {
        let queues = matches!(self.spec, AlgorithmSpec::LeakyBucket { .. });
        match &self.algorithm {
            Algorithm::TokenBucket(bucket) => {
                bucket.drains_one_per_microsecond() && !self.has_extra_state() && !queues
            }
            _ => false,
        }
    }

    /// The state of a limit that [fits one word](Self::fits_one_word) as `receipt` wrote it, if that is what is left of it:
    /// giving back asks whether anybody was charged since.
    pub(crate) fn as_written(&self, words: Words, receipt: &Receipt) -> Words {
        let is_same =
            self.fits_one_word() && words[0] + words[1] == receipt.words[0] + receipt.words[1];
        if is_same { receipt.words } else { words }
    }

    /// Microseconds until a state of two words equals a fresh one.
    #[inline]
    pub(crate) fn words_fresh_in(&self, words: Words, now: u64) -> Option<u64> {
        self.algorithm.fresh_in(&State::of(words), now)
    }

    pub(super) fn status_of_words(&self, words: Words, now: u64) -> LimitStatus {
        self.status(&State::of(words), now, Receipt::default())
    }

    pub(super) fn retry_of_words(&self, words: Words, now: u64, cost: u64) -> Option<Duration> {
        self.retry(&State::of(words), now, cost)
    }

    /// Until `state` equals a fresh one and may be forgotten, by the numbers that have written it; `None`:
    /// not before it is given back.
    pub fn fresh_in(&self, state: &State, now: u64) -> Option<Duration> {
        self.fresh_in_micros(state, now).map(Duration::from_micros)
    }

    pub(crate) fn fresh_in_micros(&self, state: &State, now: u64) -> Option<u64> {
        let now = bounded(now);
        let shape = self.accounts_fresh_in(state, now)?;
        Some(self.or_kept_out(shape, state, now))
    }

    /// Until the account of this limit's numbers has recovered.
    fn own_fresh_in(&self, state: &State, now: u64) -> Option<Duration> {
        let shape = self.algorithm.fresh_in(state, now)?;
        Some(Duration::from_micros(self.or_kept_out(shape, state, now)))
    }

    /// The longer of that time and what a gap or a ban still lasts.
    fn or_kept_out(&self, shape: u64, state: &State, now: u64) -> u64 {
        let gap =
            if self.has_gap() { TokenBucket::gap(self.gap).fresh_in(state.gap, now) } else { 0 };
        let banned = banned_for(state.ban, now).max(self.struck_for(state, now));
        shape.max(gap).max(banned)
    }

    pub(super) fn counted(&self, receipt: &Receipt, then: u64) -> bool {
        self.algorithm.counted(receipt, then)
    }

    /// The earliest moment, `from` or more from `now`, at which a request may come in.
    #[inline]
    pub(super) fn earliest(&self, state: &State, now: u64, cost: u64, from: u64) -> Earliest {
        let mut from = from;
        if self.ban > 0 {
            from = from.max(banned_for(state.ban, now));
        }
        if self.gap > 0 {
            if let Earliest::At(at) = TokenBucket::gap(self.gap).earliest(state.gap, now, 1, from) {
                from = at;
            }
        }
        self.algorithm.earliest(state, now, cost, from)
    }

    /// How long a request that comes in now waits in the limit's own queue, be it one of no length;
    /// `None` where it is patience that waits.
    #[inline]
    pub(super) fn queued(&self, state: &State, now: u64, cost: u64) -> Option<u64> {
        match (self.spec, self.algorithm) {
            (AlgorithmSpec::LeakyBucket { .. }, Algorithm::TokenBucket(bucket)) => {
                Some(bucket.leave(state.words, now, cost))
            }
            _ => None,
        }
    }

    /// Whether a request that may wait for so long can never be admitted: it costs more than the limit holds,
    /// or has to stay in the limit's own queue for longer even where it finds that empty.
    pub(crate) fn never_admits(&self, cost: u64, patience: Option<u64>) -> bool {
        let too_long = patience.is_some_and(|patience| self.shortest_queue(cost) > patience);
        too_long || self.never_fits(cost)
    }

    /// How long a request waits in the limit's own queue even where it finds that empty.
    pub(super) fn shortest_queue(&self, cost: u64) -> u64 {
        match (self.spec, self.algorithm) {
            (AlgorithmSpec::LeakyBucket { .. }, Algorithm::TokenBucket(bucket)) => {
                bucket.shortest_leave(cost)
            }
            _ => 0,
        }
    }

    /// Until the window begins in which a place `wait` ahead stands, where there are windows.
    pub(super) fn window_begins(&self, state: &State, now: u64, wait: u64) -> Option<u64> {
        match self.algorithm {
            Algorithm::FixedWindow(fixed) => Some(fixed.window_begins(state.words, now, wait)),
            Algorithm::SlidingWindow(sliding) => Some(sliding.window_begins(now, wait)),
            _ => None,
        }
    }

    pub(super) fn books(&self, state: &State, now: u64, cost: u64, wait: u64, keys: Keys) -> bool {
        let own = self.queued(state, now, cost).unwrap_or(0);
        let on_its_own =
            matches!(self.earliest(state, now, cost, 0), Earliest::At(at) if wait <= own.max(at));
        let another = keys == Keys::Several && !on_its_own;
        self.algorithm.books(state, now, cost, wait, another)
    }

    /// Goes on by the account of the limit's own numbers, follows a clock that result back, and drops what is
    /// remembered in vain.
    #[inline]
    pub(crate) fn tidy(&self, state: &mut State, now: u64) {
        if self.carried {
            self.meet(state, now);
        }
        self.follow_all(state, now);
    }

    #[inline]
    fn follow_all(&self, state: &mut State, now: u64) {
        self.algorithm.tidy(state, now);
        if self.carried {
            self.follow_others(state, now);
        }
        if self.has_gap() {
            TokenBucket::gap(self.gap).follow(&mut state.gap, now);
        }
        if self.ban > 0 || self.carried {
            state.ban[0] = state.ban[0].min(now);
            state.strikes[0] = state.strikes[0].min(now);
        }
    }

    /// Whether the state may hold a gap: this limit's, or one that it had before.
    fn has_gap(&self) -> bool {
        self.gap > 0 || self.carried
    }

    /// [`tidy`](Self::tidy) of a plain limit.
    #[inline]
    pub(super) fn follow(&self, state: &mut State, now: u64) {
        self.algorithm.tidy(state, now);
    }

    /// Drops what a log holds in vain, and nothing else.
    pub(crate) fn tidy_log(&self, state: &mut State, now: u64) {
        if self.most_entries() > 0 {
            self.algorithm.tidy(state, now);
        }
    }

    #[inline]
    pub(super) fn spend(&self, state: &mut State, now: u64, cost: u64, wait: u64) -> Receipt {
        let words = self.algorithm.spend(state, now, cost, wait);
        if self.gap > 0 {
            TokenBucket::gap(self.gap).spend(&mut state.gap, now, 1, wait);
        }
        let banned = banned_for(state.ban, now) > 0 || self.struck_for(state, now) > 0;
        let (since, by_all) = self.charge_others(state, now, cost);
        let gap = state.gap;
        Receipt {
            words,
            gap,
            via: 0,
            banned,
            at: now.min(since),
            since,
            by_all,
            void: false,
            together: false,
        }
    }

    /// Writes down that this limit refused, where that is recorded.
    pub(super) fn refuse(&self, state: &mut State, now: u64, cost: u64) {
        if self.never_fits(cost) {
            // No attempt to go faster: no slower one would be admitted either.
            return;
        }
        if self.ban > 0 {
            self.strike(state, now, cost);
        }
        if self.count_refused {
            self.algorithm.record_refused(state, now, cost);
        }
    }

    #[inline]
    pub(super) fn status(&self, state: &State, now: u64, receipt: Receipt) -> LimitStatus {
        let banned = self.ban > 0 && banned_for(state.ban, now) > 0;
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
        // While the gap lasts nothing can be spent, however much the count has left.
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

    /// The same of a state of two words.
    pub(super) fn left(&self, words: Words, now: u64) -> (u64, Option<Duration>, bool) {
        self.left_of(&State::of(words), now, false)
    }

    /// What remains, of a state of two words.
    #[cfg(feature = "metrics")]
    #[inline]
    pub(super) fn remaining_of(&self, words: Words, now: u64) -> u64 {
        self.algorithm.remaining(&State::of(words), now)
    }

    /// How long until this limit alone would admit `cost`.
    #[inline]
    pub(super) fn retry(&self, state: &State, now: u64, cost: u64) -> Option<Duration> {
        self.earliest(state, now, cost, 0).time()
    }

    /// The most entries that a log needs room for, without places booked ahead.
    pub(crate) fn most_entries(&self) -> usize {
        match self.algorithm {
            Algorithm::SlidingLog(sieve) => usize::try_from(sieve.entries()).unwrap_or(usize::MAX),
            _ => 0,
        }
    }

    /// The log of a state, where this limit keeps one.
    pub(crate) fn log_of<'s>(&self, state: &'s mut State) -> Option<&'s mut Log> {
        match self.spec {
            AlgorithmSpec::SlidingLog { .. } => Some(state.log.get_or_insert_default()),
            _ => None,
        }
    }

    /// Whether the state holds more than the shape's two words.
    #[inline]
    pub(crate) const fn has_extra_state(&self) -> bool {
        self.ban > 0
            || self.gap > 0
            || self.carried
            || matches!(self.spec, AlgorithmSpec::SlidingLog { .. })
    }
}
