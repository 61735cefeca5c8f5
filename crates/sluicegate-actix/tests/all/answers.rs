//! The answers to clients, and what is left for handlers and middleware.

use super::common::{CLIENT, app, body, handler, header, send, statuses, store};
use actix_web::test::TestRequest;
use actix_web::{App, HttpRequest, HttpResponse, test, web};
use sluicegate_actix::adapter::Refusal;
use sluicegate_actix::key::{Const, Optional};
use sluicegate_actix::{CurrentDecision, First, Header, Limit, RateLimit, Route};

#[actix_web::test]
async fn a_route_that_is_missing_is_the_servers_500_and_never_unlimited() {
    let keyless = || TestRequest::get().uri("/").to_request();

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
async fn handlers_extract_the_decision_where_there_is_one() {
    async fn told(CurrentDecision(decision): CurrentDecision) -> String {
        decision.remaining().unwrap().to_string()
    }
    async fn perhaps(decision: Option<CurrentDecision>) -> String {
        decision.map_or("free", |_| "limited").to_owned()
    }
    async fn uncharged(CurrentDecision(decision): CurrentDecision) -> String {
        format!("{:?}", decision.remaining())
    }
    let limit = || RateLimit::new(Limit::per_minute(5).by(CLIENT));
    let optional = || RateLimit::new(Limit::per_minute(3).by(Optional(Header("x-user"))));
    let app = test::init_service(
        App::new()
            .service(web::resource("/told").wrap(limit()).to(told))
            .service(web::resource("/uncharged").wrap(optional()).to(uncharged))
            .service(web::resource("/inside").wrap(optional()).wrap(limit()).to(told))
            .service(web::resource("/perhaps").wrap(limit()).to(perhaps))
            .service(web::resource("/off").wrap(limit().extensions(false)).to(perhaps))
            .route("/free", web::get().to(perhaps))
            .route("/unlimited", web::get().to(told)),
    )
    .await;
    assert_eq!(body(send(&app, "/told", "alice").await).await, "4");
    assert_eq!(body(send(&app, "/uncharged", "alice").await).await, "None");
    assert_eq!(body(send(&app, "/inside", "alice").await).await, "3");
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
#[should_panic(expected = "the store cannot keep the limit")]
async fn a_middleware_says_at_the_start_that_its_log_is_too_long() {
    let _ = RateLimit::new(
        Limit::sliding_log(3_000_000, std::time::Duration::from_secs(86_400)).by(CLIENT),
    );
}
