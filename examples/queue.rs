//! Requests that come too fast wait for up to 200 ms. Requests that would have to wait longer are sent to
//! a page that says so.
//!
//!     cargo run --example queue

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use sluicegate_axum::{CurrentDecision, Global, Limit, RateLimitLayer, Rejection};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    // One request each 100 ms for all clients together, to protect the work behind the limit.
    let rule = Limit::per_second(10).burst(1).by(Global);

    // The queue is bounded in time and in length, because each waiting request holds a connection.
    // After a 303 the browser asks for the page with GET. After a 307 it would send its POST once more.
    let rejection = Rejection::queue(Duration::from_millis(200))
        .at_most(100)
        .then(Rejection::redirect("/busy").status(303));

    let work = get(work).layer(RateLimitLayer::new(rule).rejection(rejection));
    // The page for refused requests must not be behind the limit that refuses them.
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
