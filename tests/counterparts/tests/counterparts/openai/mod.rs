//! OpenAI's client for Python: it reads the fields, waits as long as it is told, and streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use sluicegate_axum::{Header, Limit, RateLimitLayer};
use sluicegate_llm::{Count, Dialect, Estimate, EstimateLayer, UsageLayer, tokens, used_tokens};
use tokio::net::TcpListener;
use tokio::process::Command;

/// How long the client may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// 1,000 tokens, of which 100 come back each second.
fn app(attempts: Arc<AtomicUsize>) -> Router {
    const BUDGET: Limit = Limit::per_second(100).burst(1_000).named("tokens");
    let key = Header("authorization");
    let rule = (
        Limit::per_minute(500).named("requests").by(key),
        BUDGET.by(key).cost(tokens(Count::All)).settle_by(used_tokens(Count::All)),
    );
    let dialect = Dialect::openai().requests("requests").tokens("tokens");
    let limits =
        RateLimitLayer::new(rule).dialect(dialect.clone()).never_fits_status(413).respond(dialect);
    Router::new()
        .route("/v1/chat/completions", post(complete))
        .layer(UsageLayer::new())
        .layer(limits)
        .layer(EstimateLayer::new(Estimate::new()))
        .layer(from_fn_with_state(attempts, count))
}

async fn count(State(attempts): State<Arc<AtomicUsize>>, request: Request, next: Next) -> Response {
    attempts.fetch_add(1, Ordering::SeqCst);
    next.run(request).await
}

/// Says three words and uses 12 tokens, or all that it was allowed.
async fn complete(Json(asked): Json<Value>) -> Response {
    let output = match asked["user"].is_string() {
        true => asked["max_tokens"].as_u64().unwrap_or_default(),
        false => 3,
    };
    let usage =
        json!({"prompt_tokens": 9, "completion_tokens": output, "total_tokens": 9 + output});
    let head = |object: &str| json!({"id": "chatcmpl-1", "object": object, "created": 0, "model": "small"});
    if asked["stream"] != true {
        let mut whole = head("chat.completion");
        let message = json!({"role": "assistant", "content": "one two three"});
        whole["choices"] = json!([{"index": 0, "message": message, "finish_reason": "stop"}]);
        whole["usage"] = usage;
        return Json(whole).into_response();
    }
    let mut text = String::new();
    for word in ["one", " two", " three"] {
        let mut chunk = head("chat.completion.chunk");
        chunk["choices"] = json!([{"index": 0, "delta": {"content": word}, "finish_reason": null}]);
        text += &format!("data: {chunk}\n\n");
    }
    let mut last = head("chat.completion.chunk");
    last["choices"] = json!([]);
    last["usage"] = usage;
    text += &format!("data: {last}\n\ndata: [DONE]\n\n");
    ([("content-type", "text/event-stream")], Body::from(text)).into_response()
}

#[tokio::test]
async fn the_client_reads_the_fields_waits_as_told_and_streams() {
    let attempts = Arc::new(AtomicUsize::new(0));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let app = app(Arc::clone(&attempts));
    tokio::spawn(async move { axum::serve(listener, app).await });

    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/counterparts/openai/ask.py");
    let mut command = Command::new(sluicegate_counterparts::find("python-with-openai"));
    command.args([script, &url]).kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output()).await.unwrap().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();

    // 400 and 2 for the prompt are reserved.
    let fields = &seen["fields"];
    assert_eq!(fields["x-ratelimit-limit-requests"], "500", "{seen}");
    assert_eq!(fields["x-ratelimit-remaining-requests"], "499", "{seen}");
    assert_eq!(fields["x-ratelimit-limit-tokens"], "1000", "{seen}");
    let left: u64 = fields["x-ratelimit-remaining-tokens"].as_str().unwrap().parse().unwrap();
    assert!((590..600).contains(&left), "{seen}");
    assert_eq!(seen["total_tokens"], 12);
    assert_eq!(seen["text"], "one two three");
    assert_eq!(seen["streamed_tokens"], 12);

    // After 909 of 1,000, 400 more take three seconds. It tried twice: a third attempt would be too early a second.
    let waited = seen["waited"].as_f64().unwrap();
    assert!(waited > 0.3, "{seen}");
    let refused = json!({"type": "tokens", "code": "rate_limit_exceeded", "status": 429});
    assert_eq!(seen["refused"], refused, "{seen}");
    let never = json!({"type": "tokens", "code": "rate_limit_exceeded", "status": 413});
    assert_eq!(seen["never"], never, "{seen}");
    // Three that are served at once, two for the one that waits, and two that are refused.
    assert_eq!(attempts.load(Ordering::SeqCst), 7, "{seen}");
}
