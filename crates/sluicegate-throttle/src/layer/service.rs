use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use sluicegate::adapter::HttpView;
use tower_layer::Layer;
use tower_service::Service;

use super::body::Body;
use super::future::ResponseFuture;
use super::requests::{Describe, Requests};
use super::servers::Servers;
use super::settings::Settings;
use super::throttle_layer::ThrottleLayer;

impl<I, R: Clone> Layer<I> for ThrottleLayer<R> {
    type Service = ThrottleService<I, R>;

    fn layer(&self, inner: I) -> Self::Service {
        ThrottleService { inner, settings: Arc::new(self.settings.clone()) }
    }
}

/// A service of tower behind a [`ThrottleLayer`].
///
/// Its own `poll_ready` is always ready: the service inside is asked when a request has left the queue.
pub struct ThrottleService<I, R = Requests> {
    inner: I,
    settings: Arc<Settings<R>>,
}

impl<I, R, B, ResBody> Service<Request<B>> for ThrottleService<I, R>
where
    I: Service<Request<B>, Response = Response<ResBody>> + Clone,
    R: for<'a> Describe<HttpView<'a, B, Servers>>,
    ResBody: http_body::Body,
{
    type Response = Response<Body<ResBody>>;
    type Error = I::Error;
    type Future = ResponseFuture<I, B, R>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), I::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let turn = self.settings.admit(&HttpView::new(&request));
        ResponseFuture::new(turn, &mut self.inner, request, &self.settings)
    }
}

impl<I: Clone, R> Clone for ThrottleService<I, R> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), settings: Arc::clone(&self.settings) }
    }
}

impl<I: fmt::Debug, R> fmt::Debug for ThrottleService<I, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThrottleService").field("inner", &self.inner).finish()
    }
}
