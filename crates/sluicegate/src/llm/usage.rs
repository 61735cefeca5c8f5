use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::header::ACCEPT_ENCODING;
use http::{HeaderValue, Request, Response};
use pin_project_lite::pin_project;
use sluicegate_core::Cost;
use sluicegate_core::adapter::PassingUsage;
use sluicegate_core::cost::RunningCost;
use sluicegate_core::cost::llm::TokenUsage;
use tower::Service;
use tower_layer::Layer;

use crate::llm::watched::WatchedBody;
use crate::reply::find_line;

/// A tower layer that reads the usage in the answers of a language model as they pass, and reports it to the
/// [`RateLimitLayer`](crate::RateLimitLayer) around it, for
/// [`settle_tokens`](crate::rule::By::settle_tokens).
///
/// [`UsageReader`](crate::cost::llm::UsageReader) says what it finds, and when it is final. Nothing of the answer is kept or
/// delayed. A response that is compressed, or neither JSON nor a stream of events, cannot be read: what was reserved stays
/// charged, and the answer is [counted](crate::observe::Counts::unread). A response with a [`TokenUsage`], a
/// [`RunningCost`] or a [`Cost`] of the handler is left alone.
///
/// The handler sees `Accept-Encoding: identity`, whatever the client sent. So a handler that passes requests on to a model
/// asks for an answer that can be read. A layer that compresses goes around this one.
///
/// ```
/// use http::{Request, Response};
/// use http_body_util::{BodyExt, Full};
/// use sluicegate::cost::llm::{Count, tokens};
/// use sluicegate::service::UsageLayer;
/// use sluicegate::response::LazyDecision;
/// use sluicegate::{Global, Limit, ManualClock, Memory, RateLimitLayer};
/// use tower::{Layer, ServiceExt};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
///
/// let model = tower::service_fn(|_: Request<()>| async {
///     let answer = r#"{"usage":{"prompt_tokens":9,"completion_tokens":12,"total_tokens":21}}"#;
///     let body = Full::new(bytes::Bytes::from(answer));
///     Response::builder().header("content-type", "application/json").body(body)
/// });
/// let budget = Limit::per_minute(1_000)
///     .by(Global)
///     .cost(tokens(Count::All).or(400))
///     .settle_tokens(Count::All);
/// let service = RateLimitLayer::new(budget)
///     .store(Memory::builder().clock(ManualClock::new()).build())
///     .extensions(true)
///     .layer(UsageLayer::new().layer(model));
///
/// let remaining = |response: &Response<_>| response.extensions().get::<LazyDecision>()?.decision().remaining();
/// let first = service.clone().oneshot(Request::new(())).await?;
/// // 400 are reserved, and 21 used.
/// assert_eq!(remaining(&first), Some(600));
/// first.into_body().collect().await?;
/// let second = service.oneshot(Request::new(())).await?;
/// assert_eq!(remaining(&second), Some(1_000 - 21 - 400));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct UsageLayer;

impl UsageLayer {
    /// The layer.
    pub const fn new() -> Self {
        Self
    }

    /// Reads the usage of one response, as the layer does with each: for a service that reads it of some.
    pub fn watch<B>(mut response: Response<B>) -> Response<WatchedBody<B>> {
        let usage = passing(&mut response);
        response.map(|body| WatchedBody::new(body, usage))
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
    type Response = Response<WatchedBody<ResBody>>;
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
    type Output = Result<Response<WatchedBody<B>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let response = ready!(self.project().future.poll(cx));
        Poll::Ready(response.map(UsageLayer::watch))
    }
}

/// Reads the response's usage, and leaves it for the limit. One that cannot be read is left too, so that the limit knows
/// that it was not.
fn passing<B>(response: &mut Response<B>) -> PassingUsage {
    let extensions = response.extensions();
    if extensions.get::<TokenUsage>().is_some()
        || extensions.get::<RunningCost>().is_some()
        || extensions.get::<Cost>().is_some()
    {
        return PassingUsage::nothing();
    }
    let usage = TokenUsage::new();
    let passing = PassingUsage::of(&usage, |name| find_line(response.headers(), name));
    response.extensions_mut().insert(usage);
    passing
}

impl<F> fmt::Debug for UsageFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UsageFuture")
    }
}
