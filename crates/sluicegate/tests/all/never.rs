//! Requests that cost more than a limit ever admits.

use super::common::{CLIENT, app, get, header, send, store};
use http::Request;
use sluicegate::cost::content_length;
use sluicegate::response::LazyDecision;
use sluicegate::service::AcquireError;
use sluicegate::{Limit, Limiter, RateLimitLayer, Rejection};
use tokio_test::{assert_ready_err, task};
use tower::ServiceExt;

/// The answer to such a request, which has to say that coming back is useless.
fn assert_told(answer: &super::common::TextResponse, status: u16, limit: &str) {
    assert_eq!(answer.status(), status);
    assert_eq!(header(answer, "retry-after"), "", "waiting does not help");
    assert_eq!(header(answer, "cache-control"), "no-store");
    let body = answer.body();
    assert!(body.contains("do not try again"), "{body}");
    assert!(body.contains(&format!(r#""status":{status}"#)), "{body}");
    assert!(body.contains(&format!(r#""violated-policies":["{limit}"]"#)), "{body}");
    assert!(!body.contains("quota-exceeded"), "{body}");
}

#[tokio::test]
async fn a_cost_that_never_fits_is_422_without_a_time_to_come_back() {
    let (store, _clock) = store();
    let app = app(RateLimitLayer::new(Limit::per_minute(5).by(CLIENT).cost(9)).store(store));
    for _ in 0..2 {
        let answer = send(&app, "/", "alice").await;
        assert_told(&answer, 422, "5/minute");
        assert_eq!(header(&answer, "ratelimit"), r#""5/minute";r=5;t=0"#);
        assert_eq!(header(&answer, "ratelimit-policy"), r#""5/minute";q=5;w=60"#);
        assert!(
            answer
                .extensions()
                .get::<LazyDecision>()
                .is_some_and(|lazy| lazy.decision().never_fits())
        );
    }
}

fn upload(bytes: u64) -> Request<String> {
    Request::post("/")
        .header("x-client", "alice")
        .header("content-length", bytes)
        .body(String::new())
        .unwrap()
}

#[tokio::test]
async fn a_body_that_is_longer_than_the_limit_ever_admits_is_413() {
    let (store, _clock) = store();
    let rule = (
        Limit::per_second(10).by(CLIENT).cost(content_length().per(1_000)),
        Limit::per_minute(60).by(CLIENT),
    );
    let app = app(RateLimitLayer::new(rule).store(store));
    assert_told(&app.clone().oneshot(upload(50_000)).await.unwrap(), 413, "10/second");
    assert_eq!(app.clone().oneshot(upload(10_000)).await.unwrap().status(), 200);
    // A cost that fits later is still told when.
    let later = app.clone().oneshot(upload(10_000)).await.unwrap();
    assert_eq!((later.status().as_u16(), header(&later, "retry-after")), (429, "1"));
}

#[tokio::test]
async fn the_status_of_what_never_fits_can_be_chosen() {
    let (store, _clock) = store();
    let rule = Limit::per_minute(5).by(CLIENT).cost(9);
    let app = app(RateLimitLayer::new(rule).store(store).never_fits_status(403));
    assert_told(&send(&app, "/", "alice").await, 403, "5/minute");
}

#[test]
#[should_panic(expected = "429 does not tell the client")]
fn a_status_that_invites_to_try_again_is_refused() {
    let _ = RateLimitLayer::new(Limit::per_minute(5).by(CLIENT)).never_fits_status(429);
}

#[tokio::test]
async fn a_queue_never_lets_what_never_fits_wait() {
    let (store, _clock) = store();
    let layer = RateLimitLayer::new(Limit::per_minute(5).by(CLIENT).cost(9))
        .store(store)
        .rejection(Rejection::queue(std::time::Duration::from_secs(3_600)));
    let app = app(layer.clone());
    let mut answer = task::spawn(app.oneshot(get("/", "alice")));
    let answer = tokio_test::assert_ready!(answer.poll()).unwrap();
    assert_told(&answer, 422, "5/minute");
    assert_eq!(layer.waiting(), 0);
}

#[test]
fn acquire_refuses_at_once_what_never_fits() {
    let (store, _clock) = store();
    let limiter = Limiter::new(Limit::per_minute(5)).store(store);
    let mut never =
        task::spawn(limiter.acquire_n("alice", 9, std::time::Duration::from_secs(1 << 40)));
    match assert_ready_err!(never.poll()) {
        error @ AcquireError::NeverFits(_) => {
            assert!(error.to_string().contains("can never be admitted"), "{error}");
        }
        error => panic!("{error}"),
    }
    assert!(limiter.spend("alice", 9).unwrap().never_fits());
    assert!(limiter.take_n("alice", 9).now().unwrap().never_fits());
}
