//! axum, with a limit for each client address on everything and a stricter one on `/login`.
//!
//!     cargo run --example axum

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use sluicegate_axum::{CurrentDecision, Ip, Limit, RateLimitLayer};

// Sliding logs: never more than ten requests in any ten seconds. `Limit::per(10, ..)` would be a token
// bucket, which admits ten at once and then one more each second. A fixed window admits twice the count
// around a border.
const EVERYTHING: Limit = Limit::sliding_log(10, Duration::from_secs(10)).named("everything");
const LOGIN: Limit = Limit::sliding_log(3, Duration::from_secs(60)).named("login");

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let app = Router::new()
        .route("/", get(hello))
        .route("/login", get(login).layer(RateLimitLayer::new(LOGIN.by(Ip::peer()))))
        .layer(RateLimitLayer::new(EVERYTHING.by(Ip::peer())));

    let (listener, url) = sluicegate_examples::listen().await;
    println!(
        "Ten requests in ten seconds for each address:

    curl -i {url}/
    curl -s -o /dev/null -w '%{{http_code}}\\n' '{url}/?[1-12]'

Three in a minute for /login; one that is refused there does not count as one of the ten:

    curl -i '{url}/login?[1-4]'

What is refused says in Retry-After when it would be admitted. Ctrl-C ends this."
    );

    // With the connect info, axum tells the layer the address of the client.
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await
}

/// Clients read what remains in the `RateLimit` field of the response, and handlers in the decision.
async fn hello(CurrentDecision(decision): CurrentDecision) -> String {
    format!("Hello! You have {} left.\n", decision.remaining().unwrap_or_default())
}

/// With two layers, the decision is that of the inner one.
async fn login(CurrentDecision(decision): CurrentDecision) -> String {
    format!("Welcome! You have {} logins left.\n", decision.remaining().unwrap_or_default())
}
