use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix_web::dev::{Service, ServiceRequest, ServiceResponse, Transform};
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use actix_web::{Error, HttpMessage};
use pin_project_lite::pin_project;
use sluicegate_core::Cost;
use sluicegate_core::cost::RunningCost;
use sluicegate_core::cost::llm::{Media, TokenUsage, UsageReader};

use crate::llm::watched::WatchedBody;
use crate::reply::find_line;

/// A middleware that reads the usage in the answers of a language model as they pass, and reports it to the
/// [`RateLimit`](crate::RateLimit) around it, for [`settle_tokens`](crate::rule::By::settle_tokens).
///
/// [`UsageReader`] says what it finds. Nothing of the answer is kept or delayed. A response that is compressed, or neither
/// JSON nor a stream of events, cannot be read: what was reserved stays charged. So wrap
/// `actix_web::middleware::Compress` later. A response with a [`TokenUsage`], a [`RunningCost`] or a [`Cost`] of
/// the handler is left alone.
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

    fn call(&self, request: ServiceRequest) -> Self::Future {
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
            let reader = reader(&mut response);
            response.map_body(|_, body| WatchedBody::new(body, reader))
        }))
    }
}

/// A reader for the response, whose usage is left for the limit.
fn reader<B>(response: &mut ServiceResponse<B>) -> Option<UsageReader> {
    if is_there::<TokenUsage, B>(response)
        || is_there::<RunningCost, B>(response)
        || is_there::<Cost, B>(response)
    {
        return None;
    }
    let headers = response.headers();
    let line = |name| find_line(headers, name);
    let media = Media::of(line(CONTENT_TYPE.as_str()), line(CONTENT_ENCODING.as_str()))?;
    let usage = TokenUsage::new();
    response.response_mut().extensions_mut().insert(usage.clone());
    Some(UsageReader::new(media, usage))
}

/// Whether the handler has left a `T`, in the response or in the request.
fn is_there<T: 'static, B>(response: &ServiceResponse<B>) -> bool {
    response.response().extensions().contains::<T>()
        || response.request().extensions().contains::<T>()
}
