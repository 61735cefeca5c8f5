use core::fmt;
use core::time::Duration;

use super::algorithm::Algorithm;
use super::name::Name;
use super::when_full::WhenFull;

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
    pub(super) spec: AlgorithmSpec,
    pub(super) count: u64,
    /// Microseconds; without a meaning for concurrency.
    pub(super) period: u64,
    pub(super) soft: Option<u64>,
    /// Microseconds; 0 for none.
    pub(super) ban: u64,
    /// Refusals after which the ban begins, and microseconds in which they count; 0 for at once.
    pub(super) after: u64,
    pub(super) within: u64,
    /// Microseconds; 0 for none.
    pub(super) gap: u64,
    pub(super) count_refused: bool,
    /// Whether what was spent is carried over when the numbers change.
    pub(super) carried: bool,
    /// Whether it only tells what it would refuse.
    pub(super) shadow: bool,
    /// What a store does with a key that it has no room for, where that was said.
    pub(super) when_full: Option<WhenFull>,
    /// Whether one look at two words tells all: no ban, no gap, no log, no queue of its own, nothing
    /// to record of refusals, and no shadow.
    pub(super) plain: bool,
    /// Whether it would be plain if what was spent were not carried over: two words tell all as long as the row has
    /// no account but that of these numbers.
    pub(super) carried_words: bool,
    pub(super) name: Name,
    /// What follows from the above.
    pub(super) algorithm: Algorithm,
    pub(super) id: u64,
}

/// The algorithm as it was asked for; [`Algorithm`] is the arithmetic made of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum AlgorithmSpec {
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
            _ => self.count,
        }
    }

    /// Compares like `==`, but faster: the identity already includes the name.
    #[inline]
    #[doc(hidden)]
    pub fn is_same(&self, other: &Self) -> bool {
        let numbers = |limit: &Self| (limit.id, limit.count, limit.period, limit.ban, limit.gap);
        let options = |limit: &Self| {
            let counted = (limit.soft, limit.count_refused, limit.after, limit.within);
            (counted, limit.shadow, limit.when_full)
        };
        numbers(self) == numbers(other)
            && options(self) == options(other)
            && self.spec == other.spec
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

    /// Whether requests wait in a queue of the limit's own, even where no adapter's queue lets them: a leaky
    /// bucket's.
    #[inline]
    #[doc(hidden)]
    pub const fn has_own_queue(&self) -> bool {
        matches!(self.spec, AlgorithmSpec::LeakyBucket { .. })
    }

    /// How much may be spent in one period.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The period, or `None` for concurrency, which knows no time.
    pub const fn period(&self) -> Option<Duration> {
        match self.spec {
            AlgorithmSpec::Concurrent => None,
            _ => Some(Duration::from_micros(self.period)),
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
    /// Whether one look at two words tells all: no ban, no gap, no log, no queue of its own, nothing to
    /// record of refusals, and no shadow.
    #[inline]
    #[doc(hidden)]
    pub const fn is_plain(&self) -> bool {
        self.plain
    }

    /// Whether the account of this limit's numbers tells all, as long as the row has no other: what a
    /// [plain](Self::is_plain) limit becomes when it is [carried](Self::carried) over.
    #[inline]
    #[doc(hidden)]
    pub const fn is_plain_account(&self) -> bool {
        self.carried_words
    }

    /// Whether the state holds more than the shape's two words.
    #[inline]
    #[doc(hidden)]
    pub const fn has_extra_state(&self) -> bool {
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
