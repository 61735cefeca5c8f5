use std::sync::{Arc, Mutex};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};

use sluicegate_core::clock::Clock;

use super::*;
use crate::observe::counts::Counters;

/// Records what is reported, as `name{label="value"} number`.
#[derive(Default)]
struct Notes {
    notes: Arc<Mutex<Vec<String>>>,
    described: Mutex<std::collections::BTreeSet<String>>,
}

struct Note {
    name: String,
    notes: Arc<Mutex<Vec<String>>>,
}

impl Note {
    fn write(&self, value: f64) {
        self.notes.lock().unwrap().push(format!("{} {value}", self.name));
    }
}

impl CounterFn for Note {
    fn increment(&self, value: u64) {
        self.write(value as f64);
    }

    fn absolute(&self, value: u64) {
        self.write(value as f64);
    }
}

impl GaugeFn for Note {
    fn increment(&self, value: f64) {
        self.write(value);
    }

    fn decrement(&self, value: f64) {
        self.write(-value);
    }

    fn set(&self, value: f64) {
        self.write(value);
    }
}

impl HistogramFn for Note {
    fn record(&self, value: f64) {
        self.write(value);
    }
}

impl Notes {
    fn note(&self, key: &Key) -> Arc<Note> {
        let labels = key.labels().map(|label| format!("{}={:?}", label.key(), label.value()));
        let labels = labels.collect::<Vec<_>>().join(",");
        let name = format!("{}{{{labels}}}", key.name());
        Arc::new(Note { name, notes: Arc::clone(&self.notes) })
    }

    fn describe(&self, name: &KeyName) {
        self.described.lock().unwrap().insert(name.as_str().to_owned());
    }
}

impl Recorder for Notes {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.describe(&name);
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.describe(&name);
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.describe(&name);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.note(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.note(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.note(key))
    }
}

#[test]
fn what_happens_is_measured_under_the_documented_names() {
    let recorder = Notes::default();
    let notes = Arc::clone(&recorder.notes);
    metrics::with_local_recorder(&recorder, || {
        let counters = Counters::default();
        counters.decided(true, Duration::from_millis(500));
        counters.decided(false, Duration::from_millis(250));
        counters.refused_locally();
        counters.failed(&Failure::new(FailureKind::OutOfMemory));
        counters.connected("host:1");
        counters.breaker_opened("host:1", Duration::from_secs(1));
        counters.breaker_closed("host:1");
        counters.each.scripts_loaded.add(1);
        counters.each.settled.add(1);
        counters.settlement_dropped(&Failure::new(FailureKind::TooSlow));
        counters.each.given_back.add(1);
        counters.each.unanswered.add(1);
        server_is_known("host:1");
        waited(Duration::from_millis(125));
        let since = LeaseCounts { leases: 1, leased: 9, spent: 7, ..LeaseCounts::default() };
        let since = LeaseCounts { given_back: 1, expired: 1, ..since };
        leases(LeaseCounts { admitted_here: 5, refused_here: 2, ..since });
        passed_on();
        counters.places_lost(3);
    });
    let expected = r#"
        decisions_total{outcome="admitted"} 1
        decision_seconds{} 0.5
        decisions_total{outcome="refused"} 1
        decision_seconds{} 0.25
        decisions_total{outcome="refused"} 1
        refused_locally_total{} 1
        failures_total{kind="out_of_memory"} 1
        connections_total{} 1
        breaker_openings_total{} 1
        breaker_open{server="host:1"} 1
        breaker_open{server="host:1"} 0
        scripts_loaded_total{} 1
        settled_total{} 1
        settlements_dropped_total{} 1
        given_back_total{} 1
        unanswered_total{} 1
        breaker_open{server="host:1"} 0
        decision_seconds{} 0.125
        leases_total{} 1
        lease_tokens_total{event="taken"} 9
        lease_tokens_total{event="spent"} 7
        lease_tokens_total{event="given_back"} 1
        lease_tokens_total{event="expired"} 1
        lease_decisions_total{outcome="admitted"} 5
        lease_decisions_total{outcome="refused"} 2
        lease_passed_on_total{} 1
        places_lost_total{} 3
    "#;
    let expected: Vec<_> = expected
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| format!("sluicegate_redis_{line}"))
        .collect();
    assert_eq!(*notes.lock().unwrap(), expected);
}

/// Every metric name that is recorded here. Counters are described where they are declared.
fn measured() -> std::collections::BTreeSet<String> {
    let source = include_str!("mod.rs");
    let names = source.split("!(\"sluicegate_redis_").skip(1);
    let names = names.filter_map(|rest| rest.split_once('"'));
    names.map(|(name, _)| format!("sluicegate_redis_{name}")).collect()
}

#[test]
fn every_metric_is_described_and_is_in_the_dashboard() {
    let recorder = Notes::default();
    metrics::with_local_recorder(&recorder, || Counters::new(&Clock::default()));
    let described = recorder.described.into_inner().unwrap();
    let by_hand = names::METRICS.map(|(name, ..)| format!("sluicegate_redis_{name}")).into();
    let counters: std::collections::BTreeSet<_> = described.difference(&by_hand).cloned().collect();
    assert_eq!(counters.len(), 10, "{counters:?}");
    // Counters are recorded where they are declared, and some of them here too.
    assert_eq!(
        measured().union(&counters).cloned().collect::<Vec<_>>(),
        Vec::from_iter(described.clone())
    );
    let dashboard = include_str!("../../../../../docs/grafana.json");
    let asked: Vec<_> = dashboard.lines().filter(|line| line.contains("\"expr\"")).collect();
    for name in &described {
        assert!(asked.iter().any(|line| line.contains(name)), "{name} is in no panel");
    }
    let documentation = include_str!("../../lib.rs").replace("\n//! ", " ");
    for name in described {
        assert!(documentation.contains(&format!("`{name}`")), "{name} is not documented");
    }
}
