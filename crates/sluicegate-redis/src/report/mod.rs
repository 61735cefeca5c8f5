//! What the operator is told: `tracing` events at the edges, and the `metrics` of every decision.
#![cfg_attr(
    not(all(feature = "tracing", feature = "metrics")),
    expect(unused_variables, reason = "without the features nobody is told")
)]

use std::time::Duration;

use crate::failure::{Failure, FailureKind};

#[cfg(feature = "metrics")]
macro_rules! count {
    ($name:literal $(, $label:literal => $value:expr)*) => {
        metrics::counter!(concat!("sluicegate_redis_", $name) $(, $label => $value)*).increment(1)
    };
}

#[cfg(not(feature = "metrics"))]
macro_rules! count {
    ($($anything:tt)*) => {};
}

#[cfg(feature = "metrics")]
mod names;

/// Says what each metric is, once there is somebody to tell.
pub(crate) fn describe() {
    #[cfg(feature = "metrics")]
    names::describe();
}

/// A server whose breaker is closed: its gauge is there before it opens for the first time.
pub(crate) fn server_is_known(name: &str) {
    #[cfg(feature = "metrics")]
    metrics::gauge!("sluicegate_redis_breaker_open", "server" => name.to_owned()).set(0);
}

pub(crate) fn decided(admitted: bool, took: Duration) {
    count!("decisions_total", "outcome" => if admitted { "admitted" } else { "refused" });
    waited(took);
}

/// For an answer, or for none.
pub(crate) fn waited(took: Duration) {
    #[cfg(feature = "metrics")]
    metrics::histogram!("sluicegate_redis_decision_seconds").record(took);
}

/// Of no duration: nobody was asked.
pub(crate) fn refused_locally() {
    count!("decisions_total", "outcome" => "refused");
    count!("refused_locally_total");
}

pub(crate) fn failed(kind: FailureKind) {
    count!("failures_total", "kind" => kind.name());
}

/// What is told at most once a second says how many lines were `left_out`; `None` of one that is.
type Told = Option<u64>;

pub(crate) fn connected(name: &str, told: Told) {
    count!("connections_total");
    #[cfg(feature = "tracing")]
    if let Some(left_out) = told {
        tracing::info!(server = name, left_out, "connected to Redis");
    }
}

pub(crate) fn lost(name: &str, why: &Failure, told: Told) {
    #[cfg(feature = "tracing")]
    if let Some(left_out) = told {
        tracing::warn!(server = name, left_out, "the connection to Redis is lost: {why}");
    }
}

pub(crate) fn unreachable(name: &str, why: &Failure, told: Told) {
    #[cfg(feature = "tracing")]
    if let Some(left_out) = told {
        tracing::warn!(server = name, left_out, "no connection to Redis: {why}");
    }
}

pub(crate) fn breaker_opened(name: &str, wait: Duration, told: Told) {
    count!("breaker_openings_total");
    #[cfg(feature = "metrics")]
    metrics::gauge!("sluicegate_redis_breaker_open", "server" => name.to_owned()).set(1);
    #[cfg(feature = "tracing")]
    if let Some(left_out) = told {
        tracing::warn!(
            server = name,
            ?wait,
            left_out,
            "Redis keeps failing and is not asked for a while"
        );
    }
}

pub(crate) fn breaker_closed(name: &str, told: Told) {
    #[cfg(feature = "metrics")]
    metrics::gauge!("sluicegate_redis_breaker_open", "server" => name.to_owned()).set(0);
    #[cfg(feature = "tracing")]
    if let Some(left_out) = told {
        tracing::info!(server = name, left_out, "Redis answers again");
    }
}

pub(crate) fn script_loaded() {
    count!("scripts_loaded_total");
}

pub(crate) fn gave_back() {
    count!("given_back_total");
}

pub(crate) fn unanswered() {
    count!("unanswered_total");
}

pub(crate) fn settled() {
    count!("settled_total");
}

pub(crate) fn settlement_dropped(why: &Failure, told: Told) {
    count!("settlements_dropped_total");
    #[cfg(feature = "tracing")]
    if let Some(left_out) = told {
        tracing::warn!(left_out, "what was to be given back or charged is dropped: {why}");
    }
}

/// Told each time that they are missed, which is every few seconds at most.
pub(crate) fn places_lost(rows: u64) {
    #[cfg(feature = "metrics")]
    metrics::counter!("sluicegate_redis_places_lost_total").increment(rows);
    #[cfg(feature = "tracing")]
    tracing::warn!(rows, "places of requests under way have lapsed, and may be taken by others");
}

/// What became of leased tokens since it was last told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Leases {
    pub(crate) leases: u64,
    pub(crate) taken: u64,
    pub(crate) spent: u64,
    pub(crate) given_back: u64,
    pub(crate) expired: u64,
    pub(crate) admitted: u64,
    pub(crate) refused: u64,
}

pub(crate) fn leases(since: Leases) {
    #[cfg(feature = "metrics")]
    {
        let Leases { leases, taken, spent, given_back, expired, admitted, refused } = since;
        metrics::counter!("sluicegate_redis_leases_total").increment(leases);
        let tokens = [taken, spent, given_back, expired];
        for (event, tokens) in ["taken", "spent", "given_back", "expired"].into_iter().zip(tokens) {
            metrics::counter!("sluicegate_redis_lease_tokens_total", "event" => event)
                .increment(tokens);
        }
        for (outcome, requests) in [("admitted", admitted), ("refused", refused)] {
            metrics::counter!("sluicegate_redis_lease_decisions_total", "outcome" => outcome)
                .increment(requests);
        }
    }
}

pub(crate) fn passed_on() {
    count!("lease_passed_on_total");
}

#[cfg(all(test, feature = "metrics"))]
mod tests;
