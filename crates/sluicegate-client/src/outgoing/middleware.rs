use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use ::http::{Extensions, HeaderMap, Method};
use ::reqwest::{Request, Response};
use async_trait::async_trait;
use reqwest_middleware::{Error, Middleware, Next};
use tower::ServiceExt;
use tower_layer::Layer;
use tower_service::Service;

use super::request::Target;
use super::request::{OutgoingRequest, ReplayRequest};
use crate::error::{BoxError, Refused};

/// A layer as a middleware of the crate `reqwest-middleware`.
///
/// ```
/// use sluicegate_client::outgoing::AsMiddleware;
/// use sluicegate_client::{ObeyLayer, RetryLayer};
///
/// // The first is the outermost.
/// let client = reqwest_middleware::ClientBuilder::new(reqwest::Client::new())
///     .with(AsMiddleware(RetryLayer::new()))
///     .with(AsMiddleware(ObeyLayer::new()))
///     .build();
/// # let _ = client;
/// ```
#[derive(Debug, Clone)]
pub struct AsMiddleware<L>(pub L);

/// A request with the extensions that `reqwest-middleware` keeps beside it.
#[derive(Debug)]
pub struct MiddlewareRequest {
    request: Request,
    extensions: Extensions,
}

impl OutgoingRequest for MiddlewareRequest {
    fn method(&self) -> &Method {
        self.request.method()
    }

    fn target(&self) -> Target<'_> {
        OutgoingRequest::target(&self.request)
    }

    fn headers(&self) -> &HeaderMap {
        self.request.headers()
    }

    fn headers_mut(&mut self) -> &mut HeaderMap {
        self.request.headers_mut()
    }

    fn extensions(&self) -> Option<&Extensions> {
        Some(&self.extensions)
    }

    fn extensions_mut(&mut self) -> Option<&mut Extensions> {
        Some(&mut self.extensions)
    }

    fn timeout(&self) -> Option<Duration> {
        let own = self.request.timeout().copied();
        let of_context = super::context::Context::of(self).and_then(|context| context.left());
        own.into_iter().chain(of_context).min()
    }

    fn shorten_timeout(&mut self, left: Duration) {
        self.request.shorten_timeout(left);
    }
}

impl ReplayRequest for MiddlewareRequest {
    fn try_clone(&self) -> Option<Self> {
        let extensions = self.extensions.clone();
        self.request.try_clone().map(|request| Self { request, extensions })
    }
}

/// The rest of a chain of middlewares, as a service.
#[derive(Clone)]
pub struct NextService<'a> {
    next: Next<'a>,
    /// The extensions as the rest of the chain left them.
    left: Arc<Mutex<Option<Extensions>>>,
}

impl std::fmt::Debug for NextService<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NextService")
    }
}

impl<'a> Service<MiddlewareRequest> for NextService<'a> {
    type Response = Response;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Error>> + Send + 'a>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: MiddlewareRequest) -> Self::Future {
        let Self { next, left } = self.clone();
        Box::pin(async move {
            let MiddlewareRequest { request, mut extensions } = request;
            let result = next.run(request, &mut extensions).await;
            *left.lock().unwrap_or_else(PoisonError::into_inner) = Some(extensions);
            result
        })
    }
}

#[async_trait]
impl<L> Middleware for AsMiddleware<L>
where
    L: for<'a> MiddlewareLayer<'a> + Send + Sync + 'static,
{
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response, Error> {
        let left = Arc::new(Mutex::new(None));
        let request = MiddlewareRequest { request, extensions: extensions.clone() };
        let result = self.0.send(NextService { next, left: left.clone() }, request).await;
        if let Some(left) = left.lock().unwrap_or_else(PoisonError::into_inner).take() {
            *extensions = left;
        }
        result.map_err(error)
    }
}

/// An error of the client again as that, and a refusal as one of the middleware, to be found with `downcast_ref`.
fn error(error: BoxError) -> Error {
    let error = match error.downcast::<Error>() {
        Ok(error) => return *error,
        Err(error) => error,
    };
    match error.downcast::<Refused>() {
        Ok(refused) => Error::middleware(*refused),
        Err(error) => Error::Middleware(anyhow::Error::from_boxed(error)),
    }
}

/// Layers around the rest of a chain, however long it lives. All layers of this crate are such.
pub trait MiddlewareLayer<'a> {
    #[doc(hidden)]
    fn send(
        &self,
        next: NextService<'a>,
        request: MiddlewareRequest,
    ) -> Pin<Box<dyn Future<Output = Result<Response, BoxError>> + Send + 'a>>;
}

impl<'a, L, S> MiddlewareLayer<'a> for L
where
    L: Layer<NextService<'a>, Service = S>,
    S: Service<MiddlewareRequest, Response = Response, Error: Into<BoxError>, Future: Send>
        + Send
        + 'a,
{
    fn send(
        &self,
        next: NextService<'a>,
        request: MiddlewareRequest,
    ) -> Pin<Box<dyn Future<Output = Result<Response, BoxError>> + Send + 'a>> {
        let service = self.layer(next);
        Box::pin(async move { service.oneshot(request).await.map_err(Into::into) })
    }
}
