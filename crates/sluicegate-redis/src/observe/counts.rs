//! Counts of decisions, failures and everything in the background, a histogram of the time that decisions took, and at most
//! one log line of a kind each second.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

pub use sluicegate_core::adapter::breaker::BreakerState;
use sluicegate_core::clock::Clock;

use crate::failure::{Failure, FailureKind};
use crate::observe::report;

/// What a [`Redis`](crate::Redis) has done since it was made, as [`counts`](crate::Redis::counts) shows
/// it. Clones of a store are counted together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RedisCounts {
    /// Charges, peeks and resets that were decided.
    pub decisions: u64,
    /// Decisions that admitted, at once or after a wait.
    pub admitted: u64,
    /// Decisions that refused.
    pub refused: u64,
    /// Refusals that were [remembered](crate::RedisBuilder::remember_refusals), without a call to the server.
    pub refused_locally: u64,
    /// Decisions that failed. [`failures_of`](Self::failures_of) counts them by kind.
    pub failures: u64,
    /// Whether calls are sent at the moment; open if the breaker of any node is open.
    pub breaker: BreakerState,
    /// Times that a breaker opened.
    pub breaker_openings: u64,
    /// Connections made.
    pub connections: u64,
    /// Scripts sent in full because the server did not know them.
    pub scripts_loaded: u64,
    /// Charges given back because their answer came too late, or their future was dropped.
    pub given_back: u64,
    /// Charges of which it is unknown whether they were made: the connection broke, or the answer did not come in the
    /// background either. Those that were made stand.
    pub unanswered: u64,
    /// Settlements that reached the server.
    pub settled: u64,
    /// Settlements that did not reach the server: too many were under way, or the server was away for too long.
    pub settlements_dropped: u64,
    /// Rows of limits of concurrency in which places of this process were missing when they were to be renewed: the
    /// process could not reach the server for longer than its [lease](crate::RedisBuilder::concurrency_lease), or the
    /// server lost its data. The requests continue, and others may have taken their places. What is lost counts once.
    pub places_lost: u64,
    /// How long calls to a server took, including those that failed.
    pub latency: LatencyCounts,
    by_kind: [u64; FailureKind::ALL.len()],
}

impl RedisCounts {
    /// Failures of one kind.
    pub fn failures_of(&self, kind: FailureKind) -> u64 {
        self.by_kind[kind.index()]
    }
}

sluicegate_core::store_counters!(
    StoreCounters of RedisCounts as "sluicegate_redis_";
    admitted: "decisions" as "admitted", "Decisions by outcome, remembered ones included.";
    refused: "decisions" as "refused", "Decisions by outcome, remembered ones included.";
    refused_locally: "refused_locally", "Refusals that were remembered, without a round trip.";
    breaker_openings: "breaker_openings", "Times that a breaker opened.";
    connections: "connections", "Connections made.";
    scripts_loaded: "scripts_loaded", "Scripts sent in full because the server did not know them.";
    given_back: "given_back", "Charges given back because their answer came too late.";
    unanswered: "unanswered", "Charges of which it is unknown whether they were made.";
    settled: "settled", "Settlements that reached the server.";
    settlements_dropped: "settlements_dropped", "Settlements that did not reach the server.";
    places_lost: "places_lost", "Rows in which places held by this process had expired.";
);

/// What a store counts and tells its operator.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) each: StoreCounters,
    failures: [AtomicU64; FailureKind::ALL.len()],
    latency: Latency,
    log: LogLimiter,
    /// Whether a connection was lost, or could not be made, since the last one was made.
    is_away: AtomicBool,
}

impl Counters {
    pub(crate) fn new(clock: &Clock) -> Self {
        let counters = Self { log: LogLimiter::new(clock), ..Self::default() };
        #[cfg(feature = "metrics")]
        {
            counters.each.describe();
            report::describe();
        }
        counters
    }

    pub(crate) fn decided(&self, admitted: bool, took: Duration) {
        if admitted { &self.each.admitted } else { &self.each.refused }.add(1);
        self.waited(took);
    }

    /// Records no time, because no server was called.
    #[inline]
    pub(crate) fn refused_locally(&self) {
        report::refused_locally();
        self.each.refused_locally.add(1);
    }

    pub(crate) fn failed(&self, failure: &Failure) {
        self.failures[failure.kind().index()].fetch_add(1, Ordering::Relaxed);
        report::failed(failure.kind());
    }

    /// Counts a failure. Its time is recorded only if a call was made.
    pub(crate) fn failed_after(&self, failure: &Failure, took: Duration) {
        self.failed(failure);
        if failure.was_waited_for() {
            self.waited(took);
        }
    }

    /// Records the time of a decision, answered or not.
    fn waited(&self, took: Duration) {
        self.latency.record(took);
        report::waited(took);
    }

    pub(crate) fn breaker_opened(&self, name: &str, wait: Duration) {
        self.each.breaker_openings.add(1);
        report::breaker_opened(name, wait, self.log.allow(Event::Opened));
    }

    pub(crate) fn breaker_closed(&self, name: &str) {
        report::breaker_closed(name, self.log.allow(Event::Closed));
    }

    pub(crate) fn connected(&self, name: &str) {
        self.each.connections.add(1);
        let again = self.is_away.swap(false, Ordering::Relaxed);
        report::connected(name, again, self.log.allow(Event::Connected));
    }

    pub(crate) fn lost(&self, name: &str, why: &Failure) {
        self.is_away.store(true, Ordering::Relaxed);
        report::lost(name, why, self.log.allow(Event::Lost));
    }

    pub(crate) fn unreachable(&self, name: &str, why: &Failure) {
        self.is_away.store(true, Ordering::Relaxed);
        report::unreachable(name, why, self.log.allow(Event::Unreachable));
    }

    pub(crate) fn settlement_dropped(&self, why: &Failure) {
        self.each.settlements_dropped.add(1);
        report::settlement_dropped(why, self.log.allow(Event::Dropped));
    }

    pub(crate) fn places_lost(&self, rows: u64) {
        if rows > 0 {
            self.each.places_lost.add(rows);
            report::places_lost(rows);
        }
    }

    pub(crate) fn read(&self, breaker: BreakerState) -> RedisCounts {
        let by_kind = self.failures.each_ref().map(|count| count.load(Ordering::Relaxed));
        let (failures, latency) = (by_kind.iter().sum(), self.latency.read());
        let mut counts =
            RedisCounts { failures, breaker, latency, by_kind, ..RedisCounts::default() };
        self.each.read(&mut counts);
        counts.refused += counts.refused_locally;
        counts.decisions = counts.admitted + counts.refused;
        counts
    }
}

/// The end of the first bucket, in microseconds. Each next bucket ends at twice that.
const FIRST: u64 = 64;

/// Up to 64 µs, 128 µs, … 1 s, and longer.
const BUCKETS: usize = 16;

/// How long decisions took, from the call to the answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LatencyCounts {
    /// The sum of all times.
    pub sum: Duration,
    /// The longest time.
    pub longest: Duration,
    buckets: [u64; BUCKETS],
}

impl LatencyCounts {
    /// The end of each bucket and the number of decisions in it, from the fastest. The last bucket has no end.
    ///
    /// ```
    /// # let counts = sluicegate_redis::counts::LatencyCounts::default();
    /// for (up_to, count) in counts.buckets() {
    ///     match up_to {
    ///         Some(up_to) => println!("{count} within {up_to:?}"),
    ///         None => println!("{count} took longer"),
    ///     }
    /// }
    /// ```
    pub fn buckets(&self) -> impl Iterator<Item = (Option<Duration>, u64)> + '_ {
        let end = |i: usize| (i + 1 < BUCKETS).then(|| Duration::from_micros(FIRST << i));
        self.buckets.iter().enumerate().map(move |(i, count)| (end(i), *count))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Latency {
    sum: AtomicU64,
    longest: AtomicU64,
    buckets: [AtomicU64; BUCKETS],
}

impl Latency {
    pub(crate) fn record(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.sum.fetch_add(micros, Ordering::Relaxed);
        if micros > self.longest.load(Ordering::Relaxed) {
            self.longest.fetch_max(micros, Ordering::Relaxed);
        }
        self.buckets[bucket(micros)].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> LatencyCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LatencyCounts {
            sum: Duration::from_micros(read(&self.sum)),
            longest: Duration::from_micros(read(&self.longest)),
            buckets: self.buckets.each_ref().map(read),
        }
    }
}

fn bucket(micros: u64) -> usize {
    let doubled = micros.div_ceil(FIRST).max(1).next_power_of_two().ilog2();
    (doubled as usize).min(BUCKETS - 1)
}

/// Microseconds between two lines of one kind.
const INTERVAL: u64 = 1_000_000;

/// The kinds of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    Connected,
    Lost,
    Unreachable,
    Opened,
    Closed,
    Dropped,
}

/// Allows one line of a kind each second, for all servers of a store together: neither a cluster whose nodes all fail,
/// nor a server that closes every connection, floods the log.
#[derive(Debug, Default)]
pub(crate) struct LogLimiter {
    clock: Clock,
    lines: [Line; 6],
}

#[derive(Debug, Default)]
struct Line {
    /// When the last line was logged; 0 if none was.
    logged: AtomicU64,
    suppressed: AtomicU64,
}

impl LogLimiter {
    pub(crate) fn new(clock: &Clock) -> Self {
        Self { clock: clock.clone(), ..Self::default() }
    }

    /// If a line may be logged now, returns how many were suppressed since the last one.
    pub(crate) fn allow(&self, event: Event) -> Option<u64> {
        let (line, now) = (&self.lines[event as usize], self.clock.now());
        let last = line.logged.load(Ordering::Relaxed);
        let is_time = last == 0 || now.abs_diff(last) >= INTERVAL;
        let turn =
            || line.logged.compare_exchange(last, now.max(1), Ordering::Relaxed, Ordering::Relaxed);
        if is_time && turn().is_ok() {
            return Some(line.suppressed.swap(0, Ordering::Relaxed));
        }
        line.suppressed.fetch_add(1, Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sluicegate_core::ManualClock;

    use super::*;

    #[test]
    fn a_bucket_holds_what_took_no_longer_than_its_end() {
        for (micros, expected) in
            [(0, 0), (64, 0), (65, 1), (128, 1), (129, 2), (1 << 20, 14), ((1 << 20) + 1, 15)]
        {
            assert_eq!(bucket(micros), expected, "{micros}");
        }
        assert_eq!(bucket(u64::MAX / 2), BUCKETS - 1);
    }

    #[test]
    fn what_is_recorded_is_shown() {
        let latency = Latency::default();
        for micros in [10, 100, 5_000_000] {
            latency.record(Duration::from_micros(micros));
        }
        let counts = latency.read();
        assert_eq!(counts.sum, Duration::from_micros(5_000_110));
        assert_eq!(counts.longest, Duration::from_secs(5));
        let found: Vec<_> = counts.buckets().filter(|(_, count)| *count > 0).collect();
        let micros = |micros| Some(Duration::from_micros(micros));
        assert_eq!(found, [(micros(64), 1), (micros(128), 1), (None, 1)]);
    }

    #[test]
    fn a_line_of_a_kind_is_logged_once_a_second_with_the_number_suppressed() {
        let clock = ManualClock::new();
        let limiter = LogLimiter::new(&Clock::from(&clock));
        assert_eq!(limiter.allow(Event::Lost), Some(0));
        for _ in 0..400 {
            assert_eq!(limiter.allow(Event::Lost), None);
        }
        assert_eq!(limiter.allow(Event::Dropped), Some(0), "another kind");
        clock.advance(Duration::from_secs(1));
        assert_eq!(limiter.allow(Event::Lost), Some(400));
        clock.advance(Duration::from_secs(1));
        assert_eq!(limiter.allow(Event::Lost), Some(0));
    }
}
