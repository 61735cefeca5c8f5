//! The names, units and descriptions of all metrics but those of the counters.

use metrics::Unit;

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

use Kind::{Counter, Gauge, Histogram};

pub(super) const METRICS: [(&str, Kind, Unit, &str); 7] = [
    ("failures_total", Counter, Unit::Count, "Decisions that failed, by kind."),
    (
        "decision_seconds",
        Histogram,
        Unit::Seconds,
        "How long requests waited for the server, whether or not it answered.",
    ),
    ("breaker_open", Gauge, Unit::Count, "1 while the breaker of a server is open, else 0."),
    ("leases_total", Counter, Unit::Count, "Leases granted or refused by the server."),
    (
        "lease_tokens_total",
        Counter,
        Unit::Count,
        "Leased tokens by event: taken, spent, given back, expired.",
    ),
    (
        "lease_decisions_total",
        Counter,
        Unit::Count,
        "Requests decided out of leases without a round trip, by outcome.",
    ),
    (
        "lease_passed_on_total",
        Counter,
        Unit::Count,
        "Charges that could not be leased and were passed on to the server.",
    ),
];

pub(crate) fn describe() {
    for (name, kind, unit, text) in METRICS {
        let name = format!("sluicegate_redis_{name}");
        match kind {
            Counter => metrics::describe_counter!(name, unit, text),
            Gauge => metrics::describe_gauge!(name, unit, text),
            Histogram => metrics::describe_histogram!(name, unit, text),
        }
    }
}
