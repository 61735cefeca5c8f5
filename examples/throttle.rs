//! A shop under more load than it can serve: checkouts pass, searches mostly, prefetches if there is time left.
//!
//!     cargo run --example throttle

use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use sluicegate_axum::key::Path;
use sluicegate_throttle::layer::class_when;
use sluicegate_throttle::{Class, Throttle};

/// What each request needs of a processor.
const WORK: Duration = Duration::from_millis(20);

#[tokio::main]
async fn main() -> std::io::Result<()> {
    // One request at a time: fifty in a second. The queue holds what that does in a second.
    let throttle = Throttle::builder()
        .in_flight(1)
        .queue(Duration::from_secs(1))
        .build()
        .expect("a capacity and a queue are all that is needed");

    let class = class_when(Path.matches("/{number}/checkout"), Class::CRITICAL_PLUS).otherwise(
        class_when(Path.matches("/{number}/search"), Class::CRITICAL).otherwise(Class::SHEDDABLE),
    );
    let layer = throttle
        .layer()
        .criticality(class)
        .deadline(Duration::from_secs(1))
        .exempt(Path.matches("/health"));

    let app = Router::new()
        .route("/{number}/{page}", get(work))
        .route("/health", get(|| async { "well\n" }))
        .layer(layer);

    let (listener, url) = sluicegate_examples::listen().await;
    println!(
        "Thirty requests of each kind at once, which is twice what a second is enough for; then how many of each kind got which answer:

    curl -Z --no-progress-meter --parallel-immediate --parallel-max 100 -o /dev/null -w '%{{http_code}} %{{url}}\\n' \\
        '{url}/[1-30]/{{checkout,search,prefetch}}' | sed 's|http.*/||' | sort | uniq -c

The queue is shown here while it is in use. Ctrl-C ends this."
    );
    tokio::spawn(show(throttle));
    axum::serve(listener, app).await
}

/// Keeps a processor busy.
async fn work() -> &'static str {
    let start = Instant::now();
    while start.elapsed() < WORK {
        std::hint::spin_loop();
    }
    "done\n"
}

/// Prints the queue four times a second while there is one.
async fn show(throttle: Throttle) {
    let mut ticks = tokio::time::interval(Duration::from_millis(250));
    loop {
        ticks.tick().await;
        let snapshot = throttle.snapshot();
        if snapshot.queued == 0 {
            continue;
        }
        let class = |class: &sluicegate_throttle::layer::ClassSnapshot| {
            format!("{} {}", class.name, class.requests)
        };
        let queued: Vec<_> = snapshot.classes.iter().map(class).collect();
        println!(
            "queued: {}; started so far: {}, shed: {}",
            queued.join(", "),
            snapshot.counts.started,
            snapshot.counts.all_shed()
        );
    }
}
