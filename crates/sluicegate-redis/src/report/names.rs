//! What is measured, under which names.

use metrics::Unit;

/// What a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

use Kind::{Counter, Gauge, Histogram};

/// All of them.
pub(super) const METRICS: [(&str, Kind, Unit, &str); 17] = [
    (
        "decisions_total",
        Counter,
        Unit::Count,
        "Decisions by outcome: of the server, or remembered.",
    ),
    ("failures_total", Counter, Unit::Count, "What could not be decided, by kind."),
    (
        "decision_seconds",
        Histogram,
        Unit::Seconds,
        "How long requests waited for the server, in vain or not.",
    ),
    (
        "refused_locally_total",
        Counter,
        Unit::Count,
        "Refusals that were remembered: no server was asked.",
    ),
    ("breaker_open", Gauge, Unit::Count, "1 while the breaker of a server is open, else 0."),
    ("breaker_openings_total", Counter, Unit::Count, "How often a breaker opened."),
    ("connections_total", Counter, Unit::Count, "Connections made."),
    (
        "scripts_loaded_total",
        Counter,
        Unit::Count,
        "Scripts sent in full, because the server did not know them.",
    ),
    ("settled_total", Counter, Unit::Count, "Settlements that reached the server."),
    (
        "settlements_dropped_total",
        Counter,
        Unit::Count,
        "Settlements that did not reach the server.",
    ),
    (
        "given_back_total",
        Counter,
        Unit::Count,
        "Charges given back, because nobody waited for their answer any more.",
    ),
    (
        "unanswered_total",
        Counter,
        Unit::Count,
        "Charges of which nobody will know whether they were made.",
    ),
    (
        "places_lost_total",
        Counter,
        Unit::Count,
        "Rows in which the server had forgotten places that are held here.",
    ),
    ("leases_total", Counter, Unit::Count, "Leases that the server granted or refused."),
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
        "Requests decided out of leases, without asking, by outcome.",
    ),
    (
        "lease_passed_on_total",
        Counter,
        Unit::Count,
        "Charges that could not be leased and went to the server as they were.",
    ),
];

pub(super) fn describe() {
    for (name, kind, unit, text) in METRICS {
        let name = format!("sluicegate_redis_{name}");
        match kind {
            Counter => metrics::describe_counter!(name, unit, text),
            Gauge => metrics::describe_gauge!(name, unit, text),
            Histogram => metrics::describe_histogram!(name, unit, text),
        }
    }
}
