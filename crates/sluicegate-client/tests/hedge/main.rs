//! The layer that hedges: which requests have a copy, when, and how many.

mod budget;
mod copies;
mod hostile;
mod stack;

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use sluicegate::ManualClock;
use sluicegate::adapter::Sleep;
use sluicegate_client::hedge::HedgeBuilder;
use sluicegate_client::{BoxError, HedgeLayer};
use tower::{Layer, Service, ServiceExt};

const MS: Duration = Duration::from_millis(1);

/// A server whose answers take as long as the test says, in the order in which requests come.
#[derive(Clone)]
struct Server {
    clock: ManualClock,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// When requests came, in milliseconds.
    came: Vec<u64>,
    /// Requests that were neither answered nor dropped.
    running: usize,
    /// What the next requests get.
    plan: std::collections::VecDeque<Answer>,
    usual: Answer,
}

#[derive(Clone, Copy)]
struct Answer {
    millis: u64,
    /// Zero breaks the connection.
    status: u16,
}

impl Default for Answer {
    fn default() -> Self {
        after(10)
    }
}

const fn after(millis: u64) -> Answer {
    Answer { millis, status: 200 }
}

impl Server {
    fn new() -> Self {
        Self { clock: ManualClock::at(Duration::ZERO), state: Arc::default() }
    }

    fn plan(&self, answers: &[Answer]) {
        self.state.lock().unwrap().plan.extend(answers);
    }

    fn seen(&self) -> usize {
        self.state.lock().unwrap().came.len()
    }

    fn running(&self) -> usize {
        self.state.lock().unwrap().running
    }

    /// Lets time pass until `task` has ended.
    async fn until<T>(&self, task: tokio::task::JoinHandle<T>) -> T {
        while !task.is_finished() {
            settle().await;
            self.clock.advance(MS);
        }
        task.await.unwrap()
    }

    /// Lets this time pass.
    async fn pass(&self, millis: u64) {
        for _ in 0..millis {
            settle().await;
            self.clock.advance(MS);
        }
        settle().await;
    }
}

async fn settle() {
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
}

struct Running(Server);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.state.lock().unwrap().running -= 1;
    }
}

impl Service<Request<String>> for Server {
    type Response = Response<usize>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<usize>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    /// The body of the response is the number of the request, from 1.
    fn call(&mut self, _: Request<String>) -> Self::Future {
        let mut state = self.state.lock().unwrap();
        state.came.push(self.clock.now() / 1_000);
        state.running += 1;
        let (number, usual) = (state.came.len(), state.usual);
        let answer = state.plan.pop_front().unwrap_or(usual);
        let running = Running(self.clone());
        let wait = MS * answer.millis as u32;
        let sleep = Sleep::new(&self.clock.clone().into(), wait, tokio::time::sleep);
        Box::pin(async move {
            sleep.await;
            drop(running);
            match answer.status {
                0 => Err("connection reset".into()),
                status => Ok(Response::builder().status(status).body(number)?),
            }
        })
    }
}

fn get() -> Request<String> {
    Request::get("https://api.example/").body(String::new()).unwrap()
}

/// Sends a request: the status (0 for an error), and the number of the request that was answered.
fn send<S>(service: &S, request: Request<String>) -> tokio::task::JoinHandle<(u16, usize)>
where
    S: Service<Request<String>, Response = Response<usize>, Error = BoxError, Future: Send>,
    S: Clone + Send + 'static,
{
    let mut service = service.clone();
    tokio::spawn(async move {
        match service.ready().await.unwrap().call(request).await {
            Ok(response) => (response.status().as_u16(), *response.body()),
            Err(_) => (0, 0),
        }
    })
}

/// A hedged server that has answered a hundred requests in 10 ms each.
async fn warm(
    settings: impl FnOnce(HedgeBuilder) -> HedgeBuilder,
) -> (Server, sluicegate_client::hedge::Hedge<Server>) {
    let server = Server::new();
    let layer = settings(HedgeLayer::builder().clock(&server.clock)).build().unwrap();
    let service = layer.layer(server.clone());
    warm_up(&server, &service).await;
    (server, service)
}

async fn warm_up<S>(server: &Server, service: &S)
where
    S: Service<Request<String>, Response = Response<usize>, Error = BoxError, Future: Send>,
    S: Clone + Send + 'static,
{
    for _ in 0..100 {
        server.until(send(service, get())).await;
    }
    assert_eq!(server.seen(), 100, "nothing is late before");
    server.state.lock().unwrap().came.clear();
}
