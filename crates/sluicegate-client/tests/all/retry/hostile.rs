//! A server that answers at random, callers that leave at random, and all layers between them.

use std::collections::HashMap;

use fastrand::Rng;
use http::Method;
use sluicegate::adapter::Sleep;
use sluicegate_client::smooth::Stored;
use sluicegate_client::{AdaptiveThrottleLayer, ObeyLayer, Outgoing, SmoothLayer};

use super::*;

const MS: Duration = Duration::from_millis(1);

/// Fields that a server may send to confuse its clients.
const FIELDS: [(&str, &str); 16] = [
    ("x-nothing", "1"),
    ("retry-after", "0"),
    ("retry-after", "1"),
    ("retry-after", "99999999999999999999"),
    ("retry-after", "Thu, 01 Jan 1970 00:00:00 GMT"),
    ("ratelimit", r#""a";r=0;t=0"#),
    ("ratelimit", r#""a";r=1;t=1"#),
    ("ratelimit", r#""a";r=999999999999999;t=1"#),
    ("x-ratelimit-remaining", "0"),
    ("x-ratelimit-reset", "18446744073709551615"),
    ("grpc-status", "14"),
    ("grpc-status", "8"),
    ("grpc-retry-pushback-ms", "-1"),
    ("grpc-retry-pushback-ms", "0"),
    ("age", "18446744073709551615"),
    ("date", "Fri, 31 Dec 9999 23:59:59 GMT"),
];

const STATUSES: [u16; 10] = [200, 200, 200, 204, 302, 404, 429, 500, 503, 0];

#[derive(Clone)]
struct Hostile {
    clock: ManualClock,
    /// How often each request came.
    came: Arc<Mutex<HashMap<String, usize>>>,
    random: Arc<Mutex<Rng>>,
    /// A clone for each request that has not ended.
    running: Arc<()>,
}

impl Service<Request<String>> for Hostile {
    type Response = Response<()>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<()>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<String>) -> Self::Future {
        *self.came.lock().unwrap().entry(request.into_body()).or_default() += 1;
        let mut random = self.random.lock().unwrap();
        let status = STATUSES[random.usize(..STATUSES.len())];
        let mut response = Response::builder().status(if status == 0 { 200 } else { status });
        for _ in 0..random.usize(..4) {
            let (name, value) = FIELDS[random.usize(..FIELDS.len())];
            response = response.header(name, value);
        }
        let millis = [1, 1, 2, 2, 5, 5, 20, 20, 100, 1_000_000][random.usize(..10)];
        let sleep = Sleep::new(&self.clock.clone().into(), MS * millis, tokio::time::sleep);
        let running = self.running.clone();
        Box::pin(async move {
            sleep.await;
            drop(running);
            if status == 0 { Err("connection reset".into()) } else { Ok(response.body(())?) }
        })
    }
}

/// The runtime polls some sixty tasks between two polls of the test.
async fn all_settle() {
    for _ in 0..48 {
        tokio::task::yield_now().await;
    }
}

/// Sends requests through `layers`: how many came at all, and how many with those that were repeated.
async fn attack<L, S>(seed: u64, layers: impl Fn(&ManualClock) -> L) -> (usize, usize)
where
    L: Layer<Hostile, Service = S>,
    S: Service<Request<String>, Response = Response<()>, Error = BoxError, Future: Send>,
    S: Clone + Send + 'static,
{
    let clock = ManualClock::at(Duration::from_secs(1_700_000_000));
    let random = Arc::new(Mutex::new(Rng::with_seed(seed)));
    let running = Arc::new(());
    let server = Hostile {
        clock: clock.clone(),
        came: Arc::default(),
        random: random.clone(),
        running: running.clone(),
    };
    let service = layers(&clock).layer(server.clone());

    let mut calls = Vec::new();
    for number in 0..CALLS {
        let method = if number % 3 == 0 { Method::POST } else { Method::GET };
        let request = Request::builder()
            .method(&method)
            .uri("https://api.example/")
            .body(format!("{method} {number}"))
            .unwrap();
        let mut service = service.clone();
        calls.push(tokio::spawn(async move { service.ready().await?.call(request).await }));
        if random.lock().unwrap().u32(..6) == 0 {
            let left = random.lock().unwrap().usize(..calls.len());
            calls[left].abort();
        }
        clock.advance(MS);
        all_settle().await;
    }
    // Those that are patient get an end, or leave when the server stalls.
    for _ in 0..400 {
        clock.advance(50 * MS);
        all_settle().await;
    }
    for call in calls {
        call.abort();
        // Answered, or aborted.
        let _ = call.await;
    }
    drop(service);
    assert_eq!(Arc::strong_count(&running), 2, "{seed}: nothing is left behind");

    let came = server.came.lock().unwrap();
    let twice = came.iter().filter(|(body, times)| body.starts_with("POST") && **times > 1);
    assert_eq!(twice.count(), 0, "{seed}");
    (came.len(), came.values().sum())
}

const CALLS: usize = 600;

fn retry(clock: &ManualClock) -> RetryLayer {
    RetryLayer::builder().clock(clock).build().unwrap()
}

#[tokio::test]
async fn nothing_that_may_do_harm_is_sent_twice_and_the_budgets_hold_whatever_a_server_says() {
    for seed in 0..4 {
        let (requests, all) = attack(seed, retry).await;
        assert!(requests > CALLS * 9 / 10, "{seed}: {requests}");
        // At most a tenth is sent again, with ten in advance.
        assert!(all <= CALLS + CALLS / 10 + 10, "{seed}: {all}");
        assert!(all >= CALLS + CALLS / 24, "{seed}: {all}");
    }
}

#[tokio::test]
async fn all_layers_together_end_whatever_a_server_says() {
    for seed in 0..4 {
        let layers = |clock: &ManualClock| {
            let smooth = SmoothLayer::builder(Stored::bursty(2_000.0, MS).unwrap());
            let obey = ObeyLayer::builder().believe(20 * MS).probe(10 * MS).clock(clock);
            Outgoing::new()
                .retry(retry(clock))
                .throttle(AdaptiveThrottleLayer::builder().clock(clock).build().unwrap())
                .pace(smooth.clock(clock).build().unwrap())
                .obey(obey.build().unwrap())
        };
        let (requests, all) = attack(seed, layers).await;
        assert!(all <= requests * 12 / 10 && requests > CALLS / 10, "{seed}: {all} for {requests}");
    }
}
