//! Budgets of tokens in a file: `examples/policies/llm.toml`. The layers that estimate a request and read the usage in an
//! answer stay in code. `examples/llm.rs` has budgets in code, and a model that streams.
//!
//!     cargo run --example llm_file

use std::path::Path;

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use sluicegate_axum::key::Claims;
use sluicegate_axum::{Memory, RateLimitLayer};
use sluicegate_config::{Environment, Live};
use sluicegate_llm::{Estimate, EstimateLayer, UsageLayer};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let policies = policies()?;
    policies.on_event(|event| println!("{event}"));
    let _watching = policies.watch()?;
    let (listener, url) = sluicegate_examples::listen().await;
    println!(
        "What a request may use is reserved, and what it did not use is given back:

    curl -si '{url}/v1/chat/completions?[1-3]' -d '{{\"max_tokens\":9000}}' | grep -i x-ratelimit

Now change a number in examples/policies/llm.toml, and ask again. Ctrl-C ends this."
    );
    axum::serve(listener, app(policies, Memory::new())).await?;
    Ok(())
}

fn policies() -> Result<Live, Box<dyn std::error::Error>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("llm.toml");
    // Every error is reported at once, each with its line and column.
    Ok(Live::open(&file, Environment::new())?)
}

/// The service, which counts in `store`.
fn app(policies: Live, store: Memory) -> Router {
    let limits = RateLimitLayer::new(policies.clone())
        .store(store)
        .rejection(policies.rejection())
        .dialect(policies.dialect())
        .respond(policies.dialect());
    let estimate = EstimateLayer::new(Estimate::new().output(1_000));
    Router::new()
        .route("/v1/chat/completions", post(complete))
        .layer(UsageLayer::new())
        .layer(limits)
        .layer(estimate.dialect(policies.dialect().as_ref()))
        .layer(from_fn(identify))
}

/// In production, a key that is not known is refused, and the model is read from the body.
async fn identify(mut request: Request, next: Next) -> Response {
    let large = request.headers().get("x-model").is_some_and(|model| model == "large");
    let model = if large { "large" } else { "small" };
    request.extensions_mut().insert(Claims::new().with("api_key", "ada").with("model", model));
    next.run(request).await
}

/// A model that has little to say.
async fn complete() -> Json<Value> {
    Json(json!({
        "choices": [{"message": {"role": "assistant", "content": "Hello."}}],
        "usage": {"prompt_tokens": 8, "completion_tokens": 2, "total_tokens": 10},
    }))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use sluicegate::ManualClock;
    use tower::ServiceExt;

    use super::*;

    /// The fields about tokens of an answer to a request for `tokens`, whose body is dropped.
    async fn limit_and_remaining(app: &Router, model: &str, tokens: u64) -> (String, String) {
        let body = Body::from(format!("{{\"max_tokens\":{tokens}}}"));
        let request = Request::post("/v1/chat/completions").header("x-model", model).body(body);
        let response = app.clone().oneshot(request.unwrap()).await.unwrap();
        let field = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        let fields = (field("x-ratelimit-limit-tokens"), field("x-ratelimit-remaining-tokens"));
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        assert!(!body.is_empty());
        fields
    }

    #[tokio::test]
    async fn the_file_reserves_and_settles_by_model() {
        let store = Memory::builder().clock(ManualClock::new()).build();
        let app = app(policies().unwrap(), store);
        let of = |limit: &str, remaining: u64| (limit.to_owned(), remaining.to_string());
        assert_eq!(limit_and_remaining(&app, "small", 9_000).await, of("200000", 191_000));
        assert_eq!(limit_and_remaining(&app, "small", 9_000).await, of("200000", 190_990));
        // What the small model has used is its own.
        assert_eq!(limit_and_remaining(&app, "large", 9_000).await, of("30000", 21_000));
    }
}
