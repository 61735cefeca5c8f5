//! What a limit is, and what is checked when one is made.

use core::fmt;
use core::time::Duration;

use crate::algorithm::Algorithm;
use crate::algorithm::concurrency::Concurrency;
use crate::algorithm::fixed_window::FixedWindow;
use crate::algorithm::sliding_log::SlidingLog;
use crate::algorithm::sliding_window::SlidingWindow;
use crate::algorithm::stepped_bucket::SteppedBucket;
use crate::algorithm::token_bucket::TokenBucket;
use crate::error::LimitError;
use crate::exact::EXACT;
use crate::when_full::WhenFull;

/// How much may be spent in how much time, by which algorithm.
///
/// A limit is a small plain value: it can be a constant, be compared, printed, and parsed from text.
/// It holds no counts; those live in a store, one [`State`](crate::State) for each key.
///
/// | constructor | what it does |
/// | --- | --- |
/// | [`per_second`](Self::per_second), [`per_minute`](Self::per_minute), [`per`](Self::per), … | token bucket: refills continuously, at most a [`burst`](Self::burst) at once |
/// | … [`refill`](Self::refill) | token bucket, refilled in steps |
/// | [`leaky_bucket`](Self::leaky_bucket) | requests leave at a fixed rate, in order of arrival |
/// | [`fixed_window`](Self::fixed_window) | at most the count in each window |
/// | [`sliding_log`](Self::sliding_log) | at most the count in any interval of one period |
/// | [`sliding_window`](Self::sliding_window) | like a sliding log, approximated by two counts |
/// | [`concurrent`](Self::concurrent) | at most the count at a time |
///
/// Time is in whole microseconds, and the arithmetic is exact: every intermediate is an integer
/// below 2^53, so three per second is three per second for ever. Constructors and options panic on
/// nonsense, at compile time in a constant; each has a `try_` form, and [`FromStr`](core::str::FromStr),
/// for values that come from configuration.
///
/// ```
/// # extern crate sluicegate_limit as sluicegate;
/// use sluicegate::Limit;
///
/// const API: Limit = Limit::per_minute(100).burst(20).named("api");
///
/// assert_eq!(API.to_string(), "100/minute burst 20 named \"api\"");
/// assert_eq!(API.to_string().parse(), Ok(API));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Limit {
    pub(crate) spec: AlgorithmSpec,
    pub(crate) count: u64,
    /// Microseconds; without a meaning for concurrency.
    pub(crate) period: u64,
    pub(crate) soft: Option<u64>,
    /// Microseconds; 0 for none.
    pub(crate) ban: u64,
    /// Refusals after which the ban begins, and microseconds in which they count; 0 for at once.
    pub(crate) after: u64,
    pub(crate) within: u64,
    /// Microseconds; 0 for none.
    pub(crate) gap: u64,
    pub(crate) count_refused: bool,
    /// Whether what was spent is carried over when the numbers change.
    pub(crate) carried: bool,
    /// Whether it only tells what it would refuse.
    pub(crate) shadow: bool,
    /// What a store does with a key that it has no room for, where that was said.
    pub(crate) when_full: Option<WhenFull>,
    /// Whether one look at two words tells all: no ban, no gap, no log, no queue of its own, nothing
    /// to record of refusals, and no shadow.
    pub(crate) plain: bool,
    /// Whether it would be plain if what was spent were not carried over: two words tell all as long as the row has
    /// no account but that of these numbers.
    pub(crate) carried_words: bool,
    pub(crate) name: Name,
    /// What follows from the above.
    pub(crate) algorithm: Algorithm,
    pub(crate) id: u64,
}

/// The algorithm as it was asked for; [`Algorithm`] is the arithmetic made of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum AlgorithmSpec {
    TokenBucket { burst: u64 },
    SteppedBucket { burst: u64 },
    LeakyBucket { queue: u64, delay_after: u64 },
    FixedWindow { from_first: bool },
    SlidingLog { resolution: u64 },
    SlidingWindow,
    Concurrent,
}

impl Limit {
    /// The most that can be spent at once, and what [`LimitStatus::remaining`](crate::LimitStatus::remaining) counts down from: the
    /// burst of a token bucket, one more than the queue of a leaky bucket, else the count.
    pub const fn capacity(&self) -> u64 {
        match self.spec {
            AlgorithmSpec::TokenBucket { burst } | AlgorithmSpec::SteppedBucket { burst } => burst,
            AlgorithmSpec::LeakyBucket { queue, .. } => queue + 1,
            AlgorithmSpec::FixedWindow { .. }
            | AlgorithmSpec::SlidingLog { .. }
            | AlgorithmSpec::SlidingWindow
            | AlgorithmSpec::Concurrent => self.count,
        }
    }

    /// Whether a request of `cost` can never be admitted: it is more than the [`capacity`](Self::capacity).
    ///
    /// Waiting does not help such a request. A limit that finds one answers
    /// [`Verdict::Never`](crate::Verdict::Never), charges nothing and records nothing: it is no attempt to
    /// go faster, so that it counts neither towards a [ban](Self::ban) nor as a
    /// [refused attempt](Self::count_refused).
    ///
    /// ```
    /// # extern crate sluicegate_limit as sluicegate;
    /// use sluicegate::Limit;
    ///
    /// let limit = Limit::per_minute(100).burst(5);
    /// assert!(limit.never_fits(6));
    /// assert!(limit.take(&mut limit.fresh(), 0, 6).never_fits());
    /// ```
    pub const fn never_fits(&self, cost: u64) -> bool {
        cost > self.capacity()
    }

    /// How much may be spent in one period.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The period, or `None` for concurrency, which knows no time.
    pub const fn period(&self) -> Option<Duration> {
        match self.spec {
            AlgorithmSpec::Concurrent => None,
            AlgorithmSpec::TokenBucket { .. }
            | AlgorithmSpec::SteppedBucket { .. }
            | AlgorithmSpec::LeakyBucket { .. }
            | AlgorithmSpec::FixedWindow { .. }
            | AlgorithmSpec::SlidingLog { .. }
            | AlgorithmSpec::SlidingWindow => Some(Duration::from_micros(self.period)),
        }
    }

    /// Whether what is spent is held, and given back when the request has ended.
    pub const fn is_held(&self) -> bool {
        matches!(self.spec, AlgorithmSpec::Concurrent)
    }

    /// Whether this is a token bucket that refills continuously, and nothing besides: no ban, no gap,
    /// nothing carried over, no shadow.
    /// [`count`](Self::count), [`period`](Self::period), [`capacity`](Self::capacity) and
    /// [`soft_limit`](Self::soft_limit) then say all that there is to it, for stores with an engine of
    /// their own.
    pub const fn is_plain_bucket(&self) -> bool {
        matches!(self.spec, AlgorithmSpec::TokenBucket { .. })
            && !self.has_extra_state()
            && !self.shadow
    }

    /// From where on the client is warned, as set by [`soft`](Self::soft).
    pub const fn soft_limit(&self) -> Option<u64> {
        self.soft
    }

    /// The name given by [`named`](Self::named), else the rate: `100/minute`.
    pub fn name(&self) -> LimitName<'_> {
        LimitName(self)
    }

    /// The name given by [`named`](Self::named), if one was.
    pub fn own_name(&self) -> Option<&str> {
        self.name.as_str()
    }

    /// This limit with the row that it would have if its name were `name`, for a limit that is shown under another
    /// name. Call it last: any later option goes back to the limit's own row.
    #[doc(hidden)]
    #[must_use]
    pub const fn counted_as(self, name: &str) -> Self {
        Self { id: self.identity_as(name.as_bytes()), ..self }
    }

    /// Tells this limit's state from that of every other limit on the same key, in every process:
    /// made from the name and from the numbers that give a state its meaning.
    ///
    /// A sliding window or a log with a name keeps its identity, and so what was spent, when its count
    /// changes; a bucket does so when its burst changes, as long as the time that both are counted in
    /// is the same (the finest of a microsecond, a millisecond and a second that keeps it exact). One
    /// that is [carried](Self::carried) over keeps it whatever changes but its algorithm, and the period
    /// and resolution of a log. Without a name, limits share it only if they decide alike.
    pub const fn id(&self) -> u64 {
        self.id
    }
}

impl Limit {
    pub(crate) const fn make(
        spec: AlgorithmSpec,
        count: u64,
        period: Duration,
    ) -> Result<Self, LimitError> {
        let period = match micros(period) {
            Ok(period) => period,
            Err(reason) => return Err(LimitError::new(reason)),
        };
        let limit = Self {
            spec,
            count,
            period,
            soft: None,
            ban: 0,
            after: 0,
            within: 0,
            gap: 0,
            count_refused: false,
            carried: false,
            shadow: false,
            when_full: None,
            plain: false,
            carried_words: false,
            name: Name::NONE,
            algorithm: Algorithm::Concurrency(Concurrency::new(count)),
            id: 0,
        };
        limit.checked()
    }

    /// Turns the requested numbers into the arithmetic, or returns what is wrong with them.
    pub(crate) const fn checked(mut self) -> Result<Self, LimitError> {
        if self.count == 0 {
            return Err(LimitError::new("the count is 0: nothing would ever be admitted"));
        }
        if self.count >= EXACT / 2 {
            return Err(LimitError::new("the count is 2^52 or more: too large to stay exact"));
        }
        self.algorithm = match self.spec {
            AlgorithmSpec::TokenBucket { burst } | AlgorithmSpec::SteppedBucket { burst }
                if burst == 0 =>
            {
                return Err(LimitError::new("the burst is 0: nothing would ever be admitted"));
            }
            AlgorithmSpec::TokenBucket { burst } => {
                match TokenBucket::new(self.count, self.period, burst, burst) {
                    Some(bucket) => Algorithm::TokenBucket(bucket),
                    None => return Err(TOO_LARGE_BURST),
                }
            }
            AlgorithmSpec::SteppedBucket { burst } => {
                if burst >= EXACT / 2 {
                    return Err(TOO_LARGE_BURST);
                }
                Algorithm::SteppedBucket(SteppedBucket::new(self.count, self.period, burst))
            }
            AlgorithmSpec::LeakyBucket { queue, delay_after } => {
                if delay_after > queue {
                    return Err(LimitError::new(
                        "the delay begins after more requests than the queue holds",
                    ));
                }
                if queue >= EXACT / 2 {
                    return Err(TOO_LARGE_QUEUE);
                }
                match TokenBucket::new(self.count, self.period, queue + 1, delay_after + 1) {
                    Some(bucket) => Algorithm::TokenBucket(bucket),
                    None => return Err(TOO_LARGE_QUEUE),
                }
            }
            AlgorithmSpec::FixedWindow { from_first } => {
                Algorithm::FixedWindow(FixedWindow::new(self.count, self.period, from_first))
            }
            AlgorithmSpec::SlidingLog { resolution } => {
                if resolution == 0 || self.period % resolution != 0 {
                    return Err(LimitError::new("the resolution does not divide the period"));
                }
                Algorithm::SlidingLog(SlidingLog {
                    count: self.count,
                    period: self.period,
                    resolution,
                })
            }
            AlgorithmSpec::SlidingWindow => match SlidingWindow::new(self.count, self.period) {
                Some(sliding) => Algorithm::SlidingWindow(sliding),
                None => {
                    return Err(LimitError::new(
                        "the count times the period is too large to stay exact (below 2^52), \
                         or the count is 4,227,858,432 or more",
                    ));
                }
            },
            AlgorithmSpec::Concurrent => Algorithm::Concurrency(Concurrency::new(self.count)),
        };
        if let Some(soft) = self.soft {
            if soft >= self.capacity() {
                return Err(LimitError::new(
                    "the soft limit is not below the most that the limit admits at once",
                ));
            }
        }
        if self.count_refused {
            match self.spec {
                AlgorithmSpec::SlidingWindow | AlgorithmSpec::SlidingLog { .. } => {}
                AlgorithmSpec::FixedWindow { .. } => {
                    return Err(LimitError::new(
                        "a fixed window is empty at its end, however many attempts it refused: count them by a \
                         sliding window or a sliding log, or ban",
                    ));
                }
                AlgorithmSpec::TokenBucket { .. }
                | AlgorithmSpec::SteppedBucket { .. }
                | AlgorithmSpec::LeakyBucket { .. }
                | AlgorithmSpec::Concurrent => {
                    return Err(LimitError::new(
                        "refused attempts are counted by sliding windows and sliding logs only",
                    ));
                }
            }
        }
        if self.carried && self.name.as_bytes().is_empty() {
            return Err(LimitError::new(
                "what was spent is carried over under a name: name the limit before",
            ));
        }
        let queues = matches!(self.spec, AlgorithmSpec::LeakyBucket { .. });
        let has_words = !self.count_refused && !queues && !self.shadow;
        self.plain = !self.has_extra_state() && has_words;
        let has_account =
            !matches!(self.algorithm, Algorithm::SlidingLog(_) | Algorithm::Concurrency(_));
        self.carried_words =
            self.carried && has_account && has_words && self.ban == 0 && self.gap == 0;
        self.id = self.identity();
        Ok(self)
    }

    /// Whether the state holds more than the two words of the algorithm.
    #[inline]
    pub(crate) const fn has_extra_state(&self) -> bool {
        self.ban > 0
            || self.gap > 0
            || self.carried
            || matches!(self.spec, AlgorithmSpec::SlidingLog { .. })
    }
}

/// Prints what a limit is called; see [`Limit::name`].
#[derive(Debug, Clone, Copy)]
pub struct LimitName<'a>(&'a Limit);

impl fmt::Display for LimitName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.name.as_str() {
            Some(name) => f.write_str(name),
            None => self.0.write_rate(f),
        }
    }
}

impl fmt::Debug for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Limit({self})")
    }
}

const TOO_LARGE_BURST: LimitError = LimitError::new(
    "the burst times the period is too large to stay exact: with the rate reduced to lowest terms, \
     it must stay below 2^52",
);

const TOO_LARGE_QUEUE: LimitError = LimitError::new(
    "the queue times the period is too large to stay exact: with the rate reduced to lowest terms, \
     it must stay below 2^52",
);

/// The microseconds of a duration, or what is wrong with it.
pub(crate) const fn micros(duration: Duration) -> Result<u64, &'static str> {
    if duration.is_zero() {
        return Err("the period is 0");
    }
    if duration.subsec_nanos() % 1_000 != 0 {
        return Err("the period has a fraction of a microsecond");
    }
    if duration.as_micros() >= (EXACT / 2) as u128 {
        return Err("the period is 142 years or more: too large to stay exact");
    }
    Ok(duration.as_micros() as u64)
}

/// The panic of a constructor, made from an error.
#[track_caller]
pub(crate) const fn valid(limit: Result<Limit, LimitError>) -> Limit {
    match limit {
        Ok(limit) => limit,
        Err(error) => panic!("{}", error.reason()),
    }
}

/// Longest name of a limit, in bytes: it is held in place, so that a limit stays a plain value.
const LONGEST: usize = 31;

/// A limit's name: printable ASCII, as the header fields demand. Empty: named after its rate.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Name {
    len: u8,
    bytes: [u8; LONGEST],
}

impl Name {
    pub(crate) const NONE: Self = Self { len: 0, bytes: [0; LONGEST] };

    pub(crate) const fn new(name: &str) -> Result<Self, LimitError> {
        let from = name.as_bytes();
        if from.is_empty() {
            return Err(LimitError::new("the name is empty"));
        }
        if from.len() > LONGEST {
            return Err(LimitError::new("the name is longer than 31 bytes"));
        }
        let mut bytes = [0; LONGEST];
        let mut i = 0;
        while i < from.len() {
            if from[i] < b' ' || from[i] > b'~' {
                return Err(LimitError::new(
                    "the name holds a character that is not printable ASCII",
                ));
            }
            bytes[i] = from[i];
            i += 1;
        }
        Ok(Self { len: from.len() as u8, bytes })
    }

    pub(crate) const fn as_bytes(&self) -> &[u8] {
        self.bytes.split_at(self.len as usize).0
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        core::str::from_utf8(self.as_bytes()).ok().filter(|name| !name.is_empty())
    }
}
