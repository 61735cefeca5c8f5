//! A public API with its policies in a file: tiers, budgets, bans, hours. Change the file while it serves, and the
//! next request uses it.
//!
//!     cargo run --example product

use std::net::SocketAddr;
use std::path::Path;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::{get, post};
use sluicegate_axum::RateLimitLayer;
use sluicegate_axum::key::Claims;
use sluicegate_config::{Environment, Live};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("product.toml");
    // Every error is reported at once, each with its line and column.
    let policies = Live::open(&file, Environment::new())?;
    policies.on_event(|event| println!("{event}"));
    let _watching = policies.watch()?;

    let limit = RateLimitLayer::new(policies.clone()).rejection(policies.rejection());
    let app = Router::new()
        .route("/v1/items", get(async || "Seven items.\n"))
        .route("/v1/completions", post(async || ([("x-tokens-used", "120")], "To be, or not.\n")))
        .route("/v1/export", get(async || "All of it.\n"))
        .route("/login", post(async || (StatusCode::UNAUTHORIZED, "Wrong password.\n")))
        .layer(limit)
        // Added later, so it is the outer layer and runs first.
        .layer(from_fn(identify));

    let (listener, url) = sluicegate_examples::listen().await;
    println!(
        "The policies are those of {}

Ten at once in the free tier, a hundred when paid, and no limit for partners:

    curl -s '{url}/v1/items?[1-12]'
    curl -s '{url}/v1/items?[1-12]' -H 'x-api-key: key-of-acme'
    curl -s '{url}/v1/items?[1-12]' -H 'x-api-key: key-of-initech'

A budget of tokens: what is expected is reserved, and what was not used is given back:

    curl -si -X POST '{url}/v1/completions?[1-8]' -H 'x-api-key: key-of-acme' -H 'x-expected-tokens: 4000' | grep -i ratelimit:

Five wrong passwords, then no more, and soon a ban:

    curl -s -X POST '{url}/login?[1-9]'

Now change a number in the file, or break it, and ask again. Ctrl-C ends this.",
        file.display()
    );
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}

/// What this service knows about a client. A made-up key belongs to nobody.
async fn identify(mut request: Request, next: Next) -> Response {
    let key = request.headers().get("x-api-key").map(|key| key.as_bytes());
    let claims = match key {
        Some(b"key-of-acme") => Claims::new().with("customer", "acme"),
        Some(b"key-of-initech") => Claims::new().with("customer", "initech"),
        _ => Claims::new(),
    };
    request.extensions_mut().insert(claims);
    next.run(request).await
}
