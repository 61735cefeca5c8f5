//! What the layers make in actix-web.

use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use actix_web::dev::{Payload, Service, ServiceRequest, ServiceResponse, Transform};
use actix_web::error::InternalError;
use actix_web::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use actix_web::{Error, HttpMessage, HttpResponse, web};
use pin_project_lite::pin_project;
use sluicegate_actix::response::Body;
use sluicegate_core::Cost;
use sluicegate_core::cost::RunningCost;

use crate::answer::PassingUsage;
use crate::{EstimateLayer, EstimatedTokens, TokenUsage, UsageLayer};

impl EstimateLayer {
    /// Reads the body, leaves the estimate, and puts the body back.
    async fn estimate(self, request: &mut ServiceRequest) -> Result<(), Error> {
        if request.extensions().contains::<EstimatedTokens>() {
            return Ok(());
        }
        let payload = request.extract::<web::Payload>().await?;
        let body = payload.to_bytes_limited(self.most).await.map_err(|error| {
            let (body, content_type) = self.too_large();
            let mut refused = HttpResponse::PayloadTooLarge();
            InternalError::from_response(error, refused.content_type(content_type).body(body))
        })??;
        let mut reader = self.estimate.reader();
        let codings = request.headers().get_all(CONTENT_ENCODING);
        codings.for_each(|coding| reader.encoding(coding.as_bytes()));
        let types = request.headers().get_all(CONTENT_TYPE);
        types.for_each(|line| reader.content_type(line.as_bytes()));
        reader.read(&body);
        request.extensions_mut().insert(reader.finish());
        request.set_payload(Payload::from(body));
        Ok(())
    }
}

impl<I, B> Transform<I, ServiceRequest> for EstimateLayer
where
    I: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error> + 'static,
{
    type Response = ServiceResponse<B>;
    type Error = Error;
    type Transform = EstimateService<I>;
    type InitError = ();
    type Future = Ready<Result<Self::Transform, ()>>;

    fn new_transform(&self, inner: I) -> Self::Future {
        ready(Ok(EstimateService { inner: Rc::new(inner), layer: *self }))
    }
}

/// A service behind an [`EstimateLayer`].
#[derive(Debug)]
pub struct EstimateService<I> {
    inner: Rc<I>,
    layer: EstimateLayer,
}

impl<I, B> Service<ServiceRequest> for EstimateService<I>
where
    I: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error> + 'static,
{
    type Response = ServiceResponse<B>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<ServiceResponse<B>, Error>>>>;

    fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&self, mut request: ServiceRequest) -> Self::Future {
        let (inner, layer) = (Rc::clone(&self.inner), self.layer);
        Box::pin(async move {
            layer.estimate(&mut request).await?;
            inner.call(request).await
        })
    }
}

impl<I, B> Transform<I, ServiceRequest> for UsageLayer
where
    I: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
{
    type Response = ServiceResponse<Body<B>>;
    type Error = Error;
    type Transform = UsageService<I>;
    type InitError = ();
    type Future = Ready<Result<Self::Transform, ()>>;

    fn new_transform(&self, inner: I) -> Self::Future {
        ready(Ok(UsageService(inner)))
    }
}

/// A service behind a [`UsageLayer`].
#[derive(Debug)]
pub struct UsageService<I>(I);

impl<I, B> Service<ServiceRequest> for UsageService<I>
where
    I: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
{
    type Response = ServiceResponse<Body<B>>;
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
    type Output = Result<ServiceResponse<Body<B>>, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let response = ready!(self.project().future.poll(cx));
        Poll::Ready(response.map(|mut response| {
            let usage = passing(&mut response);
            response.map_body(|_, body| Body::guarded(body, usage.map(|usage| usage as _)))
        }))
    }
}

/// Reads the response's usage, and leaves it for the limit. One that cannot be read is left too, so that the limit knows
/// that it was not.
fn passing<B>(response: &mut ServiceResponse<B>) -> Option<Box<PassingUsage>> {
    if is_there::<RunningCost, B>(response) || is_there::<Cost, B>(response) {
        return None;
    }
    let usage = TokenUsage::new();
    let passing =
        PassingUsage::of(&usage, |name| response.headers().get(name).map(|value| value.as_bytes()));
    response.response_mut().extensions_mut().insert(usage.running_cost());
    passing
}

/// Whether the handler has left a `T`, in the response or in the request.
fn is_there<T: 'static, B>(response: &ServiceResponse<B>) -> bool {
    response.response().extensions().contains::<T>()
        || response.request().extensions().contains::<T>()
}
