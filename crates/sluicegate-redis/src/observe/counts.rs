//! Counts of decisions, failures and everything in the background.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use sluicegate_core::clock::Clock;

use crate::failure::{Failure, FailureKind};
use crate::observe::latency::{Latency, LatencyCounts};
use crate::observe::log_limiter::{Event, LogLimiter};
use crate::observe::report;

/// Whether calls are sent to a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BreakerState {
    /// Calls are sent.
    #[default]
    Closed,
    /// The server keeps failing: no calls are sent, except one at a time to probe it.
    Open,
}

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
    /// server lost its data. The requests continue, and others may have taken their places.
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

    pub(crate) fn with_breaker(self, breaker: BreakerState) -> Self {
        Self { breaker, ..self }
    }
}

/// The counters of a store.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    admitted: AtomicU64,
    /// Refused by a server.
    refused: AtomicU64,
    refused_locally: AtomicU64,
    failures: [AtomicU64; FailureKind::ALL.len()],
    openings: AtomicU64,
    connections: AtomicU64,
    loaded: AtomicU64,
    given_back: AtomicU64,
    unanswered: AtomicU64,
    settled: AtomicU64,
    dropped: AtomicU64,
    places_lost: AtomicU64,
    latency: Latency,
    log: LogLimiter,
    /// Whether a connection was lost, or could not be made, since the last one was made.
    is_away: AtomicBool,
}

impl Counters {
    pub(crate) fn new(clock: &Clock) -> Self {
        Self { log: LogLimiter::new(clock), ..Self::default() }
    }

    pub(crate) fn decided(&self, admitted: bool, took: Duration) {
        add(if admitted { &self.admitted } else { &self.refused });
        self.latency.record(took);
        report::decided(admitted, took);
    }

    #[inline]
    pub(crate) fn refused_locally(&self) {
        add(&self.refused_locally);
        report::refused_locally();
    }

    pub(crate) fn failed(&self, failure: &Failure) {
        add(&self.failures[failure.kind().index()]);
        report::failed(failure.kind());
    }

    /// Counts a failure. Its time is recorded only if a call was made.
    pub(crate) fn failed_after(&self, failure: &Failure, took: Duration) {
        self.failed(failure);
        if failure.was_waited_for() {
            self.latency.record(took);
            report::waited(took);
        }
    }

    pub(crate) fn breaker_opened(&self, name: &str, wait: Duration) {
        add(&self.openings);
        report::breaker_opened(name, wait, self.log.allow(Event::Opened));
    }

    pub(crate) fn breaker_closed(&self, name: &str) {
        report::breaker_closed(name, self.log.allow(Event::Closed));
    }

    pub(crate) fn connected(&self, name: &str) {
        add(&self.connections);
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

    pub(crate) fn script_loaded(&self) {
        add(&self.loaded);
        report::script_loaded();
    }

    pub(crate) fn gave_back(&self) {
        add(&self.given_back);
        report::gave_back();
    }

    pub(crate) fn unanswered(&self) {
        add(&self.unanswered);
        report::unanswered();
    }

    pub(crate) fn settled(&self) {
        add(&self.settled);
        report::settled();
    }

    pub(crate) fn settlement_dropped(&self, why: &Failure) {
        add(&self.dropped);
        report::settlement_dropped(why, self.log.allow(Event::Dropped));
    }

    pub(crate) fn places_lost(&self, rows: u64) {
        if rows > 0 {
            self.places_lost.fetch_add(rows, Ordering::Relaxed);
            report::places_lost(rows);
        }
    }

    pub(crate) fn read(&self) -> RedisCounts {
        let (admitted, refused_locally) = (read(&self.admitted), read(&self.refused_locally));
        let refused = read(&self.refused) + refused_locally;
        let by_kind = self.failures.each_ref().map(read);
        RedisCounts {
            decisions: admitted + refused,
            admitted,
            refused,
            refused_locally,
            failures: by_kind.iter().sum(),
            breaker: BreakerState::default(),
            breaker_openings: read(&self.openings),
            connections: read(&self.connections),
            scripts_loaded: read(&self.loaded),
            given_back: read(&self.given_back),
            unanswered: read(&self.unanswered),
            settled: read(&self.settled),
            settlements_dropped: read(&self.dropped),
            places_lost: read(&self.places_lost),
            latency: self.latency.read(),
            by_kind,
        }
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
