use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix_web::dev::{Service, ServiceRequest, ServiceResponse, Transform};
use actix_web::http::header::{ACCEPT_ENCODING, HeaderValue};
use actix_web::{Error, HttpMessage};
use pin_project_lite::pin_project;
use sluicegate_core::Cost;
use sluicegate_core::adapter::PassingUsage;
use sluicegate_core::cost::RunningCost;
use sluicegate_core::cost::llm::TokenUsage;

use crate::llm::watched::WatchedBody;
use crate::reply::find_line;

/// A middleware that reads the usage in the answers of a language model as they pass, and reports it to the
/// [`RateLimit`](crate::RateLimit) around it, for [`settle_tokens`](crate::rule::By::settle_tokens).
///
/// [`UsageReader`](crate::cost::llm::UsageReader) says what it finds, and when it is final. Nothing of the answer is kept or
/// delayed. A response that is compressed, or neither JSON nor a stream of events, cannot be read: what was reserved stays
/// charged, and the answer is [counted](crate::observe::Counts::unread). A response with a [`TokenUsage`], a
/// [`RunningCost`] or a [`Cost`] of the handler is left alone.
///
/// The handler sees `Accept-Encoding: identity`, whatever the client sent. So a handler that passes requests on to a model
/// asks for an answer that can be read. Wrap `actix_web::middleware::Compress` later.
#[derive(Debug, Clone, Copy, Default)]
#[must_use]
pub struct UsageMiddleware;

impl UsageMiddleware {
    /// The middleware.
    pub const fn new() -> Self {
        Self
    }
}

impl<I, B> Transform<I, ServiceRequest> for UsageMiddleware
where
    I: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
{
    type Response = ServiceResponse<WatchedBody<B>>;
    type Error = Error;
    type Transform = UsageService<I>;
    type InitError = ();
    type Future = Ready<Result<Self::Transform, ()>>;

    fn new_transform(&self, inner: I) -> Self::Future {
        ready(Ok(UsageService(inner)))
    }
}

/// A service behind a [`UsageMiddleware`].
#[derive(Debug)]
pub struct UsageService<I>(I);

impl<I, B> Service<ServiceRequest> for UsageService<I>
where
    I: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
{
    type Response = ServiceResponse<WatchedBody<B>>;
    type Error = Error;
    type Future = UsageFuture<I::Future>;

    fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&self, mut request: ServiceRequest) -> Self::Future {
        let identity = HeaderValue::from_static("identity");
        request.headers_mut().insert(ACCEPT_ENCODING, identity);
        UsageFuture { future: self.0.call(request) }
    }
}

pin_project! {
    /// The response of a [`UsageService`].
    #[derive(Debug)]
    pub struct UsageFuture<F> {
        #[pin]
        future: F,
    }
}

impl<F, B> Future for UsageFuture<F>
where
    F: Future<Output = Result<ServiceResponse<B>, Error>>,
{
    type Output = Result<ServiceResponse<WatchedBody<B>>, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let response = ready!(self.project().future.poll(cx));
        Poll::Ready(response.map(|mut response| {
            let usage = passing(&mut response);
            response.map_body(|_, body| WatchedBody::new(body, usage))
        }))
    }
}

/// Reads the response's usage, and leaves it for the limit. One that cannot be read is left too, so that the limit knows
/// that it was not.
fn passing<B>(response: &mut ServiceResponse<B>) -> PassingUsage {
    if is_there::<TokenUsage, B>(response)
        || is_there::<RunningCost, B>(response)
        || is_there::<Cost, B>(response)
    {
        return PassingUsage::nothing();
    }
    let usage = TokenUsage::new();
    let passing = PassingUsage::of(&usage, |name| find_line(response.headers(), name));
    response.response_mut().extensions_mut().insert(usage);
    passing
}

/// Whether the handler has left a `T`, in the response or in the request.
fn is_there<T: 'static, B>(response: &ServiceResponse<B>) -> bool {
    response.response().extensions().contains::<T>()
        || response.request().extensions().contains::<T>()
}
