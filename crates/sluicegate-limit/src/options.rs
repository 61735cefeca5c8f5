//! The options of a limit beyond its rate.

use core::fmt;
use core::time::Duration;

use crate::algorithm::sliding_log::MOST_ENTRIES;
use crate::error::LimitError;
use crate::exact::EXACT;
use crate::internal::LimitInternals as _;
use crate::limit::{AlgorithmSpec, Limit, Name, micros, valid};
use crate::state::State;

impl Limit {
    /// At most `burst` at once, instead of the count. Token buckets only.
    ///
    /// # Panics
    ///
    /// If [`try_burst`](Self::try_burst) returns an error.
    #[track_caller]
    pub const fn burst(self, burst: u64) -> Self {
        valid(self.try_burst(burst))
    }

    /// Like [`burst`](Self::burst), for values from configuration.
    ///
    /// # Errors
    ///
    /// If the burst is zero or too large to stay exact, or the limit is not a token bucket.
    pub const fn try_burst(mut self, most: u64) -> Result<Self, LimitError> {
        match &mut self.spec {
            AlgorithmSpec::TokenBucket { burst } | AlgorithmSpec::SteppedBucket { burst } => {
                *burst = most;
            }
            _ => return Err(LimitError::new("a burst belongs to a token bucket")),
        }
        self.checked()
    }

    /// Refills the token bucket in steps, `amount` tokens in every `every`, counted from the first token spent. The
    /// rate that was set before becomes its capacity.
    ///
    /// ```
    /// # extern crate sluicegate_limit as sluicegate;
    /// use std::time::Duration;
    /// use sluicegate::Limit;
    ///
    /// // Holds 60; ten drop in every ten seconds.
    /// let limit = Limit::per_minute(60).refill(10, Duration::from_secs(10));
    /// ```
    ///
    /// # Panics
    ///
    /// If [`try_refill`](Self::try_refill) returns an error.
    #[track_caller]
    pub const fn refill(self, amount: u64, every: Duration) -> Self {
        valid(self.try_refill(amount, every))
    }

    /// Like [`refill`](Self::refill), for values from configuration.
    ///
    /// # Errors
    ///
    /// If the amount or the time is zero or too large, or the limit is not a token bucket.
    pub const fn try_refill(mut self, amount: u64, every: Duration) -> Result<Self, LimitError> {
        self.spec = match self.spec {
            AlgorithmSpec::TokenBucket { burst } | AlgorithmSpec::SteppedBucket { burst } => {
                AlgorithmSpec::SteppedBucket { burst }
            }
            _ => return Err(LimitError::new("a refill in steps belongs to a token bucket")),
        };
        self.count = amount;
        self.period = match micros(every) {
            Ok(every) => every,
            Err(reason) => return Err(LimitError::new(reason)),
        };
        self.checked()
    }

    /// Lets `len` requests wait in a leaky bucket. The next one is refused.
    ///
    /// # Panics
    ///
    /// If [`try_queue`](Self::try_queue) returns an error.
    #[track_caller]
    pub const fn queue(self, len: u64) -> Self {
        valid(self.try_queue(len))
    }

    /// Like [`queue`](Self::queue), for values from configuration.
    ///
    /// # Errors
    ///
    /// If the queue is too long to stay exact or shorter than `delay_after`, or the limit is not a leaky bucket.
    pub const fn try_queue(mut self, len: u64) -> Result<Self, LimitError> {
        match &mut self.spec {
            AlgorithmSpec::LeakyBucket { queue, .. } => *queue = len,
            _ => return Err(LimitError::new("a queue belongs to a leaky bucket")),
        }
        self.checked()
    }

    /// Lets the first `requests` of a leaky bucket's queue go without delay: nginx's `delay=`. As many
    /// as the queue holds is nginx's `nodelay`.
    ///
    /// # Panics
    ///
    /// If [`try_delay_after`](Self::try_delay_after) returns an error.
    #[track_caller]
    pub const fn delay_after(self, requests: u64) -> Self {
        valid(self.try_delay_after(requests))
    }

    /// Like [`delay_after`](Self::delay_after), for values from configuration.
    ///
    /// # Errors
    ///
    /// If the queue is shorter, or the limit is not a leaky bucket.
    pub const fn try_delay_after(mut self, requests: u64) -> Result<Self, LimitError> {
        match &mut self.spec {
            AlgorithmSpec::LeakyBucket { delay_after, .. } => *delay_after = requests,
            _ => return Err(LimitError::new("a delay belongs to a leaky bucket")),
        }
        self.checked()
    }

    /// Begins a fixed window with the first request in it, instead of at a multiple of the period.
    ///
    /// # Panics
    ///
    /// If the limit is not a fixed window.
    #[track_caller]
    pub const fn from_first(self) -> Self {
        valid(self.try_from_first())
    }

    /// Like [`from_first`](Self::from_first), for values from configuration.
    ///
    /// # Errors
    ///
    /// If the limit is not a fixed window.
    pub const fn try_from_first(mut self) -> Result<Self, LimitError> {
        match self.spec {
            AlgorithmSpec::FixedWindow { .. } => {
                self.spec = AlgorithmSpec::FixedWindow { from_first: true }
            }
            _ => return Err(LimitError::new("only a fixed window begins from first use")),
        }
        self.checked()
    }

    /// Merges the stamps of a sliding log that fall into the same `resolution`, so that a key holds
    /// at most `period / resolution + 2` of them. Stamps are rounded up: the log is never more
    /// generous than an exact one, and a place can be free up to one resolution later.
    ///
    /// # Panics
    ///
    /// If [`try_resolution`](Self::try_resolution) returns an error.
    #[track_caller]
    pub const fn resolution(self, resolution: Duration) -> Self {
        valid(self.try_resolution(resolution))
    }

    /// Like [`resolution`](Self::resolution), for values from configuration.
    ///
    /// # Errors
    ///
    /// If the resolution does not divide the period, or the limit is not a sliding log.
    pub const fn try_resolution(mut self, step: Duration) -> Result<Self, LimitError> {
        match (&mut self.spec, micros(step)) {
            (AlgorithmSpec::SlidingLog { resolution }, Ok(step)) => *resolution = step,
            (AlgorithmSpec::SlidingLog { .. }, Err(_)) => {
                return Err(LimitError::new("the resolution is not a time in whole microseconds"));
            }
            _ => return Err(LimitError::new("a resolution belongs to a sliding log")),
        }
        self.checked()
    }

    /// Checks whether a log of this length can be kept: at most 65,536 stamps for each key, which take 1 MiB. Stores
    /// check this before a limit is used. Limits that are not logs always pass.
    ///
    /// ```
    /// # extern crate sluicegate_limit as sluicegate;
    /// use std::time::Duration;
    /// use sluicegate::Limit;
    ///
    /// let day = Duration::from_secs(86_400);
    /// let log = Limit::sliding_log(3_000_000, day);
    /// assert!(log.check_length().is_err());
    /// assert!(log.resolution(Duration::from_secs(2)).check_length().is_ok());
    /// ```
    ///
    /// # Errors
    ///
    /// If the log is longer. Merge its stamps with a [`resolution`](Self::resolution), or use a
    /// [`sliding_window`](Self::sliding_window).
    pub fn check_length(&self) -> Result<(), LimitError> {
        if self.most_entries() <= MOST_ENTRIES {
            return Ok(());
        }
        Err(LimitError::new(
            "the log would hold more than 65536 stamps for each key: give it a `resolution`, so that the \
             period holds fewer, or use a sliding window",
        ))
    }

    /// Counts refused attempts too, so a client that keeps retrying stays out until it stops.
    /// Sliding windows and sliding logs only: a fixed window is empty at its end, whatever it refused.
    ///
    /// # Panics
    ///
    /// If the limit is not a sliding window or a sliding log.
    #[track_caller]
    pub const fn count_refused(self) -> Self {
        valid(self.try_count_refused())
    }

    /// Like [`count_refused`](Self::count_refused), for values from configuration.
    ///
    /// # Errors
    ///
    /// If the limit is not a sliding window or a sliding log.
    pub const fn try_count_refused(mut self) -> Result<Self, LimitError> {
        self.count_refused = true;
        self.checked()
    }

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
    /// Limits with one name and algorithm share what is spent on a key, wherever they are used with the same store.
    ///
    /// When the numbers of a named limit change, some of them keep what was spent:
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
            _ => self.count = most as u64,
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
    /// attempts that count), it records of those that it would have refused.
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
    /// A [shadow](Self::shadow) always [admits](WhenFull::Admit). A rule that settles the limit by the response counts [together](WhenFull::CountTogether) where nothing
    /// was said.
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

/// What a bounded store does with a key that is new to it when every row that could hold it is in use.
///
/// A store never forgets a key that is being limited, so a flood of new keys can fill it. This setting decides about
/// the next new key. Keys that have a row are not affected.
///
/// ```
/// # mod sluicegate { pub use sluicegate_limit::Limit; pub mod limit { pub use sluicegate_limit::*; } }
/// use sluicegate::Limit;
/// use sluicegate::limit::WhenFull;
///
/// let login = Limit::per_hour(5);
/// assert_eq!(login.answer_when_full(), WhenFull::CountTogether);
///
/// let search = Limit::per_second(10);
/// assert_eq!(search.answer_when_full(), WhenFull::Admit);
/// assert_eq!(
///     search.when_full(WhenFull::Refuse).to_string(),
///     "10/second when-full refuse"
/// );
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WhenFull {
    /// The limit is not counted for the request, and has no part in the decision; the request's other
    /// limits are counted. Where none of them can be counted, the store answers
    /// `StoreError::full`, and a layer does what it does when its store
    /// fails: it admits the request, unless told otherwise.
    Admit,
    /// The request is refused: the store answers an error that
    /// must refuse (`StoreError::must_refuse`) and charges nothing, and a layer answers 503, whatever
    /// it does when its store fails. A request that another limit refuses is refused by that limit instead.
    Refuse,
    /// New keys are counted together: all that there is no room for share 256 rows of the limit, chosen by a
    /// hash under the store's secret seed. Each of these rows admits what the limit admits to one key, so a
    /// stranger may be refused on account of other strangers, and nobody is admitted more than the limit.
    ///
    /// When there is room again, a key gets its own row, which begins with what the shared row has counted. A key of
    /// a [concurrency](crate::Limit::concurrent) limit stays with the shared row until nothing is held there.
    CountTogether,
}

impl WhenFull {
    /// Its word in the text form of a limit.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Admit => "admit",
            Self::Refuse => "refuse",
            Self::CountTogether => "together",
        }
    }

    /// The answer with this word in a text.
    pub(crate) fn of_word(word: &str) -> Option<Self> {
        [Self::Admit, Self::Refuse, Self::CountTogether].into_iter().find(|it| it.word() == word)
    }
}

/// As the text form of a limit says it: `admit`, `refuse` or `together`.
impl fmt::Display for WhenFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn limits_that_recover_in_seconds_admit_and_all_others_count_together() {
        let admit = [
            Limit::per_second(10),
            Limit::per_second(10).burst(100),
            Limit::per(5, 10 * SECOND),
            Limit::per_second(10).refill(2, SECOND),
            Limit::fixed_window(5, 10 * SECOND),
            Limit::sliding_window(5, 5 * SECOND),
            Limit::leaky_bucket(10, SECOND).queue(20),
            Limit::per_second(10).min_gap(SECOND / 10),
        ];
        for limit in admit {
            assert_eq!(limit.answer_when_full(), WhenFull::Admit, "{limit}");
        }
        let together = [
            Limit::per_minute(5),
            Limit::per_second(10).burst(101),
            Limit::fixed_window(5, 11 * SECOND),
            Limit::sliding_window(5, 6 * SECOND),
            Limit::leaky_bucket(1, SECOND).queue(20),
            Limit::per_second(10).min_gap(11 * SECOND),
            Limit::sliding_log(5, SECOND),
            Limit::per_second(10).ban(SECOND),
            Limit::per_second(10).ban(SECOND).ban_after(3, SECOND),
            Limit::sliding_window(5, SECOND).count_refused(),
            Limit::concurrent(5),
        ];
        for limit in together {
            assert_eq!(limit.answer_when_full(), WhenFull::CountTogether, "{limit}");
        }
    }

    #[test]
    fn what_is_said_holds_and_changes_no_row() {
        for answer in [WhenFull::Admit, WhenFull::Refuse, WhenFull::CountTogether] {
            let limit = Limit::per_hour(5).when_full(answer);
            assert_eq!(limit.answer_when_full(), answer);
            assert_eq!(limit.id(), Limit::per_hour(5).id());
            assert_ne!(limit, Limit::per_hour(5));
            assert_eq!(limit.to_string().parse(), Ok(limit));
        }
        let error = "5/hour when-full never".parse::<Limit>().unwrap_err().to_string();
        assert!(error.contains("admit, refuse or together"), "{error}");
    }
}
