//! The layer that retries: what is sent again, how often, and when.

mod budget;
mod hostile;
mod safe;
mod timing;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use sluicegate::ManualClock;
use sluicegate_client::retry::RetryBuilder;
use sluicegate_client::{BoxError, RetryLayer};
use tower::{Layer, Service, ServiceExt};

/// A server that counts what comes, and fails as it is told.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    seen: usize,
    answers: VecDeque<Answer>,
    always: Option<Answer>,
}

#[derive(Clone)]
enum Answer {
    Status(u16, Option<(&'static str, &'static str)>),
    Error(&'static str),
}

impl Server {
    fn answering(answers: &[Answer]) -> Self {
        let server = Self::default();
        server.0.lock().unwrap().answers.extend(answers.iter().cloned());
        server
    }

    fn always(answer: Answer) -> Self {
        let server = Self::default();
        server.0.lock().unwrap().always = Some(answer);
        server
    }

    fn seen(&self) -> usize {
        self.0.lock().unwrap().seen
    }
}

impl Service<Request<String>> for Server {
    type Response = Response<()>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<()>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<String>) -> Self::Future {
        let mut state = self.0.lock().unwrap();
        state.seen += 1;
        let answer = state.answers.pop_front().or(state.always.clone());
        let result = match answer.unwrap_or(Answer::Status(200, None)) {
            Answer::Error(text) => Err(text.into()),
            Answer::Status(status, field) => {
                let mut response = Response::builder().status(status);
                if let Some((name, value)) = field {
                    response = response.header(name, value);
                }
                Ok(response.body(()).unwrap())
            }
        };
        Box::pin(async move { result })
    }
}

/// Sends a request through a layer with these settings, and turns the clock until its result is there.
async fn send(
    server: &Server,
    settings: impl FnOnce(RetryBuilder) -> RetryBuilder,
    request: Request<String>,
) -> Result<u16, String> {
    let clock = ManualClock::new();
    let layer = settings(RetryLayer::builder().clock(&clock)).build().unwrap();
    let mut service = layer.layer(server.clone());
    let sent = tokio::spawn(async move { service.ready().await?.call(request).await });
    while !sent.is_finished() {
        clock.advance(Duration::from_millis(50));
        tokio::task::yield_now().await;
    }
    sent.await
        .unwrap()
        .map(|response| response.status().as_u16())
        .map_err(|error| error.to_string())
}

fn get() -> Request<String> {
    Request::get("https://api.example/").body(String::new()).unwrap()
}

const BUSY: Answer = Answer::Status(503, None);
const BROKEN: Answer = Answer::Error("connection reset");
