//! `metrics` of calls and of the breaker, and `tracing` events when an outage begins and ends.
#![cfg_attr(
    not(all(feature = "tracing", feature = "metrics")),
    expect(unused_variables, reason = "without the features nothing is reported")
)]

use std::time::Duration;

use sluicegate_core::clock::Clock;
use sluicegate_core::store::StoreError;

use crate::counts::Counters;

/// Describes each metric to the recorder, and sets the gauge of a new store, whose breaker is closed.
pub(crate) fn made(counters: &Counters, prefix: &str) {
    #[cfg(feature = "metrics")]
    {
        counters.describe();
        metrics::describe_histogram!(
            "sluicegate_swap_call_seconds",
            metrics::Unit::Seconds,
            "How long calls of the engine took, whether or not it answered."
        );
        metrics::describe_gauge!(
            "sluicegate_swap_breaker_open",
            metrics::Unit::Count,
            "1 while the breaker of the store with this prefix is open, else 0."
        );
    }
    breaker(prefix, false);
}

/// A call of the engine has ended that was sent at this time of the clock.
pub(crate) fn called(clock: &Clock, sent: u64) {
    #[cfg(feature = "metrics")]
    {
        let took = Duration::from_micros(clock.now().saturating_sub(sent));
        metrics::histogram!("sluicegate_swap_call_seconds").record(took);
    }
}

pub(crate) fn opened(prefix: &str, failure: &StoreError, pause: Duration) {
    breaker(prefix, true);
    #[cfg(feature = "tracing")]
    tracing::warn!(prefix, error = ?failure, ?pause, "the engine of limits keeps failing");
}

/// The end of an outage has the level of its beginning, so that who is told of one is told of the other.
pub(crate) fn closed(prefix: &str) {
    breaker(prefix, false);
    #[cfg(feature = "tracing")]
    tracing::warn!(prefix, "the engine of limits answers again");
}

fn breaker(prefix: &str, is_open: bool) {
    #[cfg(feature = "metrics")]
    metrics::gauge!("sluicegate_swap_breaker_open", "prefix" => prefix.to_owned())
        .set(if is_open { 1 } else { 0 });
}
