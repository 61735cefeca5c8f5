//! Charges that are settled when the response is known.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::CLIENT;
use super::common::{app, get, header, secs, send, store};
use http::{Request, Response};
use sluicegate::response::LazyDecision;
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
async fn only_failures_are_counted_if_told_so() {
    let (store, _clock) = store();
    let rule = Limit::per_hour(2).by(CLIENT).count_if(|status| status == 401);
    let app = app(RateLimitLayer::new(rule).store(store));
    for _ in 0..10 {
        assert_eq!(send(&app, "/200", "alice").await.status(), 200);
    }
    assert_eq!(send(&app, "/401", "alice").await.status(), 401);
    assert_eq!(send(&app, "/401", "alice").await.status(), 401);
    assert_eq!(send(&app, "/401", "alice").await.status(), 429);
    assert_eq!(send(&app, "/200", "alice").await.status(), 429);
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

#[tokio::test]
async fn a_charge_is_settled_to_what_the_response_cost() {
    let (store, clock) = store();
    let rule = Limit::fixed_window(100, secs(60))
        .by(CLIENT)
        .cost(10)
        .settle_cost(|reply| std::str::from_utf8(reply.header("x-cost")?).ok()?.parse().ok());
    let layer = RateLimitLayer::new(rule).store(store).extensions(true);
    let handler = tower::service_fn(|request: Request<String>| async move {
        let cost = request.uri().path().trim_start_matches('/').to_owned();
        let response = Response::builder().header("x-cost", cost).body(String::new());
        Ok::<_, std::convert::Infallible>(response.unwrap())
    });
    let app = tower::ServiceBuilder::new().layer(layer).service(handler);
    let cost = |cost: u64| app.clone().oneshot(get(&format!("/{cost}"), "alice"));

    assert_eq!(cost(1).await.unwrap().status(), 200);
    assert_eq!(cost(0).await.unwrap().status(), 200);
    // 1 is spent; an estimate of 10 turns out as 150: beyond the limit.
    assert_eq!(cost(150).await.unwrap().status(), 200);
    assert_eq!(cost(1).await.unwrap().status(), 429);
    clock.advance(secs(60));
    // 51 were spent on this window's account.
    let served = cost(10).await.unwrap();
    assert_eq!(served.status(), 200);
    assert_eq!(served.extensions().get::<LazyDecision>().unwrap().decision().remaining(), Some(39));
}
