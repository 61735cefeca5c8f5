//! The layer that smooths: when requests leave.

mod guava;
mod leaving;
mod waiting;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use sluicegate::ManualClock;
use sluicegate_client::smooth::{Reserve, SmoothBuilder, Stored};
use sluicegate_client::{BoxError, Refused, SmoothLayer};
use tower::{Layer, Service};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// Requests through a layer, by a clock that the test turns.
struct Gate<R> {
    clock: ManualClock,
    layer: SmoothLayer<R>,
    /// When requests left, in milliseconds.
    left: Arc<Mutex<Vec<u64>>>,
}

type Sent = tokio::task::JoinHandle<Result<(), Option<Duration>>>;

impl<R: Reserve + Clone + Send + Sync + 'static> Gate<R> {
    fn new(method: R, settings: impl FnOnce(SmoothBuilder<R>) -> SmoothBuilder<R>) -> Self {
        let clock = ManualClock::at(Duration::ZERO);
        let layer = settings(SmoothLayer::builder(method).clock(&clock)).build().unwrap();
        Self { clock, layer, left: Arc::default() }
    }

    /// Sends a request. The error is when it may be tried again, if that is known.
    fn send(&self, request: Request<()>) -> Sent {
        let (left, clock) = (self.left.clone(), self.clock.clone());
        let mut service = self.layer.layer(tower::service_fn(move |_: Request<()>| {
            left.lock().unwrap().push(clock.now() / 1_000);
            async { Ok::<_, BoxError>(Response::new(())) }
        }));
        // It is called now, in the order of the test.
        let sent = Service::<Request<()>>::call(&mut service, request);
        tokio::spawn(async move {
            sent.await.map(drop).map_err(|error| Refused::find(&*error).unwrap().retry_after())
        })
    }

    async fn pass(&self, millis: u64) {
        for _ in 0..millis {
            settle().await;
            self.clock.advance(MS);
        }
        settle().await;
    }

    async fn until<T>(&self, task: tokio::task::JoinHandle<T>) -> T {
        settle().await;
        while !task.is_finished() {
            self.clock.advance(MS);
            settle().await;
        }
        task.await.unwrap()
    }

    fn left(&self) -> Vec<u64> {
        self.left.lock().unwrap().clone()
    }
}

async fn settle() {
    for _ in 0..4 {
        tokio::task::yield_now().await;
    }
}

fn get() -> Request<()> {
    Request::get("https://api.example/").body(()).unwrap()
}

fn bursty(rate: f64) -> Stored {
    Stored::bursty(rate, Duration::ZERO).unwrap()
}
