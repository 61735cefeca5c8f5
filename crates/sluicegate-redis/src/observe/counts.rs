//! What the store has done so far.

use std::sync::atomic::{AtomicU64, Ordering};
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
    /// Charges, peeks and resets that were answered.
    pub decisions: u64,
    /// Those that said yes, at once or after a wait.
    pub admitted: u64,
    /// Those that said no.
    pub refused: u64,
    /// Those of them that were [remembered](crate::RedisBuilder::remember_refusals): no server was asked.
    pub refused_locally: u64,
    /// What could not be decided, whatever the reason; [`failures_of`](Self::failures_of) tells them
    /// apart.
    pub failures: u64,
    /// Whether a server is asked at the moment: open, if the breaker of any node is.
    pub breaker: BreakerState,
    /// How often a breaker opened.
    pub breaker_openings: u64,
    /// How often a connection was made.
    pub connections: u64,
    /// How often a script was sent in full, because the server did not know it.
    pub scripts_loaded: u64,
    /// Charges given back in the background, because nobody waited for their answer any more.
    pub given_back: u64,
    /// Charges of which nobody will know whether they were made: the connection broke, or the answer did
    /// not even come in the background. They stand, if they were made.
    pub unanswered: u64,
    /// Settlements that reached the server.
    pub settled: u64,
    /// Settlements that did not: too many were under way, or the server was away for too long.
    pub settlements_dropped: u64,
    /// How often a row was to be renewed in which this process had places of a limit of concurrency, and they
    /// were not there: the process did not reach the server for longer than its
    /// [lease](crate::RedisBuilder::concurrency_lease), or the server has forgotten. Its requests are under way
    /// beside those of others.
    pub places_lost: u64,
    /// How long decisions took that a server was asked for, those included that failed.
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

/// What a store counts with.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    admitted: AtomicU64,
    /// By a server.
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

    /// Of one that failed after so long. It took no time where nobody was asked.
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
        report::connected(name, self.log.allow(Event::Connected));
    }

    pub(crate) fn lost(&self, name: &str, why: &Failure) {
        report::lost(name, why, self.log.allow(Event::Lost));
    }

    pub(crate) fn unreachable(&self, name: &str, why: &Failure) {
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
