//! Budgets of tokens in front of a language model that streams: requests and tokens a minute, and tokens a day, for each
//! API key. What a request may use is reserved, and settled by what it used when the stream has ended. The header fields
//! and errors are those of OpenAI's API, so its clients understand them:
//!
//!     cargo run --example llm
//!     python -c 'import openai; client = openai.OpenAI(base_url="http://127.0.0.1:3000/v1", api_key="key-of-ada")
//!     for part in client.chat.completions.create(model="small", messages=[{"role": "user", "content": "Hello"}], stream=True):
//!         print(part)'
//!
//! `examples/policies/llm.rs` has the same budgets in a file.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use bytes::Bytes;
use serde_json::{Value, json};
use sluicegate_axum::key::Claims;
use sluicegate_axum::limit::Limits;
use sluicegate_axum::{Claim, Limit, Memory, RateLimitLayer, Tiers};
use sluicegate_llm::{Count, Dialect, Estimate, EstimateLayer, UsageLayer, tokens, used_tokens};
use tokio_stream::StreamExt;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (listener, url) = sluicegate_examples::listen().await;
    let ask = format!("curl -sN {url}/v1/chat/completions -H 'authorization: Bearer key-of-ada'");
    println!(
        "A stream that reserves what it may use, and is charged what it used. See `x-ratelimit-remaining-tokens`:

    {ask} -i -d '{{\"stream\":true,\"max_tokens\":800,\"messages\":[{{\"content\":\"Hello\"}}]}}'

The third one that reserves 800 of 2,000 tokens at the same time is refused:

    for i in 1 2 3; do {ask} -d '{{\"stream\":true,\"max_tokens\":800}}' & done; wait

More than the limit ever admits is refused for good:

    {ask} -d '{{\"max_tokens\":1000000}}'"
    );
    axum::serve(listener, app(Memory::new())).await?;
    Ok(())
}

/// The service, which counts in `store`.
fn app(store: Memory) -> Router {
    let key = Claim("api_key");
    // A tier for each model, so that the small one has more tokens. In production: 500 and 200,000 a minute.
    let models = Tiers::new("tokens")
        .tier("small", tokens_of("small", 2_000, 100_000))
        .tier("large", tokens_of("large", 1_000, 20_000))
        .otherwise("small");
    let rule = (
        Limit::per_minute(20).named("requests").by(key),
        models
            .by_tier(Claim("model"))
            .by(key)
            .cost(tokens(Count::All))
            .settle_by(used_tokens(Count::All)),
    );
    let dialect = Dialect::openai().requests("requests").tokens("small").tokens("large");
    let limits = RateLimitLayer::new(rule)
        .store(store)
        .dialect(dialect.clone())
        .never_fits_status(StatusCode::PAYLOAD_TOO_LARGE.as_u16())
        .respond(dialect);
    Router::new()
        .route("/v1/chat/completions", post(complete))
        // What is added later is further out. The model is innermost, then who reads its usage.
        .layer(UsageLayer::new())
        .layer(limits)
        .layer(EstimateLayer::new(Estimate::new().output(500)))
        .layer(from_fn(identify))
}

/// A bucket that refills within a minute, and days that begin at midnight in UTC.
fn tokens_of(model: &str, a_minute: u64, a_day: u64) -> Limits {
    const DAY: Duration = Duration::from_secs(86_400);
    Limits::from([
        Limit::per_minute(a_minute).named(&format!("{model}/minute")),
        Limit::fixed_window(a_day, DAY).named(&format!("{model}/day")),
    ])
}

/// Who asks. A key that is not known is refused here, so that nobody makes up a budget.
async fn identify(mut request: Request, next: Next) -> Response {
    let key = request.headers().get("authorization").map(|value| value.as_bytes());
    let claims = match key {
        Some(b"Bearer key-of-ada") => Claims::new().with("api_key", "ada"),
        Some(b"Bearer key-of-bob") => Claims::new().with("api_key", "bob"),
        _ => return StatusCode::UNAUTHORIZED.into_response(),
    };
    let model = request.headers().get("x-model").and_then(|model| model.to_str().ok());
    let claims = claims.with("model", model.unwrap_or("small").to_owned());
    request.extensions_mut().insert(claims);
    next.run(request).await
}

/// A model that says 20 words, and how many tokens it used. A real service passes the request on.
async fn complete(Json(asked): Json<Value>) -> Response {
    const WORDS: u64 = 20;
    let usage =
        json!({"prompt_tokens": 12, "completion_tokens": WORDS, "total_tokens": 12 + WORDS});
    if asked["stream"] != true {
        let message = json!({"role": "assistant", "content": "word ".repeat(20)});
        let choices = json!([{"index": 0, "message": message, "finish_reason": "stop"}]);
        return Json(json!({
            "id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": "small",
            "choices": choices, "usage": usage,
        }))
        .into_response();
    }
    let event = |choices: Value, usage: Value| {
        let chunk = json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": "small",
            "choices": choices, "usage": usage,
        });
        format!("data: {chunk}\n\n")
    };
    let word = event(json!([{"index": 0, "delta": {"content": "word "}}]), Value::Null);
    let last = event(json!([]), usage);
    let events = (0..WORDS).map(move |_| word.clone()).chain([last, "data: [DONE]\n\n".into()]);
    let parts = tokio_stream::iter(events)
        .throttle(Duration::from_millis(50))
        .map(|event| Ok::<_, Infallible>(Bytes::from(event)));
    ([("content-type", "text/event-stream")], Body::from_stream(parts)).into_response()
}

#[cfg(test)]
mod tests {
    use axum::http;
    use http_body_util::BodyExt;
    use sluicegate::ManualClock;
    use tower::ServiceExt;

    use super::*;

    async fn ask(app: &Router, body: &str) -> http::Response<Body> {
        let request = Request::post("/v1/chat/completions")
            .header("authorization", "Bearer key-of-ada")
            .header("content-type", "application/json")
            .body(Body::from(body.to_owned()))
            .unwrap();
        app.clone().oneshot(request).await.unwrap()
    }

    fn remaining(response: &Response) -> &str {
        response.headers()["x-ratelimit-remaining-tokens"].to_str().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_reserves_what_it_may_use_and_pays_what_it_used() {
        let app = app(Memory::builder().clock(ManualClock::new()).build());
        let body = r#"{"stream":true,"max_tokens":800}"#;
        let first = ask(&app, body).await;
        assert_eq!(remaining(&first), "1200");
        let second = ask(&app, body).await;
        assert_eq!(remaining(&second), "400");
        let third = ask(&app, body).await;
        assert_eq!(third.status(), 429);
        assert!(third.headers().contains_key("retry-after-ms"));

        let text = first.into_body().collect().await.unwrap().to_bytes();
        assert!(text.ends_with(b"data: [DONE]\n\n"));
        second.into_body().collect().await.unwrap();
        assert_eq!(remaining(&ask(&app, body).await), (2_000 - 2 * 32 - 800).to_string());
    }

    #[tokio::test]
    async fn more_than_the_limit_holds_is_too_large() {
        let app = app(Memory::builder().clock(ManualClock::new()).build());
        let response = ask(&app, r#"{"max_tokens":1000000}"#).await;
        assert_eq!(response.status(), 413);
        let error = response.into_body().collect().await.unwrap().to_bytes();
        let error: Value = serde_json::from_slice(&error).unwrap();
        assert_eq!(error["error"]["type"], "tokens");
    }
}
