//! What operators see: who is refused most, and what is measured.

mod common;

use common::{app, statuses, store};
use sluicegate_actix::observe::Watch;
use sluicegate_actix::{Header, Limit, RateLimit};

const CLIENT: Header = Header("x-client");

#[actix_web::test]
async fn a_watch_is_told_who_is_refused() {
    let watch = Watch::new(8).redacted(b"secret");
    let (store, _clock) = store();
    let limit = RateLimit::new(Limit::per_hour(1).named("strict").by(CLIENT));
    let app = app(limit.store(store).watch(&watch)).await;
    assert_eq!(statuses(&app, "/", 3).await, [200, 429, 429]);
    let shown = watch.snapshot().remove(0);
    assert_eq!((shown.policy.as_str(), shown.refusals), ("strict", 2));
    assert!(shown.keys[0].who.starts_with('$'), "{shown:?}");
}

#[cfg(feature = "metrics")]
#[test]
fn decisions_are_counted() {
    use metrics_util::debugging::{DebugValue, DebuggingRecorder};

    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        actix_web::rt::System::new().block_on(async {
            let (store, _clock) = store();
            let app = app(RateLimit::new(Limit::per_hour(3).by(CLIENT)).store(store)).await;
            assert_eq!(statuses(&app, "/", 5).await, [200, 200, 200, 429, 429]);
        });
    });
    let mut counts = Vec::new();
    for (_, _, _, value) in snapshotter.snapshot().into_vec() {
        if let DebugValue::Counter(count @ 1..) = value {
            counts.push(count);
        }
    }
    counts.sort_unstable();
    assert_eq!(counts, [2, 3]);
}
