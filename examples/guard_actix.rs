//! The example `guard` with actix-web: rate limits and a throttle that all workers share.
//!
//!     cargo run --example guard_actix

use std::time::{Duration, Instant};

use actix_web::{App, HttpMessage, HttpRequest, HttpServer, web};
use sluicegate_actix::response::Degraded;
use sluicegate_actix::{Header, Limit, RateLimit};
use sluicegate_throttle::Throttle;
use sluicegate_throttle::layer::{Guard, WhenShed};

#[actix_web::main]
async fn main() -> std::io::Result<()> {
    // Made once, outside of the closure that runs in each worker: all workers share one queue.
    let throttle = Throttle::builder()
        .in_flight(1)
        .queue(Duration::from_millis(100))
        // What a page is expected to cost before the first one was measured, in microseconds.
        .first_cost(20_000)
        .build()
        .expect("a capacity and a queue are all that is needed");
    let limit = Limit::per_minute(100).by(Header("x-client"));
    let layer =
        throttle.layer().deadline(Duration::from_secs(1)).when_shed(WhenShed::degrade(1_000));
    let guard = Guard::new(RateLimit::new(limit), layer);

    let (listener, url) = sluicegate_examples::listen().await;
    println!(
        "Twenty requests at once: what finds no room is degraded. From the sixth time within a minute on, the
limit of the client refuses most of them.

    curl -Z --no-progress-meter --parallel-immediate --parallel-max 20 -H 'x-client: alice' '{url}/?[1-20]'

Ctrl-C ends this."
    );

    HttpServer::new(move || {
        App::new().service(web::resource("/").wrap(guard.clone()).route(web::get().to(page)))
    })
    .workers(4)
    .listen(listener.into_std()?)?
    .run()
    .await
}

/// A page that keeps a processor busy, and one that does not.
async fn page(request: HttpRequest) -> &'static str {
    if request.extensions().contains::<Degraded>() {
        return "the page, without recommendations\n";
    }
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(20) {
        std::hint::spin_loop();
    }
    "the page, with recommendations\n"
}
