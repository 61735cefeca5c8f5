use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use http::{Request, Response};
use tokio::sync::oneshot;
use tower::Service;

/// A server that notes what comes and answers as it is told, else with 200.
#[derive(Clone, Default)]
pub(crate) struct Server(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    seen: Vec<String>,
    answers: VecDeque<Response<()>>,
    stalls: bool,
    held: Vec<oneshot::Sender<Response<()>>>,
}

impl Server {
    /// The answer to the next request that has none yet.
    pub(crate) fn answer(&self, status: u16, fields: &[(&str, &str)]) {
        let mut response = Response::builder().status(status);
        for (name, value) in fields {
            response = response.header(*name, *value);
        }
        self.0.lock().unwrap().answers.push_back(response.body(()).unwrap());
    }

    /// From now on requests are not answered.
    pub(crate) fn stall(&self) {
        self.0.lock().unwrap().stalls = true;
    }

    /// Answers those that were not, and whatever comes.
    pub(crate) fn resume(&self) {
        let mut state = self.0.lock().unwrap();
        state.stalls = false;
        for held in state.held.drain(..) {
            let _ = held.send(Response::new(()));
        }
    }

    /// The paths of the requests that came since the last call.
    pub(crate) fn seen(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().seen)
    }
}

impl Service<Request<()>> for Server {
    type Response = Response<()>;
    type Error = oneshot::error::RecvError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<()>, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        let mut state = self.0.lock().unwrap();
        state.seen.push(request.uri().path().to_owned());
        if state.stalls {
            let (held, response) = oneshot::channel();
            state.held.push(held);
            return Box::pin(response);
        }
        let response = state.answers.pop_front().unwrap_or_default();
        Box::pin(async move { Ok(response) })
    }
}
