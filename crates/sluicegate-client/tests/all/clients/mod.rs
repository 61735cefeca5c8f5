//! The layers around the clients of other crates, against servers on this machine.

mod every;
mod grpc;
mod hyper;
mod lying;
mod middleware;
mod pushback;
mod replay;
mod reqwest_client;
mod scripted;
mod server;

use std::error::Error;
use std::time::Duration;

use sluicegate::ManualClock;
use sluicegate_client::retry::RetryBuilder;
use sluicegate_client::{ObeyLayer, Refused, RetryLayer};

use self::server::Server;

/// A layer that lets no request wait.
fn obey() -> ObeyLayer {
    ObeyLayer::builder().wait(Duration::ZERO).clock(ManualClock::new()).build().unwrap()
}

/// A layer that retries at once.
fn retry() -> RetryBuilder {
    RetryLayer::builder().backoff(Duration::from_micros(1), Duration::from_micros(1))
}

fn is_refused(error: &(dyn Error + 'static)) -> bool {
    Refused::find(error).is_some()
}
