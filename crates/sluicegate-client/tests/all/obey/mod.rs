//! The layer that obeys: who waits, in which order, and for how long.

mod cancelling;
mod keys;
mod server;
mod waiting;

use std::time::Duration;

use http::{Request, Response};
use sluicegate::ManualClock;
use sluicegate_client::obey::ObeyBuilder;
use sluicegate_client::{BoxError, Layered, ObeyLayer, Refused};
use tokio::task::JoinHandle;
use tower::{Layer, Service, ServiceExt};

use self::server::Server;

struct Client {
    clock: ManualClock,
    obey: Layered<Server, ObeyLayer>,
    server: Server,
}

impl Client {
    fn new() -> Self {
        Self::with(|builder| builder)
    }

    fn with(settings: impl FnOnce(ObeyBuilder) -> ObeyBuilder) -> Self {
        let clock = ManualClock::new();
        let server = Server::default();
        let layer = settings(ObeyLayer::builder().clock(&clock)).build().unwrap();
        Self { clock, obey: layer.layer(server.clone()), server }
    }

    /// Sends a request, and returns its result when it is there.
    fn send(&self, uri: &str) -> JoinHandle<Result<Response<()>, BoxError>> {
        let request = Request::get(uri).body(()).unwrap();
        let mut obey = self.obey.clone();
        tokio::spawn(async move { obey.ready().await?.call(request).await })
    }

    /// Makes the server refuse one request.
    async fn refused_for(&self, uri: &str, seconds: u32) {
        self.server.answer(429, &[("retry-after", &seconds.to_string())]);
        assert_eq!(self.send(uri).await.unwrap().unwrap().status(), 429);
    }

    /// Turns the clock, and lets everything run that can.
    async fn advance(&self, millis: u64) {
        settle().await;
        self.clock.advance(Duration::from_millis(millis));
        settle().await;
    }
}

/// Lets all tasks run until they wait.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

fn refusal(result: Result<Response<()>, BoxError>) -> Refused {
    let error = result.unwrap_err();
    Refused::find(&*error).expect("a refusal").clone()
}
