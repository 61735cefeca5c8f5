//! Requests that come too fast wait, up to 200 ms; those that would have to wait longer are sent to
//! a page that says so.
//!
//!     cargo run --example queue

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use sluicegate_axum::{CurrentDecision, Global, Limit, RateLimitLayer, Rejection};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    // One request each 100 ms, whoever sends it: what is to be protected here is the work itself.
    let rule = Limit::per_second(10).burst(1).by(Global);

    // The waiting is bounded twice, in time and in how many wait: each of them holds a connection.
    // After a 303 the browser asks for the page by GET; a 307 would have it send its POST once more.
    let rejection = Rejection::queue(Duration::from_millis(200))
        .at_most(100)
        .then(Rejection::redirect("/busy").status(303));

    let work = get(work).layer(RateLimitLayer::new(rule).rejection(rejection));
    // The page for those who are turned away must not be behind the limit that turned them away.
    let app = Router::new().route("/", work).route("/busy", get(busy));

    let (listener, url) = sluicegate_examples::listen().await;
    println!(
        "One request passes at once, two wait for 100 and 200 ms, the others are redirected:

    curl -sLZ --parallel-immediate '{url}/?[1-6]'

Without -L, the redirect itself:

    curl -siZ --parallel-immediate '{url}/?[1-6]'"
    );
    axum::serve(listener, app).await
}

async fn work(CurrentDecision(decision): CurrentDecision) -> String {
    format!("done, after waiting for {} ms\n", decision.wait().as_millis())
}

async fn busy() -> &'static str {
    "too busy just now: please come back later\n"
}
