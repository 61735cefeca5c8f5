//! The answers to clients, and what is left for handlers and middleware.

mod common;

use actix_web::test::TestRequest;
use actix_web::{App, HttpRequest, HttpResponse, test, web};
use common::{app, body, get, handler, header, secs, send, statuses, store};
use sluicegate_actix::adapter::Refusal;
use sluicegate_actix::key::{Const, Optional};
use sluicegate_actix::limit::Limits;
use sluicegate_actix::store::OnStoreError;
use sluicegate_actix::{
    CurrentDecision, Fields, First, Header, Ip, Limit, Memory, RateLimit, Rejection, Route,
};

const CLIENT: Header = Header("x-client");

#[actix_web::test]
async fn what_exceeds_the_limit_is_answered_with_429_and_when_to_come_back() {
    let (store, clock) = store();
    let limit = RateLimit::new(Limit::per_minute(2).by(CLIENT)).store(store);
    let counts = limit.clone();
    let app = app(limit).await;

    let first = send(&app, "/", "alice").await;
    assert_eq!(first.status(), 200);
    assert_eq!(header(&first, "ratelimit-policy"), r#""2/minute";q=2;w=60"#);
    assert_eq!(header(&first, "ratelimit"), r#""2/minute";r=1;t=30"#);
    assert_eq!(body(first).await, "all");
    send(&app, "/", "alice").await;

    let refused = send(&app, "/", "alice").await;
    assert_eq!(refused.status(), 429);
    assert_eq!(header(&refused, "retry-after"), "30");
    assert_eq!(header(&refused, "cache-control"), "no-store");
    assert_eq!(header(&refused, "content-type"), "application/problem+json");
    assert_eq!(header(&refused, "ratelimit"), r#""2/minute";r=0;t=30"#);
    assert!(body(refused).await.contains("quota-exceeded"));
    assert_eq!(counts.counts().refused, 1);

    assert_eq!(send(&app, "/", "bob").await.status(), 200, "another key has another budget");
    clock.advance(secs(30));
    assert_eq!(send(&app, "/", "alice").await.status(), 200);
}

#[actix_web::test]
async fn several_limits_are_charged_all_or_none() {
    let (store, clock) = store();
    let limits = Limits::from([Limit::per_hour(3), Limit::per_second(1)]);
    let app = app(RateLimit::new(limits.by(CLIENT)).store(store)).await;
    assert_eq!(statuses(&app, "/", 9).await, [200, 429, 429, 429, 429, 429, 429, 429, 429]);
    clock.advance(secs(1));
    assert_eq!(statuses(&app, "/", 2).await, [200, 429]);
    clock.advance(secs(1));
    assert_eq!(statuses(&app, "/", 1).await, [200], "refusals have charged the hour");
}

#[actix_web::test]
async fn fields_can_be_chosen() {
    let (store, _clock) = store();
    let limit = RateLimit::new(Limit::per_minute(2).soft(1).by(CLIENT)).store(store);
    let off = app(limit.clone().fields(Fields::NONE)).await;
    let both = app(limit.fields(Fields::DRAFT.and(Fields::X_RATE_LIMIT))).await;

    let first = send(&off, "/", "alice").await;
    assert_eq!(header(&first, "ratelimit"), "");
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

#[actix_web::test]
async fn a_missing_key_is_the_clients_400_or_the_servers_500_and_never_unlimited() {
    let keyless = || TestRequest::get().uri("/").to_request();

    let by_header = app(RateLimit::new(Limit::per_minute(1).by(CLIENT))).await;
    let missing = test::call_service(&by_header, keyless()).await;
    assert_eq!(missing.status(), 400);
    assert!(body(missing).await.contains("x-client"));

    // A Unix socket or a test request: there is no peer address. It is no panic.
    let by_peer = RateLimit::new(Limit::per_minute(1).by(Ip::peer()));
    let counts = by_peer.clone();
    let missing = test::call_service(&app(by_peer).await, keyless()).await;
    assert_eq!(missing.status(), 500);
    assert_eq!(counts.counts().keyless, 1);

    let by_route = app(RateLimit::new(Limit::per_minute(1).by(Route))).await;
    assert_eq!(test::call_service(&by_route, keyless()).await.status(), 500);
    let or_else = RateLimit::new(Limit::per_minute(1).by(First((Route, Const("no route")))));
    assert_eq!(statuses(&app(or_else).await, "/", 2).await, [200, 429]);

    let optional = app(RateLimit::new(Limit::per_minute(1).by(Optional(CLIENT)))).await;
    for _ in 0..3 {
        let served = test::call_service(&optional, keyless()).await;
        assert_eq!(served.status(), 200);
        assert_eq!(header(&served, "ratelimit"), "");
    }
}

#[actix_web::test]
async fn the_operator_can_replace_the_whole_response() {
    let (store, _clock) = store();
    let limit = RateLimit::new(Limit::per_minute(1).by(CLIENT)).store(store).respond_with(
        |refusal: &Refusal, request: &HttpRequest| {
            HttpResponse::ImATeapot().insert_header(("retry-after", "99")).body(format!(
                "{} at {}",
                refusal.status(),
                request.path()
            ))
        },
    );
    let app = app(limit).await;
    send(&app, "/tea", "alice").await;
    let refused = send(&app, "/tea", "alice").await;
    assert_eq!(refused.status(), 418);
    assert_eq!(header(&refused, "retry-after"), "99", "what the operator said was overwritten");
    assert_eq!(body(refused).await, "429 at /tea");
}

#[actix_web::test]
async fn a_response_of_ones_own_for_too_many_leaves_other_refusals_alone() {
    let (store, _clock) = store();
    let limit = RateLimit::new(Limit::per_minute(1).by(CLIENT)).store(store).respond_to_too_many(
        |refusal: &Refusal, _: &HttpRequest| {
            HttpResponse::ImATeapot().body(format!("was {}", refusal.status()))
        },
    );
    let app = app(limit).await;
    send(&app, "/", "alice").await;
    let refused = send(&app, "/", "alice").await;
    assert_eq!(refused.status(), 418);
    assert_eq!(header(&refused, "retry-after"), "60");
    assert_eq!(body(refused).await, "was 429");
    let missing = test::call_service(&app, TestRequest::get().uri("/").to_request()).await;
    assert_eq!(missing.status(), 400);
    assert_eq!(header(&missing, "content-type"), "application/problem+json");
}

#[actix_web::test]
async fn redirects_go_where_the_operator_said_without_retry_after() {
    let (store, _clock) = store();
    let limit = RateLimit::new(Limit::per_minute(1).by(CLIENT))
        .store(store)
        .rejection(Rejection::redirect("https://busy.example.com/"));
    let counts = limit.clone();
    let app = app(limit).await;
    send(&app, "/", "alice").await;
    let sent = send(&app, "/", "alice").await;
    assert_eq!(sent.status(), 307);
    assert_eq!(header(&sent, "location"), "https://busy.example.com/");
    assert_eq!(header(&sent, "retry-after"), "");
    assert_eq!(counts.counts().redirected, 1);
}

#[actix_web::test]
async fn degraded_requests_are_served_less() {
    let (store, _clock) = store();
    let limit = RateLimit::new(Limit::per_minute(1).by(CLIENT))
        .store(store)
        .rejection(Rejection::degrade());
    let counts = limit.clone();
    let app = app(limit).await;
    assert_eq!(body(send(&app, "/", "alice").await).await, "all");
    let degraded = send(&app, "/", "alice").await;
    assert_eq!(degraded.status(), 200);
    assert!(
        !degraded
            .response()
            .extensions()
            .get::<sluicegate_actix::response::LazyDecision>()
            .unwrap()
            .decision()
            .is_admitted()
    );
    assert_eq!(body(degraded).await, "less");
    assert_eq!(counts.counts().degraded, 1);
}

#[actix_web::test]
async fn shadow_mode_refuses_nothing_and_reports_all() {
    let (store, _clock) = store();
    let limit =
        RateLimit::new(Limit::per_minute(1).by(CLIENT)).store(store).rejection(Rejection::shadow());
    let counts = limit.clone();
    assert_eq!(statuses(&app(limit).await, "/", 5).await, [200; 5]);
    assert_eq!((counts.counts().shadowed, counts.counts().refused), (4, 0));
}

#[actix_web::test]
async fn handlers_extract_the_decision_where_there_is_one() {
    async fn told(CurrentDecision(decision): CurrentDecision) -> String {
        decision.remaining().unwrap().to_string()
    }
    async fn perhaps(decision: Option<CurrentDecision>) -> String {
        decision.map_or("free", |_| "limited").to_owned()
    }
    let limit = || RateLimit::new(Limit::per_minute(5).by(CLIENT));
    let app = test::init_service(
        App::new()
            .service(web::resource("/told").wrap(limit()).to(told))
            .service(web::resource("/perhaps").wrap(limit()).to(perhaps))
            .service(web::resource("/off").wrap(limit().extensions(false)).to(perhaps))
            .route("/free", web::get().to(perhaps))
            .route("/unlimited", web::get().to(told)),
    )
    .await;
    assert_eq!(body(send(&app, "/told", "alice").await).await, "4");
    assert_eq!(body(send(&app, "/perhaps", "alice").await).await, "limited");
    assert_eq!(body(send(&app, "/off", "alice").await).await, "free");
    assert_eq!(body(send(&app, "/free", "alice").await).await, "free");
    assert_eq!(send(&app, "/unlimited", "alice").await.status(), 500);
}

#[actix_web::test]
async fn an_outer_limit_gives_its_charge_back_when_an_inner_one_refuses() {
    let (store, _clock) = store();
    let strict = RateLimit::new(Limit::per_hour(1).named("strict").by(CLIENT)).store(store.clone());
    let wide = RateLimit::new(Limit::per_hour(3).named("wide").by(CLIENT)).store(store);
    let wide_alone = app(wide.clone()).await;
    let both =
        test::init_service(App::new().wrap(strict).wrap(wide).default_service(web::to(handler)))
            .await;

    let served = send(&both, "/", "alice").await;
    let items: Vec<_> = served.headers().get_all("ratelimit").collect();
    assert_eq!(items, [r#""strict";r=0;t=3600"#, r#""wide";r=2;t=1200"#]);
    for _ in 0..5 {
        let refused = send(&both, "/", "alice").await;
        assert_eq!(refused.status(), 429);
        let items: Vec<_> = refused.headers().get_all("ratelimit").collect();
        assert_eq!(items, [r#""strict";r=0;t=3600"#]);
    }
    assert_eq!(statuses(&wide_alone, "/", 3).await, [200, 200, 429]);
}

#[actix_web::test]
async fn a_full_store_is_never_too_many_requests() {
    let (_, clock) = store();
    let tiny = || Memory::builder().capacity(1).clock(&clock).build();
    let limit = Limit::per_hour(1).when_full(sluicegate_actix::limit::WhenFull::Admit);
    let limit = RateLimit::new(limit.by(CLIENT));
    let open = limit.clone().store(tiny());
    let counts = open.clone();
    let open = app(open).await;
    let closed = app(limit.store(tiny()).on_store_error(OnStoreError::Refuse)).await;
    let mut unavailable = 0;
    for client in 0..200 {
        let client = client.to_string();
        assert_eq!(test::call_service(&open, get("/", &client)).await.status(), 200);
        let status = test::call_service(&closed, get("/", &client)).await.status();
        assert_ne!(status, 429);
        unavailable += usize::from(status == 503);
    }
    assert!(unavailable > 0);
    assert!(counts.counts().store_failures > 0);
}
