//! Real connections: upgrades, HTTP/2 with many streams, and clients that close them.

mod bodies;
mod hostile;
mod http2;
mod upgrades;
mod workers;

use std::time::Duration;

use sluicegate_throttle::Throttle;
use sluicegate_throttle::layer::Snapshot;
use tokio::task::yield_now;

/// One request at a time, and a queue for a cost of 4 milliseconds: 4 requests.
fn one_at_a_time() -> Throttle {
    let builder = Throttle::builder().in_flight(1).queue(Duration::from_millis(4));
    builder.clock(sluicegate::ManualClock::new()).build().unwrap()
}

/// Lets other tasks go on until `is_so`.
async fn until(throttle: &Throttle, is_so: impl Fn(&Snapshot) -> bool) {
    while !is_so(&throttle.snapshot()) {
        yield_now().await;
    }
}
