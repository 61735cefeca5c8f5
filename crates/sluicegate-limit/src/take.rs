//! Deciding by one limit, for a key whose state the caller holds.
//!
//! Every algorithm answers one question: when may this cost come in, not before a given moment
//! ([`earliest`](Limit::earliest))? Refusals, `retry_after`, the wait of a queue, bans, gaps and the agreement of
//! several limits on one moment are all made of the answer.
//!
//! A queue is not a list of waiters. A request that may wait books a place ahead in the state itself. Order
//! is the order of arrival at the store, the wait is known at once, and a request that cannot be served in
//! time is refused instead of waiting in vain. Every algorithm books ahead, except concurrency, which
//! cannot know.
//!
//! Giving back asks who waits behind. Places behind a booked one were computed with it. So only the last in
//! line can give its place back to a bucket or a fixed window. A sliding log can always take a stamp out.
//!
//! Giving back lifts a ban made in error. With accounting by response, charges that will be given back can
//! fill a limit, and the next attempt is banned. When such charges, made before the ban, are given back,
//! and as much of them as has been refused since, the ban ends too.
//!
//! With `ban_after`, a refusal writes to the row: since when refusals count, and how many there were, in a
//! fixed window that begins with the first. Giving back takes refusals off this record as it lifts a ban:
//! once as much is given back as was refused since, of what was charged before the first refusal.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use crate::algorithm::Algorithm;
use crate::algorithm::sliding_log::MOST_ENTRIES;
use crate::algorithm::token_bucket::TokenBucket;
use crate::decide::{Attempt, Keys, decide, decide_each, preview};
use crate::decision::Decision;
use crate::exact::{Earliest, bounded, time_left};
use crate::inline_vec::InlineVec;
use crate::limit::{AlgorithmSpec, Limit};
use crate::state::{MOST_ACCOUNTS, NO_PARAMETERS, OtherAccounts, Receipt, State};

impl Limit {
    /// The state of a key that has spent nothing.
    ///
    /// For a sliding log this makes room for all the entries that it can ever hold, up to 65,536 of
    /// them (1 MiB), so that [`take`](Self::take) never allocates.
    pub fn fresh(&self) -> State {
        let mut state = State::default();
        if self.carried && self.algorithm.parameters() != NO_PARAMETERS {
            // Whatever other numbers come, there is room for their accounts.
            let accounts = Vec::with_capacity(MOST_ACCOUNTS);
            state.others = Some(Box::new(OtherAccounts { accounts, ..OtherAccounts::default() }));
        }
        if let Algorithm::SlidingLog(sieve) = self.algorithm {
            let log = state.log.get_or_insert_default();
            log.reserve_exact(sieve.entries().min(MOST_ENTRIES as u64) as usize);
        }
        state
    }

    /// Spends `cost` at `now`, in microseconds since the Unix epoch, if the limit admits it.
    ///
    /// This is the bare arithmetic, for a key whose state you hold; a store holds
    /// the states of many. The same step decides in both.
    ///
    /// ```
    /// # extern crate sluicegate_limit as sluicegate;
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
        self.decide_alone(&mut [Attempt { limit: self, state, cost }], now, None)
    }

    /// Like [`take`](Self::take), but books a place ahead if one is free within `patience`. The decision then says
    /// how long to [`wait`](Decision::wait), which is never longer than the patience. The
    /// [`queue`](Self::queue) of a leaky bucket bounds how many requests wait, however patient they are.
    pub fn take_within(
        &self,
        state: &mut State,
        now: u64,
        cost: u64,
        patience: Duration,
    ) -> Decision {
        self.decide_alone(&mut [Attempt { limit: self, state, cost }], now, Some(patience))
    }

    /// What [`take`](Self::take) would answer, without spending.
    pub fn peek(&self, state: &State, now: u64, cost: u64) -> Decision {
        let state = &mut state.clone();
        let attempts = &mut [Attempt { limit: self, state, cost }];
        preview(attempts, now, None, Keys::One).decision([(self, cost)])
    }

    /// Changes a charge of `cost`, whose `receipt` is in the decision's
    /// [`LimitStatus`](crate::LimitStatus::receipt), into one of `spent`: gives back what was too much, or
    /// charges more, beyond the limit if need be.
    ///
    /// A bucket takes back what of this charge has not drained meanwhile, and is never better than
    /// fresh; a window takes back only what was spent in that window. Where several charges that
    /// overlap in time are given back to a bucket, together they can return as much as drained while
    /// they were under way.
    ///
    /// While more is charged than the limit admits, by booked places or by charges beyond the limit,
    /// earlier charges may get nothing back: the places were booked on their account.
    ///
    /// Giving back lifts a ban that began while the charge counted, once as much is given back as has
    /// been refused since; and refusals that are counted towards a ban likewise.
    pub fn settle(&self, state: &mut State, now: u64, receipt: &Receipt, cost: u64, spent: u64) {
        let now = bounded(now);
        // A shadow that was not charged, or a key that there was no room for, has nothing to settle.
        if receipt.void {
            return;
        }
        // More is owed by the numbers that hold now. Giving back needs the account that was charged: where it is gone,
        // there is nothing to give back to.
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
        // Held places are also given back in the ordinary way. That undoes nothing.
        if self.is_held() {
            return;
        }
        // A request that cost something has happened, and the gap after it stays.
        if spent == 0 && self.gap > 0 {
            TokenBucket::gap(self.gap).give(&mut state.gap, receipt.gap, now, 1);
        }
        self.pardon(state, receipt, now, cost - spent);
    }

    /// Until `state` equals a fresh one and may be forgotten, by the numbers that have written it; `None`:
    /// not before it is given back.
    pub fn fresh_in(&self, state: &State, now: u64) -> Option<Duration> {
        self.fresh_in_micros(state, now).map(Duration::from_micros)
    }

    fn decide_alone(
        &self,
        attempts: &mut [Attempt<'_>],
        now: u64,
        patience: Option<Duration>,
    ) -> Decision {
        if self.plain {
            let outcome = decide(attempts, now, patience, Keys::One);
            return outcome.decision(attempts.iter().map(|attempt| (attempt.limit, attempt.cost)));
        }
        let mut statuses = InlineVec::new();
        let verdict = decide_each(attempts, now, patience, Keys::One, |attempt, fact| {
            statuses.push(fact.status(attempt.limit, attempt.cost));
        });
        Decision::new(verdict, statuses)
    }
}

/// When a request may come in.
impl Limit {
    /// The earliest moment, `from` or more from `now`, at which a request may come in.
    #[inline]
    pub(crate) fn earliest(&self, state: &State, now: u64, cost: u64, from: u64) -> Earliest {
        let mut from = from;
        if self.ban > 0 {
            // Ban, gap and algorithm are asked one after the other, each from the moment of the one before. None of
            // them can make the moment earlier again, so one pass is enough.
            from = from.max(time_left(state.ban, now));
        }
        if self.gap > 0 {
            if let Earliest::At(at) = TokenBucket::gap(self.gap).earliest(state.gap, now, 1, from) {
                from = at;
            }
        }
        self.algorithm.earliest(state, now, cost, from)
    }

    /// How long a request that comes in now waits in the limit's own queue, which may have length 0. `None` if the
    /// limit has no queue of its own.
    #[inline]
    pub(crate) fn queued(&self, state: &State, now: u64, cost: u64) -> Option<u64> {
        match (self.spec, self.algorithm) {
            (AlgorithmSpec::LeakyBucket { .. }, Algorithm::TokenBucket(bucket)) => {
                Some(bucket.leave(state.words, now, cost))
            }
            _ => None,
        }
    }

    /// Whether a request with this patience can never be admitted: it costs more than the limit holds, or it would
    /// have to stay in the limit's own queue for longer even if the queue were empty.
    pub(crate) fn never_admits(&self, cost: u64, patience: Option<u64>) -> bool {
        let too_long = patience.is_some_and(|patience| self.shortest_queue(cost) > patience);
        too_long || self.never_fits(cost)
    }

    /// How long a request waits in the limit's own queue if the queue is empty.
    pub(crate) fn shortest_queue(&self, cost: u64) -> u64 {
        match (self.spec, self.algorithm) {
            (AlgorithmSpec::LeakyBucket { .. }, Algorithm::TokenBucket(bucket)) => {
                bucket.shortest_leave(cost)
            }
            _ => 0,
        }
    }

    /// Microseconds until the window of a place `wait` ahead begins, if the algorithm has windows.
    pub(crate) fn window_begins(&self, state: &State, now: u64, wait: u64) -> Option<u64> {
        match self.algorithm {
            Algorithm::FixedWindow(fixed) => Some(fixed.window_begins(state.words, now, wait)),
            Algorithm::SlidingWindow(sliding) => Some(sliding.window_begins(now, wait)),
            Algorithm::TokenBucket(_)
            | Algorithm::SteppedBucket(_)
            | Algorithm::SlidingLog(_)
            | Algorithm::Concurrency(_) => None,
        }
    }

    pub(crate) fn books(&self, state: &State, now: u64, cost: u64, wait: u64, keys: Keys) -> bool {
        // A place that this limit's own wait explains is the ordinary case. `another` means that some other limit asks
        // for a later one, and then this one may be shut for clients who need only it.
        let own = self.queued(state, now, cost).unwrap_or(0);
        let on_its_own =
            matches!(self.earliest(state, now, cost, 0), Earliest::At(at) if wait <= own.max(at));
        let another = keys == Keys::Several && !on_its_own;
        // The gap after the place is a bucket too, and idles as one.
        let shuts_gap =
            another && self.gap > 0 && !TokenBucket::gap(self.gap).idles_for(state.gap, now, wait);
        !shuts_gap && self.algorithm.books(state, now, cost, wait, another)
    }

    /// How long until this limit alone would admit `cost`.
    #[inline]
    pub(crate) fn retry(&self, state: &State, now: u64, cost: u64) -> Option<Duration> {
        match self.earliest(state, now, cost, 0) {
            Earliest::At(delay) => Some(Duration::from_micros(delay)),
            Earliest::Unknown(_) | Earliest::Never => None,
        }
    }
}

/// What is written.
impl Limit {
    /// Goes on by the account of the limit's own numbers, follows a clock that stepped back, and drops what is
    /// remembered in vain.
    #[inline]
    pub(crate) fn tidy(&self, state: &mut State, now: u64) {
        if self.carried {
            self.meet(state, now);
        }
        self.follow_all(state, now);
    }

    #[inline]
    pub(crate) fn follow_all(&self, state: &mut State, now: u64) {
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
    pub(crate) fn has_gap(&self) -> bool {
        self.gap > 0 || self.carried
    }

    #[inline]
    pub(crate) fn spend(&self, state: &mut State, now: u64, cost: u64, wait: u64) -> Receipt {
        let words = self.algorithm.spend(state, now, cost, wait);
        if self.gap > 0 {
            TokenBucket::gap(self.gap).spend(&mut state.gap, now, 1, wait);
        }
        // Remembered with the charge: one that was made during a ban cannot have caused it, and giving it back must not
        // lift it. A patient request may be charged during a ban, for a moment after it.
        let banned = time_left(state.ban, now) > 0 || self.struck_for(state, now) > 0;
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
            part: 0,
        }
    }

    /// Writes down that this limit refused, where that is recorded.
    pub(crate) fn refuse(&self, state: &mut State, now: u64, cost: u64) {
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

    /// Counts a refusal, which may begin a ban.
    pub(crate) fn strike(&self, state: &mut State, now: u64, cost: u64) {
        // Attempts during a ban do not make it longer, or a client that retries by a timer would never come back. They
        // are counted, because a pardon has to outweigh them.
        if time_left(state.ban, now) > 0 {
            state.refused = state.refused.saturating_add(cost);
            return;
        }
        let [since, count] = if self.struck_for(state, now) > 0 {
            state.refused = state.refused.saturating_add(cost);
            state.strikes
        } else {
            state.refused = cost;
            [now, 0]
        };
        if count + 1 < self.after {
            state.strikes = [since, count + 1];
            return;
        }
        // The ban is counted from when the limit itself would admit. A short one would otherwise be over before that,
        // and change nothing.
        let interval = match self.earliest(state, now, cost, 0) {
            Earliest::At(delay) => delay,
            Earliest::Unknown(_) | Earliest::Never => 0,
        };
        state.strikes = [0; 2];
        state.ban = [now, bounded(interval + self.ban)];
    }

    /// For how much longer the counted refusals count; 0 if there are none.
    pub(crate) fn struck_for(&self, state: &State, now: u64) -> u64 {
        let [since, count] = state.strikes;
        if self.after > 0 && count > 0 { time_left([since, self.within], now) } else { 0 }
    }

    /// Lifts the consequences of a charge that is given back: a ban that began while the charge counted, and refusals
    /// counted towards a ban, once as much is given back as was refused since.
    pub(crate) fn pardon(&self, state: &mut State, receipt: &Receipt, now: u64, back: u64) {
        let is_banned = time_left(state.ban, now) > 0;
        let since = if is_banned { state.ban[0] } else { state.strikes[0] };
        let is_on_record = is_banned || self.struck_for(state, now) > 0;
        // The charge must have counted when the refusals began: one that had already left the window then kept nobody
        // out.
        if is_on_record && !receipt.banned && self.algorithm.counted(receipt, since) {
            // Without this charge, all refused requests would have been admitted.
            state.refused = state.refused.saturating_sub(back);
            if state.refused == 0 {
                (state.ban, state.strikes) = ([0; 2], [0; 2]);
            }
        }
    }
}

/// When a state equals a fresh one.
impl Limit {
    pub(crate) fn fresh_in_micros(&self, state: &State, now: u64) -> Option<u64> {
        let now = bounded(now);
        let recovery = self.accounts_fresh_in(state, now)?;
        Some(self.or_kept_out(recovery, state, now))
    }

    /// Whether a ban lasts.
    pub(crate) fn is_banned(&self, state: &State, now: u64) -> bool {
        self.ban > 0 && time_left(state.ban, now) > 0
    }

    /// Until the account of this limit's numbers has recovered.
    pub(crate) fn own_fresh_in(&self, state: &State, now: u64) -> Option<Duration> {
        let recovery = self.algorithm.fresh_in(state, now)?;
        Some(Duration::from_micros(self.or_kept_out(recovery, state, now)))
    }

    /// The longer of that time and what a gap or a ban still lasts.
    fn or_kept_out(&self, recovery: u64, state: &State, now: u64) -> u64 {
        let gap =
            if self.has_gap() { TokenBucket::gap(self.gap).fresh_in(state.gap, now) } else { 0 };
        let banned = time_left(state.ban, now).max(self.struck_for(state, now));
        recovery.max(gap).max(banned)
    }
}
