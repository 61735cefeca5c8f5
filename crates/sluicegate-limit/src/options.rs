//! Options that every algorithm has.

use core::time::Duration;

use crate::error::LimitError;
use crate::exact::EXACT;
use crate::limit::{AlgorithmSpec, Limit, Name, micros, valid};
use crate::state::State;
use crate::when_full::WhenFull;

impl Limit {
    /// Admits no two requests closer together than `gap`, whatever they cost.
    ///
    /// During the gap after a request nothing remains, and clients are told so: `r=0`, and the end of the gap as the
    /// end of the window. After the gap they are told what the count has left.
    ///
    /// # Panics
    ///
    /// If the gap is zero or has a fraction of a microsecond.
    #[track_caller]
    pub const fn min_gap(self, gap: Duration) -> Self {
        valid(self.try_min_gap(gap))
    }

    /// Like [`min_gap`](Self::min_gap), for values from configuration.
    ///
    /// # Errors
    ///
    /// If the gap is zero or has a fraction of a microsecond.
    pub const fn try_min_gap(mut self, gap: Duration) -> Result<Self, LimitError> {
        self.gap = match micros(gap) {
            Ok(gap) => gap,
            Err(_) => return Err(LimitError::new("the gap is not a time in whole microseconds")),
        };
        self.checked()
    }

    /// Warns the client once more than `soft` is spent. The request is still admitted.
    ///
    /// # Panics
    ///
    /// If `soft` is not below the [`capacity`](Self::capacity).
    #[track_caller]
    pub const fn soft(self, soft: u64) -> Self {
        valid(self.try_soft(soft))
    }

    /// Like [`soft`](Self::soft), for values from configuration.
    ///
    /// # Errors
    ///
    /// If `soft` is not below the [`capacity`](Self::capacity).
    pub const fn try_soft(mut self, soft: u64) -> Result<Self, LimitError> {
        self.soft = Some(soft);
        self.checked()
    }

    /// Names the limit, for header fields, metrics and the store; at most 31 bytes of printable ASCII.
    ///
    /// Limits with one name share what is spent on a key, wherever they are used with the same store, if they have the same
    /// algorithm and their numbers are alike, or differ only in what this table names. So a named limit whose numbers change
    /// may keep what was spent:
    ///
    /// | limit | keeps what was spent |
    /// | --- | --- |
    /// | token bucket, leaky bucket | when the burst or the queue changes, and the rate does not |
    /// | sliding window, sliding log | when the count changes, and the period does not |
    /// | concurrency | always: held places stay held |
    /// | fixed window, bucket refilled in steps | never: it begins with nothing spent |
    /// | any limit that is [carried](Self::carried) over, as those of policy files are | whatever changes, except the algorithm, and the period of a log |
    ///
    /// # Panics
    ///
    /// If the name is empty, longer, or not printable ASCII.
    #[track_caller]
    pub const fn named(self, name: &str) -> Self {
        valid(self.try_named(name))
    }

    /// Like [`named`](Self::named), for values from configuration.
    ///
    /// # Errors
    ///
    /// If the name is empty, longer, or not printable ASCII.
    pub const fn try_named(mut self, name: &str) -> Result<Self, LimitError> {
        self.name = match Name::new(name) {
            Ok(name) => name,
            Err(error) => return Err(error),
        };
        self.checked()
    }

    /// Turns the limit into a [soft](Self::soft) limit, and admits `percent` more than it: more of the count of a
    /// window, a log or of concurrency, more of the burst of a token bucket. The surplus is rounded down, and at
    /// least 1.
    ///
    /// This is another way to write two numbers: the limit equals one that is made of them, and prints as such. A
    /// limit without a name is named after the larger number.
    ///
    /// ```
    /// # extern crate sluicegate_limit as sluicegate;
    /// use std::time::Duration;
    /// use sluicegate::Limit;
    ///
    /// let limit = Limit::fixed_window(100, Duration::from_secs(60)).over_percent(10);
    /// assert_eq!(limit, Limit::fixed_window(110, Duration::from_secs(60)).soft(100));
    ///
    /// let bucket: Limit = "100/minute burst 20 over 10%".parse().unwrap();
    /// assert_eq!(bucket, Limit::per_minute(100).burst(22).soft(20));
    /// ```
    ///
    /// # Panics
    ///
    /// If [`try_over_percent`](Self::try_over_percent) returns an error.
    #[track_caller]
    pub const fn over_percent(self, percent: u64) -> Self {
        valid(self.try_over_percent(percent))
    }

    /// Like [`over_percent`](Self::over_percent), for values from configuration.
    ///
    /// # Errors
    ///
    /// If the surplus is zero or too large to stay exact, if the limit is a leaky bucket, or if it already has a soft
    /// limit.
    pub const fn try_over_percent(mut self, percent: u64) -> Result<Self, LimitError> {
        if percent == 0 {
            return Err(LimitError::new("0 percent over the limit is not over it"));
        }
        if self.soft.is_some() {
            return Err(LimitError::new(
                "the limit has a soft limit already, and what is over it would make another",
            ));
        }
        let before = self.capacity();
        let more = before as u128 * percent as u128 / 100;
        let most = before as u128 + if more == 0 { 1 } else { more };
        if most >= (EXACT / 2) as u128 {
            return Err(LimitError::new("the limit plus this percentage is 2^52 or more"));
        }
        match &mut self.spec {
            AlgorithmSpec::TokenBucket { burst } | AlgorithmSpec::SteppedBucket { burst } => {
                *burst = most as u64;
            }
            AlgorithmSpec::LeakyBucket { .. } => {
                return Err(LimitError::new(
                    "a leaky bucket admits nothing over its queue: make the queue longer",
                ));
            }
            AlgorithmSpec::FixedWindow { .. }
            | AlgorithmSpec::SlidingLog { .. }
            | AlgorithmSpec::SlidingWindow
            | AlgorithmSpec::Concurrent => self.count = most as u64,
        }
        self.soft = Some(before);
        self.checked()
    }

    /// Bans a key that exceeds the limit: the key is refused until `ban` after the moment at which it would have
    /// been admitted again (in a fixed window, its end). Attempts during a ban do not prolong it.
    ///
    /// The first refusal begins it, unless [`ban_after`](Self::ban_after) says otherwise.
    ///
    /// # Panics
    ///
    /// If the time is zero or has a fraction of a microsecond.
    #[track_caller]
    pub const fn ban(self, ban: Duration) -> Self {
        valid(self.try_ban(ban))
    }

    /// Like [`ban`](Self::ban), for values from configuration.
    ///
    /// # Errors
    ///
    /// If the time is zero or has a fraction of a microsecond.
    pub const fn try_ban(mut self, ban: Duration) -> Result<Self, LimitError> {
        self.ban = match micros(ban) {
            Ok(ban) => ban,
            Err(_) => return Err(LimitError::new("the ban is not a time in whole microseconds")),
        };
        self.checked()
    }

    /// Begins the [ban](Self::ban), which has to be set before, after this many `refusals` in a window of time that
    /// begins with the first of them. When the window is over, or a ban has begun, the next refusal is the first
    /// again. Refusals during a ban are not counted. After 1 refusal means at once, which is the default.
    ///
    /// Refusals are then written to the store, so each refusal costs as much as an admission.
    ///
    /// ```
    /// # extern crate sluicegate_limit as sluicegate;
    /// use std::time::Duration;
    /// use sluicegate::Limit;
    ///
    /// let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    /// let limit = Limit::per_minute(5).ban(minutes(10)).ban_after(3, minutes(1));
    /// assert_eq!(limit.to_string(), "5/minute ban 10 minutes after 3 in 1 minute");
    ///
    /// let mut state = limit.fresh();
    /// assert!(limit.take(&mut state, 0, 5).is_admitted());
    /// let banned = [(); 3].map(|()| limit.take(&mut state, 0, 1).is_banned());
    /// assert_eq!(banned, [false, false, true]);
    /// ```
    ///
    /// # Panics
    ///
    /// If [`try_ban_after`](Self::try_ban_after) returns an error.
    #[track_caller]
    pub const fn ban_after(self, refusals: u64, within: Duration) -> Self {
        valid(self.try_ban_after(refusals, within))
    }

    /// Like [`ban_after`](Self::ban_after), for values from configuration.
    ///
    /// # Errors
    ///
    /// If there is no ban, if the number of refusals is 0, or 2^52 or more, or if the time is zero or has a fraction
    /// of a microsecond.
    pub const fn try_ban_after(
        mut self,
        refusals: u64,
        within: Duration,
    ) -> Result<Self, LimitError> {
        if self.ban == 0 {
            return Err(LimitError::new(
                "refusals are counted towards a ban: say first how long it is",
            ));
        }
        if refusals == 0 {
            return Err(LimitError::new(
                "the ban begins after 0 refusals: nobody would be admitted",
            ));
        }
        if refusals >= EXACT / 2 {
            return Err(LimitError::new(
                "the ban begins after 2^52 refusals or more: too many to count",
            ));
        }
        let Ok(within) = micros(within) else {
            return Err(LimitError::new(
                "the time in which refusals count is not one in whole microseconds",
            ));
        };
        (self.after, self.within) = if refusals == 1 { (0, 0) } else { (refusals, within) };
        self.checked()
    }

    /// Carries over what was spent when the limit's numbers change (a rate, a burst, a count, a period). They change
    /// when a file is reloaded, a customer moves to another tier, or other hours begin.
    ///
    /// The state of a key then belongs to the name and the algorithm of the limit only. Each set of numbers that
    /// decides about the key has an account in the state. What one of them admits is charged to all, as far as each
    /// has room. A request is admitted if its own numbers have room. So:
    ///
    /// - requests admitted by some numbers never exceed these numbers, however often other numbers decide in between;
    /// - all admissions together never exceed the most generous numbers;
    /// - a refusal does not change what is spent;
    /// - a client waits no longer than the deciding numbers require, whatever was spent under other numbers.
    ///
    /// A new account takes over what is spent at that moment, token for token, up to its capacity. Once all accounts
    /// have recovered, the key is as good as new. Logs keep their stamps if period and resolution stay the same, and
    /// held places stay held: these have no accounts.
    ///
    /// A row has room for eight accounts. If nine sets of numbers take turns on one key before they recover, the one
    /// that recovers first makes room. Until it would have recovered, new accounts begin with at least what was spent
    /// in it and all that was spent since, of which nothing has come back: too strict, never too generous.
    ///
    /// ```
    /// # extern crate sluicegate_limit as sluicegate;
    /// use std::time::Duration;
    /// use sluicegate::Limit;
    ///
    /// let paid = Limit::per_minute(600).named("plan").carried();
    /// let free = Limit::per_minute(10).named("plan").carried();
    ///
    /// let mut state = paid.fresh();
    /// assert!(paid.take(&mut state, 0, 600).is_admitted());
    /// // More is spent than ten a minute allow: the next comes in when one of the ten is there again.
    /// let refused = free.take(&mut state, 0, 1);
    /// assert_eq!(refused.retry_after(), Some(Duration::from_secs(6)));
    /// // That changes nothing for six hundred a minute.
    /// assert_eq!(paid.take(&mut state, 1_000_000, 10).remaining(), Some(0));
    /// ```
    ///
    /// A charge is given back to every account if all of them took all of it. An account that began after the charge,
    /// or that has since been too full for a charge of other numbers, gets nothing back, because it is unknown how
    /// much of the charge it took.
    ///
    /// The limit needs a [name](Self::named), given before or in the same text.
    ///
    /// ```
    /// # extern crate sluicegate_limit as sluicegate;
    /// use sluicegate::Limit;
    ///
    /// let free = Limit::per_minute(10).named("plan").carried();
    /// let paid = Limit::per_minute(600).named("plan").carried();
    ///
    /// let mut state = free.fresh();
    /// assert!(free.take(&mut state, 0, 4).is_admitted());
    /// assert_eq!(paid.take(&mut state, 0, 1).remaining(), Some(595));
    /// assert_eq!(free.take(&mut state, 0, 1).remaining(), Some(4));
    /// ```
    ///
    /// # Panics
    ///
    /// If the limit has no name.
    #[track_caller]
    pub const fn carried(self) -> Self {
        valid(self.try_carried())
    }

    /// Like [`carried`](Self::carried), for values from configuration.
    ///
    /// # Errors
    ///
    /// If the limit has no name.
    pub const fn try_carried(mut self) -> Result<Self, LimitError> {
        self.carried = true;
        self.checked()
    }

    /// Whether what was spent is [carried](Self::carried) over.
    pub const fn is_carried(&self) -> bool {
        self.carried
    }

    /// Tries the limit on real traffic: it never refuses a request or makes it wait. Its
    /// [`LimitStatus`](crate::LimitStatus::shadowed) tells the operator, and not clients, what it would have done.
    ///
    /// It is charged with what is admitted and what it would let in at once by itself; the other limits of
    /// the charge are decided as if it were not there. What it records of refusals (strikes, bans, refused
    /// attempts that count), it records of those that it would have refused. A request whose key or cost is missing is
    /// not charged to it, so a trial by a key that the server does not provide counts nothing.
    ///
    /// ```
    /// # extern crate sluicegate_limit as sluicegate;
    /// use sluicegate::Limit;
    ///
    /// let limit = Limit::per_minute(1).shadow();
    /// let mut state = limit.fresh();
    /// let told = [(); 2].map(|()| limit.take(&mut state, 0, 1));
    /// assert!(told.iter().all(|decision| decision.is_admitted()));
    /// let shadowed = told.map(|decision| decision.statuses().all(|status| status.shadowed));
    /// assert_eq!(shadowed, [false, true]);
    /// ```
    #[track_caller]
    pub const fn shadow(self) -> Self {
        valid(self.try_shadow())
    }

    /// Like [`shadow`](Self::shadow), for values from configuration.
    ///
    /// # Errors
    ///
    /// None at present: every limit can be a shadow.
    pub const fn try_shadow(mut self) -> Result<Self, LimitError> {
        self.shadow = true;
        self.checked()
    }

    /// Whether the limit is a [shadow](Self::shadow).
    #[inline]
    pub const fn is_shadow(&self) -> bool {
        self.shadow
    }

    /// Says what happens to a new key when the store has no room for it.
    ///
    /// Unless it is said, that depends on what the limit is for. Logs, bans, limits that
    /// [count refused attempts](Self::count_refused), concurrency, and limits that are settled by the response
    /// (`count_if`) count new keys [together](WhenFull::CountTogether). So does every other limit that takes
    /// more than ten seconds to recover when all of it is spent. The rest, such as `10/second`, recovers so
    /// fast that a flood can hardly fill a table with it, and [admits](WhenFull::Admit) new keys.
    #[must_use]
    pub const fn when_full(mut self, answer: WhenFull) -> Self {
        self.when_full = Some(answer);
        self
    }

    /// What happens to a new key when the store has no room for it: what [`when_full`](Self::when_full) says,
    /// else what the limit's kind and numbers suggest.
    ///
    /// A [shadow](Self::shadow) always [admits](WhenFull::Admit). A rule that settles the limit by the response counts
    /// [together](WhenFull::CountTogether) where nothing was said.
    pub fn answer_when_full(&self) -> WhenFull {
        match self.when_full {
            // On trial it refuses nobody, and is not counted where there is no room.
            _ if self.shadow => WhenFull::Admit,
            Some(answer) => answer,
            None if self.recovers_soon() => WhenFull::Admit,
            None => WhenFull::CountTogether,
        }
    }

    /// Whether [`when_full`](Self::when_full) was said.
    pub const fn says_when_full(&self) -> bool {
        self.when_full.is_some()
    }

    fn recovers_soon(&self) -> bool {
        if self.ban > 0
            || self.count_refused
            || matches!(self.spec, AlgorithmSpec::SlidingLog { .. })
        {
            return false;
        }
        // The longest recovery there is: from everything spent at once.
        let mut spent = State::default();
        self.algorithm.spend(&mut spent, 0, self.capacity(), 0);
        let recovery = self.algorithm.fresh_in(&spent, 0);
        recovery.is_some_and(|recovery| recovery.max(self.gap) <= SOON)
    }
}

/// Limits that recover in this many microseconds, however much was spent, admit what there is no room for.
///
/// To fill the default table with rows that last ten seconds, 13,000 new keys a second have to spend all that
/// the limit gives them. A client that can send that does harm without passing a limit. Of rows that last
/// an hour, 40 new keys a second fill it.
const SOON: u64 = 10_000_000;
