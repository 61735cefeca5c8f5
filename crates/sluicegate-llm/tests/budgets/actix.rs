//! Budgets of tokens: an estimate is reserved, and what was used is charged in the end.

use std::future::poll_fn;

use actix_http::Request;
use actix_web::body::MessageBody;
use actix_web::dev::{Service, ServiceResponse};
use actix_web::test::{self, TestRequest};
use actix_web::{App, Error, HttpResponse, web};
use sluicegate_actix::{Global, Limit, ManualClock, Memory, RateLimit};
use sluicegate_llm::{Count, Dialect, Estimate, EstimateLayer, UsageLayer, tokens, used_tokens};
use tokio_stream::StreamExt;

use super::model::MINUTE;

const STREAM: &str = concat!(
    "data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\n\n",
    "data: {\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":30,\"total_tokens\":50}}\n\n",
);

/// A model behind 1,000 tokens a minute. It answers by the path, and echoes the body at `/echo`.
async fn app()
-> (impl Service<Request, Response = ServiceResponse<impl MessageBody>, Error = Error>, ManualClock)
{
    let clock = ManualClock::new();
    let store = Memory::builder().clock(&clock).build();
    let budget = Limit::per_minute(1_000).named("tokens").by(Global);
    let budget = budget.cost(tokens(Count::All)).settle_by(used_tokens(Count::All));
    let dialect = Dialect::openai().tokens("tokens");
    let estimate = EstimateLayer::new(Estimate::new()).at_most(1_000).dialect(&dialect);
    let limits = RateLimit::new(budget).store(store).dialect(dialect.clone()).respond(dialect);
    let stream = || async {
        let parts = STREAM.as_bytes().chunks(7).map(|part| Ok::<_, Error>(web::Bytes::from(part)));
        let parts: Vec<_> = parts.collect();
        HttpResponse::Ok().content_type("text/event-stream").streaming(tokio_stream::iter(parts))
    };
    // The model keeps the connection open behind its last event.
    let done = || async {
        let parts = [STREAM, "data: [DONE]\n\n"].map(|part| Ok::<_, Error>(web::Bytes::from(part)));
        let parts = tokio_stream::iter(parts).chain(tokio_stream::pending());
        HttpResponse::Ok().content_type("text/event-stream").streaming(parts)
    };
    let app = App::new()
        .wrap(UsageLayer::new())
        .wrap(limits)
        .wrap(estimate)
        .route("/stream", web::post().to(stream))
        .route("/done", web::post().to(done))
        .route(
            "/whole",
            web::post().to(async || {
                HttpResponse::Ok()
                    .content_type("application/json")
                    .body(r#"{"usage":{"total_tokens":9}}"#)
            }),
        )
        .route("/fails", web::post().to(HttpResponse::BadGateway))
        .route("/echo", web::post().to(async |body: web::Bytes| body));
    (test::init_service(app).await, clock)
}

fn ask(path: &str, body: &'static str) -> Request {
    TestRequest::post().uri(path).set_payload(body).to_request()
}

fn remaining<B>(response: &ServiceResponse<B>) -> &str {
    response.headers().get("x-ratelimit-remaining-tokens").unwrap().to_str().unwrap()
}

#[actix_web::test]
async fn an_answer_is_charged_what_it_used() {
    let (app, clock) = app().await;
    for (path, used) in [("/stream", 50), ("/whole", 9), ("/fails", 0)] {
        let response = test::call_service(&app, ask(path, r#"{"max_tokens": 400}"#)).await;
        assert_eq!(remaining(&response), "600", "{path}");
        test::read_body(response).await;
        let next = test::call_service(&app, ask("/echo", r#"{"max_tokens": 100}"#)).await;
        assert_eq!(remaining(&next), (900 - used).to_string(), "{path}");
        drop(next);
        clock.advance(MINUTE);
    }
}

#[actix_web::test]
async fn a_stream_that_has_said_what_it_used_is_settled_before_its_body_ends() {
    let (app, _clock) = app().await;
    let response = test::call_service(&app, ask("/done", r#"{"max_tokens": 400}"#)).await;
    let mut body = std::pin::pin!(response.into_body());
    for spent in [400, 50] {
        poll_fn(|cx| body.as_mut().poll_next(cx)).await.expect("a part").ok().expect("no error");
        let next = test::call_service(&app, ask("/fails", r#"{"max_tokens": 100}"#)).await;
        assert_eq!(remaining(&next), (900 - spent).to_string());
        test::read_body(next).await;
    }
}

#[actix_web::test]
async fn the_model_is_asked_for_an_answer_that_can_be_read() {
    let app = App::new().wrap(UsageLayer::new()).route(
        "/",
        web::get().to(async |request: actix_web::HttpRequest| {
            let asked = request.headers().get_all("accept-encoding");
            asked.map(|value| value.to_str().unwrap().to_owned()).collect::<Vec<_>>().join(",")
        }),
    );
    let app = test::init_service(app).await;
    let request = TestRequest::get().uri("/").insert_header(("accept-encoding", "gzip, br"));
    assert_eq!(test::call_and_read_body(&app, request.to_request()).await, "identity");
}

#[actix_web::test]
async fn a_client_that_hangs_up_is_charged_what_was_reserved() {
    let (app, _clock) = app().await;
    drop(test::call_service(&app, ask("/stream", r#"{"max_tokens": 400}"#)).await);
    let next = test::call_service(&app, ask("/echo", r#"{"max_tokens": 100}"#)).await;
    assert_eq!(remaining(&next), "500");
}

#[actix_web::test]
async fn a_body_is_passed_on_as_it_was_sent() {
    let (app, _clock) = app().await;
    let body = r#" {"max_tokens" : 1} "#;
    assert_eq!(test::call_and_read_body(&app, ask("/echo", body)).await, body);
    let error =
        test::try_call_service(&app, ask("/echo", Box::leak(" ".repeat(1_001).into()))).await;
    let error = error.err().expect("a body that is too large");
    let response = error.error_response();
    assert_eq!(response.status(), 413);
    let body = actix_web::body::to_bytes(response.into_body()).await.expect("a body");
    let text = "Request too large: the body is larger than 1000 bytes. Send less.";
    assert_eq!(
        body,
        format!(
            "{{\"error\":{{\"message\":\"{text}\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":null}}}}\n"
        )
    );
}

#[actix_web::test]
async fn a_refusal_reads_as_one_of_openai() {
    let (app, _clock) = app().await;
    for status in [200, 429] {
        let response = test::call_service(&app, ask("/echo", r#"{"max_tokens": 900}"#)).await;
        assert_eq!(response.status(), status);
        if status == 429 {
            assert_eq!(response.headers().get("content-type").unwrap(), "application/json");
            assert!(response.headers().contains_key("retry-after-ms"));
            let text = test::read_body(response).await;
            assert!(text.ends_with(
                b"\"type\":\"tokens\",\"param\":null,\"code\":\"rate_limit_exceeded\"}}\n"
            ));
        }
    }
}
