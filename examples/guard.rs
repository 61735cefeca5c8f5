//! axum behind rate limits and a throttle: each client has its limit, and when the server has more to do than it can, some
//! requests wait for a moment and the others get a page that costs nothing to make.
//!
//!     cargo run --example guard

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use axum::routing::get;
use axum::{Extension, Router};
use sluicegate_axum::key::Path;
use sluicegate_axum::response::Degraded;
use sluicegate_axum::{Header, Limit, RateLimitLayer};
use sluicegate_throttle::Throttle;
use sluicegate_throttle::layer::{Guard, WhenShed};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let throttle = Throttle::builder()
        .in_flight(1)
        .queue(Duration::from_millis(100))
        // What a page is expected to cost before the first one was measured, in microseconds.
        .first_cost(20_000)
        .build()
        .expect("a capacity and a queue are all that is needed");

    // Twice as many requests for each client while nobody waits.
    let limit = sluicegate_axum::when(throttle.has_room(), Limit::per_minute(200).named("pages"))
        .otherwise(Limit::per_minute(100).named("pages"))
        .by(Header("x-client"));
    let layer = throttle
        .layer()
        .deadline(Duration::from_secs(1))
        .exempt(Path.matches("/health"))
        .when_shed(WhenShed::degrade(1_000));

    let app = Router::new()
        .route("/", get(page))
        .layer(Guard::new(RateLimitLayer::new(limit), layer))
        .route("/health", get(|| async { "well\n" }));

    let (listener, url) = sluicegate_examples::listen().await;
    println!(
        "Twenty requests at once: what finds no room is degraded. From the sixth time within a minute on, the
limit of the client refuses most of them.

    curl -Z --no-progress-meter --parallel-immediate --parallel-max 20 -H 'x-client: alice' '{url}/?[1-20]'

Ctrl-C ends this."
    );
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await
}

/// A page that keeps a processor busy, and one that does not.
async fn page(degraded: Option<Extension<Degraded>>) -> &'static str {
    if degraded.is_some() {
        return "the page, without recommendations\n";
    }
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(20) {
        std::hint::spin_loop();
    }
    "the page, with recommendations\n"
}
