//! A shop: checkouts, people who browse, prefetches and crawlers want the same processor. It overloads itself and prints who is
//! answered.
//!
//!     cargo run --example critical_path

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::routing::get;
use sluicegate_axum::Header;
use sluicegate_axum::key::Path;
use sluicegate_throttle::layer::class_when;
use sluicegate_throttle::{Classes, Throttle};
use tower::ServiceExt;

/// The classes, the most critical first, and how many of a hundred requests are of each.
const KINDS: [(&str, u64); 4] = [("checkout", 10), ("browse", 30), ("prefetch", 30), ("crawl", 30)];

/// What each request needs of a processor.
const WORK: Duration = Duration::from_millis(5);

/// How long clients wait.
const PATIENCE: Duration = Duration::from_millis(500);

/// How long each load lasts.
const TIME: Duration = Duration::from_secs(3);

/// The clients have a thread of their own.
#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    println!("answered in time, in percent of each kind, with {WORK:?} of work for each request\n");
    println!("load  {:<18} {}", "", KINDS.map(|(name, _)| format!("{name:>9}")).join(""));
    for load in [0.5, 1.0, 2.0, 4.0] {
        show(load, "bare", Router::new().route("/{kind}", get(work))).await?;
        show(load, "behind a throttle", shop()).await?;
    }
    Ok(())
}

/// The shop behind a throttle: four classes by route, fair between customers, and nothing is started that would be late.
fn shop() -> Router {
    let classes = Classes::named(KINDS.map(|(name, _)| name)).expect("four names");
    let of = |kind: &str| classes.class(kind).expect("a class");
    let class = class_when(Path.matches("/checkout"), of("checkout")).otherwise(
        class_when(Path.matches("/browse"), of("browse")).otherwise(
            class_when(Path.matches("/prefetch"), of("prefetch")).otherwise(of("crawl")),
        ),
    );
    // Where handlers work on the processor, work in flight is no capacity: a thread that serves one request does not
    // look at the next.
    let throttle = Throttle::builder()
        .cpu(1.0)
        .queue(Duration::from_millis(200))
        .classes(classes)
        .build()
        .expect("a capacity and a queue are all that is needed");
    let layer = throttle
        .layer()
        .criticality(class)
        // A real shop takes the customer from a checked token: see `Claim`.
        .fair_by(Header("x-customer"))
        .deadline(PATIENCE);
    Router::new().route("/{kind}", get(work)).layer(layer)
}

/// Keeps the processor busy.
async fn work() -> &'static str {
    let start = Instant::now();
    while start.elapsed() < WORK {
        std::hint::spin_loop();
    }
    "done"
}

/// Sends requests at an even pace, whether they are answered or not, and counts the answers that come in time.
async fn show(load: f64, name: &str, app: Router) -> std::io::Result<()> {
    let shop = tokio::runtime::Builder::new_multi_thread().enable_time().build()?;
    let processors = thread::available_parallelism()?.get() as f64;
    let app = app.with_state(());
    let answered: Arc<[AtomicU64; KINDS.len()]> = Arc::default();
    let mut sent = [0; KINDS.len()];
    let gap = WORK.div_f64(load * processors);
    let start = Instant::now();
    let mut number = 0;
    while start.elapsed() < TIME {
        // What is due by now comes at once: a server that is busy does not keep clients from coming.
        while gap * number <= start.elapsed() {
            let kind = kind(number.into());
            sent[kind] += 1;
            let (app, answered) = (app.clone(), Arc::clone(&answered));
            let uri = format!("/{}", KINDS[kind].0);
            let request = Request::get(uri).header("x-customer", number % 7).body(Body::empty());
            let request = request.expect("a request");
            let came = Instant::now();
            shop.spawn(async move {
                let response = tokio::time::timeout(PATIENCE, app.oneshot(request)).await;
                let is_served =
                    response.is_ok_and(|served| served.is_ok_and(|r| r.status() == 200));
                if is_served && came.elapsed() <= PATIENCE {
                    answered[kind].fetch_add(1, Ordering::Relaxed);
                }
            });
            number += 1;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(PATIENCE).await;
    shop.shutdown_background();
    let percent = |kind: usize| {
        let answered = answered[kind].load(Ordering::Relaxed);
        format!("{:>8.0} ", 100.0 * answered as f64 / f64::from(sent[kind]))
    };
    println!("{load:<5} {name:<18} {}", (0..KINDS.len()).map(percent).collect::<String>());
    Ok(())
}

/// The kind of a request, by its number: as many of each as [`KINDS`] says.
fn kind(number: u64) -> usize {
    // 61 has no factor in common with 100: all remainders have their turn, in no order.
    let mut place = number * 61 % 100;
    KINDS
        .iter()
        .position(|(_, share)| {
            let is_in = place < *share;
            place = place.saturating_sub(*share);
            is_in
        })
        .unwrap_or(0)
}
