//! What a store over an engine tells a recorder of metrics.

use std::collections::BTreeMap;
use std::time::Duration;

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use sluicegate_core::adapter::{Answer, Charge};
use sluicegate_core::store::Store as _;
use sluicegate_core::{Limit, ManualClock};
use sluicegate_swap::{Engine, Swap};
use sluicegate_tests::key;

use crate::engine::{Lies, MadeUp};
use crate::store::by_hand;

const NAMES: [&str; 13] = [
    "decisions_total",
    "failures_total",
    "loads_total",
    "swaps_total",
    "conflicts_total",
    "settled_total",
    "settlements_dropped_total",
    "given_back_total",
    "unanswered_total",
    "places_lost_total",
    "breaker_openings_total",
    "breaker_open",
    "call_seconds",
];

async fn take<E: Engine>(store: &Swap<E>, limit: Limit) -> bool {
    match store.take(&Charge::of(limit, key("alice"), 1)) {
        Answer::Now(outcome) => outcome.is_ok_and(|outcome| outcome.is_admitted()),
        Answer::Later(future) => future.await.is_ok_and(|outcome| outcome.is_admitted()),
    }
}

/// What is recorded of `work`, by name and label, after `sluicegate_swap_`.
fn recorded(work: impl Future<Output = ()>) -> (BTreeMap<String, f64>, Vec<String>) {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    // One thread, because the recorder is that of this thread.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    metrics::with_local_recorder(&recorder, || runtime.block_on(work));
    let (mut values, mut described) = (BTreeMap::new(), Vec::new());
    for (key, unit, text, value) in snapshotter.snapshot().into_vec() {
        let labels = key.key().labels().map(|label| label.value().to_owned());
        let name = key.key().name().strip_prefix("sluicegate_swap_").expect("a metric of ours");
        let name = [name.to_owned()].into_iter().chain(labels).collect::<Vec<_>>().join(" ");
        if unit.is_some() && text.is_some_and(|text| !text.is_empty()) {
            described.push(name.clone());
        }
        let value = match value {
            DebugValue::Counter(count) => count as f64,
            DebugValue::Gauge(value) => value.into_inner(),
            DebugValue::Histogram(values) => values.len() as f64,
        };
        values.insert(name, value);
    }
    (values, described)
}

#[test]
fn decisions_calls_and_the_breaker_are_measured() {
    let (values, described) = recorded(async {
        let clock = ManualClock::new();
        let engine = MadeUp::new(&clock);
        let refusals = Duration::from_secs(1);
        let store = by_hand(engine.clone(), &clock).remember_refusals(refusals).build();
        let limit = Limit::per_hour(2);
        assert!(take(&store, limit).await && take(&store, limit).await);
        assert!(!take(&store, limit).await, "by a row");
        assert!(!take(&store, limit).await, "by a row that is remembered");
        // From here on, each call fails.
        let away = engine.lies(Lies { away: 1_000, ..Lies::default() }, 1);
        let hour = Duration::from_secs(3_600);
        let away = by_hand(away, &clock).prefix("away:").breaker(1, hour, hour).build();
        assert!(!take(&away, limit).await);
    });
    let value = |name: &str| values.get(name).copied().unwrap_or_default();
    assert_eq!(value("decisions_total admitted"), 2.0, "{values:?}");
    assert_eq!(value("decisions_total refused") + value("decisions_total remembered"), 2.0);
    assert_eq!(value("failures_total"), 1.0, "{values:?}");
    assert_eq!(value("breaker_open sluicegate:"), 0.0);
    assert_eq!(value("breaker_open away:"), 1.0, "{values:?}");
    assert_eq!(value("breaker_openings_total"), 1.0, "{values:?}");
    let calls = value("loads_total") + value("swaps_total");
    assert!(calls >= 3.0 && value("call_seconds") == calls, "{values:?}");
    for name in values.keys() {
        assert!(described.contains(name), "{name} is not described");
        let name = name.split(' ').next().expect("a name");
        assert!(NAMES.contains(&name), "{name} is new: add it to the documents");
    }
}

#[test]
fn every_metric_of_an_engine_is_documented_and_in_the_dashboard() {
    let dashboard = include_str!("../../../docs/grafana.json");
    let front = include_str!("../../../crates/sluicegate-swap/src/lib.rs").replace("\n//! ", " ");
    for name in NAMES {
        assert!(dashboard.contains(&format!("sluicegate_swap_{name}")), "{name} is in no panel");
        assert!(front.contains(&format!("`sluicegate_swap_{name}`")), "{name} is not documented");
    }
}
