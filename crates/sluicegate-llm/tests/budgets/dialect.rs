//! The fields and errors that clients of such APIs read.

use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use sluicegate::limit::Limits;
use sluicegate::{Global, Limit, ManualClock, Memory, RateLimitLayer};
use sluicegate_llm::{Dialect, Estimate, EstimateLayer};
use tower::{Layer, ServiceExt, service_fn};

use super::model::{Model, openai};

#[tokio::test]
async fn a_served_response_has_the_fields_of_the_dialect_beside_those_of_the_draft() {
    let model = Model::new();
    model.streams(openai(1, 1));
    let response = model.ask(r#"{"max_tokens": 5000}"#).await;
    let field = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(field("x-ratelimit-limit-tokens"), "10000");
    assert_eq!(field("x-ratelimit-remaining-tokens"), "5000");
    assert_eq!(field("x-ratelimit-reset-tokens"), "30s");
    assert_eq!(field("ratelimit"), "\"tokens\";r=5000;t=1");
    assert!(response.headers().get("x-ratelimit-limit-requests").is_none());
}

/// The answer to the second request of one a minute, in `dialect`.
async fn refused(dialect: Dialect, limit: Limit) -> (http::HeaderMap, u16, String) {
    let store = Memory::builder().clock(ManualClock::new()).build();
    let layer = RateLimitLayer::new(Limits::from(limit).by(Global))
        .store(store)
        .dialect(dialect.clone())
        .respond(dialect);
    let service = layer.layer(service_fn(|_: Request<()>| async {
        Ok::<_, std::convert::Infallible>(Response::new(String::new()))
    }));
    service.clone().oneshot(Request::new(())).await.unwrap();
    let (head, body) = service.oneshot(Request::new(())).await.unwrap().into_parts();
    let text = body.collect().await.unwrap().to_bytes();
    (head.headers, head.status.as_u16(), String::from_utf8(text.to_vec()).unwrap())
}

#[tokio::test]
async fn a_refusal_reads_as_one_of_openai() {
    let (headers, status, body) =
        refused(Dialect::openai().tokens("tpm"), Limit::per_minute(1).named("tpm")).await;
    assert_eq!(status, 429);
    assert_eq!(headers["retry-after"], "60");
    assert_eq!(headers["retry-after-ms"], "60000");
    assert_eq!(headers["x-ratelimit-remaining-tokens"], "0");
    assert_eq!(headers["x-ratelimit-reset-tokens"], "1m0s");
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(
        body,
        "{\"error\":{\"message\":\"Rate limit reached: the limit `tpm` of 1 tokens is exceeded. Try again in 60 s.\",\
         \"type\":\"tokens\",\"param\":null,\"code\":\"rate_limit_exceeded\"}}\n"
    );
}

#[tokio::test]
async fn a_refusal_reads_as_one_of_anthropic() {
    let (headers, status, body) =
        refused(Dialect::anthropic().requests("rpm"), Limit::per_minute(1).named("rpm")).await;
    assert_eq!(status, 429);
    assert_eq!(headers["anthropic-ratelimit-requests-remaining"], "0");
    assert!(headers["anthropic-ratelimit-requests-reset"].to_str().unwrap().ends_with('Z'));
    assert!(headers.get("retry-after-ms").is_none());
    assert_eq!(
        body,
        "{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"Rate limit reached: \
         the limit `rpm` of 1 requests is exceeded. Try again in 60 s.\"}}\n"
    );
}

#[tokio::test]
async fn what_the_api_behind_says_of_the_account_of_the_operator_is_replaced() {
    let layer = |name, dialect: Dialect, limit: Limit| {
        let store = Memory::builder().clock(ManualClock::new()).build();
        RateLimitLayer::new(limit.named(name).by(Global)).store(store).dialect(dialect)
    };
    let inner = layer("rpm", Dialect::openai().requests("rpm"), Limit::per_minute(500));
    let rpd = layer("rpd", Dialect::openai().requests("rpd"), Limit::per_day(7));
    let tpm = layer("tpm", Dialect::openai().tokens("tpm"), Limit::per_minute(200_000));
    let service = (rpd, tpm, inner).layer(service_fn(|_: Request<()>| async {
        let response = Response::builder()
            .header("x-ratelimit-limit-requests", "10000")
            .header("x-ratelimit-remaining-requests", "9876")
            .header("x-ratelimit-reset-requests", "1m0s")
            .header("x-ratelimit-limit-tokens", "30000000")
            .header("x-ratelimit-remaining-tokens", "29999999")
            .header("x-ratelimit-reset-tokens", "2m0s");
        Ok::<_, std::convert::Infallible>(response.body(String::new()).unwrap())
    }));
    let headers = service.oneshot(Request::new(())).await.unwrap().into_parts().0.headers;
    let field = |name: &str| headers.get_all(name).iter().collect::<Vec<_>>();
    // Of the layers, the innermost one that counts a unit is told.
    for (name, value) in [
        ("x-ratelimit-limit-requests", "500"),
        ("x-ratelimit-remaining-requests", "499"),
        ("x-ratelimit-reset-requests", "120ms"),
        ("x-ratelimit-limit-tokens", "200000"),
        ("x-ratelimit-remaining-tokens", "199999"),
        ("x-ratelimit-reset-tokens", "1ms"),
    ] {
        assert_eq!(field(name), [value], "{name}");
    }
}

/// The answer to a body that is larger than ten bytes.
async fn too_large(layer: EstimateLayer) -> (u16, String, String) {
    let service = layer.at_most(10).layer(service_fn(|_: Request<_>| async {
        Ok::<_, std::convert::Infallible>(Response::new(String::new()))
    }));
    let request = Request::new(Full::new(bytes::Bytes::from_static(b"12345678901")));
    let (head, body) = service.oneshot(request).await.unwrap().into_parts();
    let text = body.collect().await.unwrap().to_bytes();
    let content_type = head.headers["content-type"].to_str().unwrap().to_owned();
    (head.status.as_u16(), content_type, String::from_utf8(text.to_vec()).unwrap())
}

#[tokio::test]
async fn a_body_beyond_the_bound_is_refused_in_the_words_of_the_api() {
    let layer = EstimateLayer::new(Estimate::new());
    let detail = "the body is larger than 10 bytes";
    let problem = format!(
        "{{\"type\":\"about:blank\",\"title\":\"Content too large\",\"status\":413,\"detail\":\"{detail}\"}}\n"
    );
    assert_eq!(too_large(layer).await, (413, "application/problem+json".into(), problem));
    let message = format!("Request too large: {detail}. Send less.");
    for (dialect, error) in [
        (
            Dialect::openai(),
            format!(
                "{{\"error\":{{\"message\":\"{message}\",\"type\":\"invalid_request_error\",\
                 \"param\":null,\"code\":null}}}}\n"
            ),
        ),
        (
            Dialect::anthropic(),
            format!(
                "{{\"type\":\"error\",\"error\":{{\"type\":\"request_too_large\",\
                 \"message\":\"{message}\"}}}}\n"
            ),
        ),
    ] {
        let answer = too_large(layer.dialect(&dialect)).await;
        assert_eq!(answer, (413, "application/json".into(), error));
    }
}

#[test]
#[should_panic(
    expected = "no limit is named `tpm`, of which the dialect tells tokens: there are `tokens`"
)]
fn a_dialect_that_names_a_limit_that_is_not_there_fails_at_the_start() {
    let rule = Limit::per_minute(1).named("tokens").by(Global);
    let _ = RateLimitLayer::new(rule).dialect(Dialect::openai().tokens("tpm"));
}

#[test]
#[should_panic(expected = "the dialect names no policy")]
fn a_dialect_without_policies_fails_at_the_start() {
    let _ = RateLimitLayer::new(Limit::per_minute(1).by(Global)).dialect(Dialect::openai());
}
