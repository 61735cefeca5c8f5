//! `tracing` events when something changes, and `metrics` of every decision.
#![cfg_attr(
    not(all(feature = "tracing", feature = "metrics")),
    expect(unused_variables, reason = "without the features nothing is reported")
)]

use std::time::Duration;

use crate::failure::{Failure, FailureKind};
use crate::lease::counts::LeaseCounts;

#[cfg(feature = "metrics")]
mod names;

#[cfg(feature = "metrics")]
pub(crate) use self::names::describe;

/// Sets the gauge of a new server, whose breaker is closed, so that it exists before the breaker first opens.
pub(crate) fn server_is_known(name: &str) {
    #[cfg(feature = "metrics")]
    metrics::gauge!("sluicegate_redis_breaker_open", "server" => name.to_owned()).set(0);
}

/// Records the time of a decision, answered or not.
pub(crate) fn waited(took: Duration) {
    #[cfg(feature = "metrics")]
    metrics::histogram!("sluicegate_redis_decision_seconds").record(took);
}

pub(crate) fn refused_locally() {
    #[cfg(feature = "metrics")]
    metrics::counter!("sluicegate_redis_decisions_total", "outcome" => "refused").increment(1);
}

pub(crate) fn failed(kind: FailureKind) {
    #[cfg(feature = "metrics")]
    metrics::counter!("sluicegate_redis_failures_total", "kind" => kind.name()).increment(1);
}

/// The number of lines that were suppressed since the last one; `None` if this one is suppressed too.
type LogLine = Option<u64>;

/// The end of an outage has the level of its beginning, so that who is told of one is told of the other.
pub(crate) fn connected(name: &str, again: bool, line: LogLine) {
    #[cfg(feature = "tracing")]
    match line {
        Some(suppressed) if again => {
            tracing::warn!(server = name, suppressed, "connected to Redis again");
        }
        Some(suppressed) => tracing::info!(server = name, suppressed, "connected to Redis"),
        None => {}
    }
}

pub(crate) fn lost(name: &str, why: &Failure, line: LogLine) {
    #[cfg(feature = "tracing")]
    if let Some(suppressed) = line {
        tracing::warn!(server = name, suppressed, "lost the connection to Redis: {why}");
    }
}

pub(crate) fn unreachable(name: &str, why: &Failure, line: LogLine) {
    #[cfg(feature = "tracing")]
    if let Some(suppressed) = line {
        tracing::warn!(server = name, suppressed, "cannot connect to Redis: {why}");
    }
}

pub(crate) fn breaker_opened(name: &str, wait: Duration, line: LogLine) {
    #[cfg(feature = "metrics")]
    metrics::gauge!("sluicegate_redis_breaker_open", "server" => name.to_owned()).set(1);
    #[cfg(feature = "tracing")]
    if let Some(suppressed) = line {
        tracing::warn!(
            server = name,
            ?wait,
            suppressed,
            "Redis keeps failing: its breaker is open"
        );
    }
}

pub(crate) fn breaker_closed(name: &str, line: LogLine) {
    #[cfg(feature = "metrics")]
    metrics::gauge!("sluicegate_redis_breaker_open", "server" => name.to_owned()).set(0);
    #[cfg(feature = "tracing")]
    if let Some(suppressed) = line {
        tracing::warn!(server = name, suppressed, "Redis answers again");
    }
}

pub(crate) fn settlement_dropped(why: &Failure, line: LogLine) {
    #[cfg(feature = "tracing")]
    if let Some(suppressed) = line {
        tracing::warn!(suppressed, "dropped a settlement: {why}");
    }
}

/// Reported whenever a renewal finds them missing, which is every few seconds at most.
pub(crate) fn places_lost(rows: u64) {
    #[cfg(feature = "tracing")]
    tracing::warn!(rows, "places of running requests have expired and may be taken by others");
}

/// What became of leased tokens since the last report.
pub(crate) fn leases(since: LeaseCounts) {
    #[cfg(feature = "metrics")]
    {
        let LeaseCounts { leases, leased, spent, given_back, expired, .. } = since;
        metrics::counter!("sluicegate_redis_leases_total").increment(leases);
        let tokens = [leased, spent, given_back, expired];
        for (event, tokens) in ["taken", "spent", "given_back", "expired"].into_iter().zip(tokens) {
            metrics::counter!("sluicegate_redis_lease_tokens_total", "event" => event)
                .increment(tokens);
        }
        for (outcome, requests) in
            [("admitted", since.admitted_here), ("refused", since.refused_here)]
        {
            metrics::counter!("sluicegate_redis_lease_decisions_total", "outcome" => outcome)
                .increment(requests);
        }
    }
}

pub(crate) fn passed_on() {
    #[cfg(feature = "metrics")]
    metrics::counter!("sluicegate_redis_lease_passed_on_total").increment(1);
}

#[cfg(all(test, feature = "metrics"))]
mod tests;
