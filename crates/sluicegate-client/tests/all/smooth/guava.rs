//! The events that Guava publishes in `RateLimiterTest`, through the layer: `R` for a request that waited, `U` for time
//! without one.

use sluicegate::key::Path;
use sluicegate_client::outgoing::OutgoingView;

use super::*;

/// Requests in a row: `get` is sent and awaited, and a number of milliseconds without requests is slept.
struct Stopwatch {
    gate: Gate<Stored>,
    events: Vec<String>,
}

impl Stopwatch {
    fn new(method: Stored) -> Self {
        // The path says how many permits it takes.
        let cost = |view: &OutgoingView<'_>| view.target().path[1..].parse().unwrap();
        Self { gate: Gate::new(method, |settings| settings.cost(cost)), events: Vec::new() }
    }

    async fn acquire(&mut self, permits: u32) {
        let begun = self.gate.clock.now();
        let request = Request::get(format!("https://api.example/{permits}")).body(()).unwrap();
        self.gate.until(self.gate.send(request)).await.unwrap();
        // A manual clock goes in steps of a millisecond.
        let hundredths = (self.gate.clock.now() - begun + 5_000) / 10_000;
        self.events.push(format!("R{}.{:02}", hundredths / 100, hundredths % 100));
    }

    async fn times(&mut self, times: u32) {
        for _ in 0..times {
            self.acquire(1).await;
        }
    }

    async fn sleep(&mut self, millis: u64) {
        self.gate.pass(millis).await;
        self.events.push(format!("U{}.{:02}", millis / 1_000, millis % 1_000 / 10));
    }

    fn saw(&self, events: &[&str]) {
        assert_eq!(self.events.join(", "), events.join(", "));
    }
}

#[tokio::test]
async fn a_burst_of_one_second_and_the_next_caller_pays() {
    let mut watch = Stopwatch::new(Stored::bursty(5.0, SECOND).unwrap());
    watch.sleep(1_000).await;
    watch.sleep(1_000).await;
    for permits in [1, 1, 3, 1, 1] {
        watch.acquire(permits).await;
    }
    watch.saw(&["U1.00", "U1.00", "R0.00", "R0.00", "R0.00", "R0.00", "R0.20"]);

    let mut watch = Stopwatch::new(Stored::bursty(1.0, SECOND).unwrap());
    for permits in [1, 1, 2, 4, 8, 1] {
        watch.acquire(permits).await;
    }
    watch.saw(&["R0.00", "R1.00", "R1.00", "R2.00", "R4.00", "R8.00"]);
}

#[tokio::test]
async fn a_steady_rate() {
    let mut watch = Stopwatch::new(Stored::bursty(5.0, SECOND).unwrap());
    watch.acquire(1).await;
    watch.sleep(200).await;
    watch.times(2).await;
    watch.saw(&["R0.00", "U0.20", "R0.00", "R0.20"]);
}

#[tokio::test]
async fn warming_up() {
    let mut watch = Stopwatch::new(Stored::warming_up(2.0, 4 * SECOND, 3.0).unwrap());
    watch.times(8).await;
    watch.sleep(500).await;
    watch.sleep(4_000).await;
    watch.times(8).await;
    watch.sleep(500).await;
    watch.sleep(2_000).await;
    watch.times(8).await;
    watch.saw(&[
        "R0.00, R1.38, R1.13, R0.88, R0.63, R0.50, R0.50, R0.50",
        "U0.50",
        "U4.00",
        "R0.00, R1.38, R1.13, R0.88, R0.63, R0.50, R0.50, R0.50",
        "U0.50",
        "U2.00",
        "R0.00, R0.50, R0.50, R0.50, R0.50, R0.50, R0.50, R0.50",
    ]);
}

#[tokio::test]
async fn each_key_has_a_rate_of_its_own() {
    let gate = Gate::new(bursty(1.0), |settings| settings.by(Path));
    let request = |path: &str| Request::get(format!("https://api.example{path}")).body(()).unwrap();
    for path in ["/a", "/b", "/c"] {
        gate.until(gate.send(request(path))).await.unwrap();
    }
    assert_eq!(gate.left(), [0, 0, 0]);
    gate.until(gate.send(request("/a"))).await.unwrap();
    assert_eq!(gate.left().last(), Some(&1_000));
}
