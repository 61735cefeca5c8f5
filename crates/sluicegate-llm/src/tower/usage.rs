use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::header::ACCEPT_ENCODING;
use http::{HeaderValue, Request, Response};
use pin_project_lite::pin_project;
use sluicegate::adapter::{HttpReply, Reply as _};
use sluicegate::response::Body;
use tower_layer::Layer;
use tower_service::Service;

use crate::answer::PassingUsage;
use crate::{TokenUsage, UsageLayer};

impl UsageLayer {
    /// Reads the usage of one response, as the layer does with each: for a service that reads it of some.
    pub fn watch<B>(mut response: Response<B>) -> Response<Body<B>> {
        let usage = passing(&mut response);
        response.map(|body| Body::guarded(body, usage.map(|usage| usage as _)))
    }
}

impl<I> Layer<I> for UsageLayer {
    type Service = UsageService<I>;

    fn layer(&self, inner: I) -> UsageService<I> {
        UsageService(inner)
    }
}

/// A service behind a [`UsageLayer`].
#[derive(Debug, Clone)]
pub struct UsageService<I>(I);

impl<I, B, ResBody> Service<Request<B>> for UsageService<I>
where
    I: Service<Request<B>, Response = Response<ResBody>>,
{
    type Response = Response<Body<ResBody>>;
    type Error = I::Error;
    type Future = UsageFuture<I::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), I::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        UsageFuture { future: self.0.call(request) }
    }
}

pin_project! {
    /// The response of a [`UsageService`].
    pub struct UsageFuture<F> {
        #[pin]
        future: F,
    }
}

impl<F, B, E> Future for UsageFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<Body<B>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let response = ready!(self.project().future.poll(cx));
        Poll::Ready(response.map(UsageLayer::watch))
    }
}

/// Reads the response's usage, and leaves it for the limit. One that cannot be read is left too, so that the limit knows
/// that it was not.
fn passing<B>(response: &mut Response<B>) -> Option<Box<PassingUsage>> {
    if HttpReply(response).has_cost() {
        return None;
    }
    let usage = TokenUsage::new();
    let passing =
        PassingUsage::of(&usage, |name| response.headers().get(name).map(|value| value.as_bytes()));
    response.extensions_mut().insert(usage.running_cost());
    passing
}

impl<F> fmt::Debug for UsageFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UsageFuture")
    }
}
