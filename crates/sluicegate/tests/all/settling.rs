//! Charges that are settled when the response is known.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::common::CLIENT;
use super::common::{app, get, header, send, store};
use http::Request;
use sluicegate::{Limit, RateLimitLayer};
use tower::ServiceExt;

#[tokio::test]
async fn an_outer_layer_gives_its_charge_back_when_an_inner_one_refuses() {
    let (store, _clock) = store();
    let strict =
        RateLimitLayer::new(Limit::per_hour(1).named("strict").by(CLIENT)).store(store.clone());
    let wide = RateLimitLayer::new(Limit::per_hour(3).named("wide").by(CLIENT)).store(store);
    let wide_alone = app(wide.clone());
    let both = app(tower::ServiceBuilder::new().layer(wide).layer(strict).into_inner());

    let served = send(&both, "/", "alice").await;
    let items: Vec<_> = served.headers().get_all("ratelimit").iter().collect();
    assert_eq!(items, [r#""strict";r=0;t=3600"#, r#""wide";r=2;t=1200"#]);
    for _ in 0..5 {
        let refused = send(&both, "/", "alice").await;
        assert_eq!(refused.status(), 429);
        assert_eq!(header(&refused, "ratelimit"), r#""strict";r=0;t=3600"#);
    }
    assert_eq!(send(&wide_alone, "/", "alice").await.status(), 200);
    assert_eq!(send(&wide_alone, "/", "alice").await.status(), 200);
    assert_eq!(send(&wide_alone, "/", "alice").await.status(), 429);
}

#[tokio::test]
async fn parallel_guesses_cannot_slip_through() {
    let (store, _clock) = store();
    let rule = Limit::per_hour(3).by(CLIENT).count_if(|status| status == 401);
    let layer = RateLimitLayer::new(rule).store(store);
    // No request is answered before all have arrived.
    let reached = Arc::new(AtomicUsize::new(0));
    let guesses = {
        let reached = Arc::clone(&reached);
        app(tower::ServiceBuilder::new()
            .layer(layer)
            .map_request(move |request: Request<String>| {
                reached.fetch_add(1, Ordering::Relaxed);
                request
            })
            .into_inner())
    };
    let mut tasks: Vec<_> = (0..20)
        .map(|_| tokio_test::task::spawn(guesses.clone().oneshot(get("/401", "mallory"))))
        .collect();
    for task in &mut tasks {
        let _ = task.poll();
    }
    assert_eq!(reached.load(Ordering::Relaxed), 3);
}
