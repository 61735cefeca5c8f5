//! The layer, driven by a manual clock.

mod cancellation;
mod changing;
mod conditions;
mod costs;
mod nested;
mod partitions;
mod refusals;
#[cfg(all(feature = "metrics", feature = "tracing"))]
mod seeing;
mod waiting;

use std::cell::RefCell;
use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use sluicegate::ManualClock;
use sluicegate::response::Body;
use sluicegate_throttle::Throttle;
use sluicegate_throttle::layer::ThrottleBuilder;
use tower::{Layer, Service};

type Answer = Response<Body<Full<Bytes>>>;
type Answering<T = Answer> = Pin<Box<dyn Future<Output = Result<T, Infallible>>>>;

/// Handlers that wait until the test lets them answer, in the order in which they were started.
#[derive(Clone, Default)]
struct Handlers(Rc<RefCell<Handling>>);

#[derive(Default)]
struct Handling {
    started: Vec<String>,
    asked: usize,
    answers: Vec<tokio::sync::oneshot::Sender<Response<Full<Bytes>>>>,
}

impl Handlers {
    /// The paths of the requests that were started so far.
    fn started(&self) -> Vec<String> {
        self.0.borrow().started.clone()
    }

    /// Lets the oldest handler that waits answer.
    fn answer(&self, response: Response<Full<Bytes>>) {
        let answer = self.0.borrow_mut().answers.remove(0);
        let _ = answer.send(response);
    }

    fn answer_empty(&self) {
        self.answer(Response::new(Full::default()));
    }
}

impl<B> Service<Request<B>> for Handlers {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.borrow_mut().asked += 1;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let mut handling = self.0.borrow_mut();
        handling.started.push(request.uri().path().to_owned());
        handling.answers.push(sender);
        Box::pin(async { Ok(receiver.await.expect("an answer")) })
    }
}

/// One request at a time, and a queue for four requests, in which they wait for any time.
fn one_at_a_time(clock: &ManualClock) -> ThrottleBuilder {
    Throttle::builder().in_flight(1).queue_cost(4_000).clock(clock)
}

/// Handlers behind a throttle of one request at a time.
fn scene() -> (ManualClock, Handlers, Throttle) {
    let clock = ManualClock::new();
    let throttle = one_at_a_time(&clock).build().unwrap();
    (clock, Handlers::default(), throttle)
}

fn get(path: &str) -> Request<String> {
    Request::get(path).body(String::new()).unwrap()
}

/// Sends a request through a plain layer of `throttle`. It has not been polled.
fn send(throttle: &Throttle, handlers: &Handlers, path: &str) -> Answering {
    let mut service = throttle.layer().layer(handlers.clone());
    Box::pin(service.call(get(path)))
}

fn poll<T>(answering: &mut Answering<T>) -> Poll<T> {
    let mut cx = Context::from_waker(Waker::noop());
    answering.as_mut().poll(&mut cx).map(|result| result.unwrap_or_else(|never| match never {}))
}

fn answered<T: std::fmt::Debug>(answering: &mut Answering<T>) -> T {
    match poll(answering) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("there is no answer yet"),
    }
}

fn assert_waits<T>(answering: &mut Answering<T>) {
    assert!(poll(answering).is_pending());
}
