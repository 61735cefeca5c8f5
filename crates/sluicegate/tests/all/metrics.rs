//! Metrics, through the `metrics` facade.

use super::common::{CLIENT, app, send, store};
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use sluicegate::{Limit, Limiter, RateLimitLayer};

/// The verdicts that were counted, with their policies.
fn counted(run: impl AsyncFnOnce()) -> Vec<(String, u64)> {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    metrics::with_local_recorder(&recorder, || runtime.block_on(run()));
    let mut counted = Vec::new();
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        if let DebugValue::Counter(count @ 1..) = value {
            let labels: Vec<_> = key.key().labels().map(|label| label.value()).collect();
            counted.push((labels.join(" "), count));
        }
    }
    counted.sort();
    counted
}

#[test]
fn a_layer_counts_what_it_decides() {
    let counted = counted(async || {
        let (store, _clock) = store();
        let limit = Limit::per_hour(3).named("api");
        let app = app(RateLimitLayer::new(limit.by(CLIENT)).store(store));
        for _ in 0..5 {
            send(&app, "/", "alice").await;
        }
    });
    assert_eq!(counted, [("api admitted".to_owned(), 3), ("api refused".to_owned(), 2)]);
}

#[test]
fn a_limiter_counts_what_it_decides_but_for_what_is_only_spent() {
    let counted = counted(async || {
        let limiter = Limiter::new(Limit::per_hour(2).named("jobs"));
        for _ in 0..3 {
            let _ = limiter.take("alice").now().unwrap();
            let _ = limiter.peek("alice").now().unwrap();
            limiter.spend("bob", 1).unwrap();
        }
    });
    assert_eq!(counted, [("jobs admitted".to_owned(), 2), ("jobs refused".to_owned(), 1)]);
}
