//! What clients get: the status, the fields, and when to come back.

use super::CLIENT;
use super::common::{app, header, secs, send, store};
use sluicegate::limit::Limits;
use sluicegate::{Fields, Limit, RateLimitLayer};

#[tokio::test]
async fn what_exceeds_the_limit_is_answered_with_429_and_when_to_come_back() {
    let (store, clock) = store();
    let app = app(RateLimitLayer::new(Limit::per_minute(2).by(CLIENT)).store(store));

    let first = send(&app, "/", "alice").await;
    assert_eq!(first.status(), 200);
    assert_eq!(header(&first, "ratelimit-policy"), r#""2/minute";q=2;w=60"#);
    assert_eq!(header(&first, "ratelimit"), r#""2/minute";r=1;t=30"#);
    assert_eq!(send(&app, "/", "alice").await.status(), 200);

    let refused = send(&app, "/", "alice").await;
    assert_eq!(refused.status(), 429);
    assert_eq!(header(&refused, "retry-after"), "30");
    assert_eq!(header(&refused, "ratelimit"), r#""2/minute";r=0;t=30"#);
    assert_eq!(header(&refused, "cache-control"), "no-store");
    assert_eq!(header(&refused, "content-type"), "application/problem+json");
    assert!(refused.body().contains("quota-exceeded"), "{}", refused.body());

    assert_eq!(send(&app, "/", "bob").await.status(), 200);
    clock.advance(secs(30));
    assert_eq!(send(&app, "/", "alice").await.status(), 200);
    assert_eq!(send(&app, "/", "alice").await.status(), 429);
}

#[tokio::test]
async fn retry_after_rounded_up_admits_who_waits_so_long() {
    let (store, clock) = store();
    let app = app(RateLimitLayer::new(Limit::per_second(3).by(CLIENT)).store(store));
    for _ in 0..3 {
        assert_eq!(send(&app, "/", "alice").await.status(), 200);
    }
    let refused = send(&app, "/", "alice").await;
    let seconds: u64 = header(&refused, "retry-after").parse().unwrap();
    assert!(seconds >= 1);
    clock.advance(secs(seconds));
    assert_eq!(send(&app, "/", "alice").await.status(), 200);
}

#[tokio::test]
async fn several_limits_are_charged_all_or_none() {
    let (store, clock) = store();
    let limits = Limits::from([Limit::fixed_window(2, secs(1)), Limit::fixed_window(3, secs(60))]);
    let app = app(RateLimitLayer::new(limits.by(CLIENT)).store(store));
    let mut served = 0;
    for _ in 0..10 {
        for _ in 0..5 {
            served += usize::from(send(&app, "/", "alice").await.status() == 200);
        }
        clock.advance(secs(1));
    }
    assert_eq!(served, 3, "refusals by the short limit were charged to the long one");
}

#[tokio::test]
async fn fields_can_be_chosen() {
    let (store, _clock) = store();
    let layer = RateLimitLayer::new(Limit::per_minute(2).soft(1).by(CLIENT)).store(store);
    let off = app(layer.clone().fields(Fields::NONE));
    let both = app(layer.fields(Fields::DRAFT.and(Fields::X_RATE_LIMIT)));

    let first = send(&off, "/", "alice").await;
    assert!(first.headers().is_empty(), "{:?}", first.headers());

    let second = send(&both, "/", "alice").await;
    assert_eq!(header(&second, "x-ratelimit-limit"), "2");
    assert_eq!(header(&second, "x-ratelimit-remaining"), "0");
    assert_eq!(header(&second, "x-ratelimit-reset"), "30");
    assert!(!header(&second, "x-ratelimit-warning").is_empty());
    assert_eq!(header(&second, "ratelimit"), r#""2/minute";r=0;t=30;sluicegate-soft"#);

    let refused = send(&off, "/", "alice").await;
    assert_eq!(header(&refused, "retry-after"), "30");
    assert_eq!(header(&refused, "ratelimit"), "");
}

#[tokio::test]
async fn the_older_fields_speak_of_the_innermost_layer() {
    let (store, _clock) = store();
    let fields = Fields::X_RATE_LIMIT;
    let wide = RateLimitLayer::new(Limit::per_minute(1_000).by(CLIENT)).store(store.clone());
    let strict = RateLimitLayer::new(Limit::per_minute(2).by(CLIENT)).store(store);
    let layers =
        tower::ServiceBuilder::new().layer(wide.fields(fields)).layer(strict.fields(fields));
    let served = send(&app(layers.into_inner()), "/", "alice").await;
    assert_eq!(header(&served, "x-ratelimit-limit"), "2");
    assert_eq!(header(&served, "x-ratelimit-remaining"), "1");
    assert_eq!(served.headers().get_all("x-ratelimit-limit").iter().count(), 1);
}
