use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Extensions, Request, Response, Uri};
use sluicegate::adapter::{Framework, HttpView};
use sluicegate::response::{Body, Problem};
use tower_layer::Layer;
use tower_service::Service;

use super::future::ResponseFuture;
use super::requests::{Describe, Requests};
use super::throttle_layer::ThrottleLayer;
#[cfg(not(feature = "axum"))]
use sluicegate::adapter::Plain as Known;
#[cfg(feature = "axum")]
use sluicegate_axum::adapter::Axum as Known;

impl<I, R: Clone> Layer<I> for ThrottleLayer<R> {
    type Service = ThrottleService<I, R>;

    fn layer(&self, inner: I) -> Self::Service {
        ThrottleService { inner, layer: Arc::new(self.clone()) }
    }
}

/// A service of tower behind a [`ThrottleLayer`].
///
/// Its own `poll_ready` is always ready: the service inside is asked when a request has left the queue.
#[derive(Debug, Clone)]
pub struct ThrottleService<I, R = Requests> {
    inner: I,
    layer: Arc<ThrottleLayer<R>>,
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
        let dispatch = self.layer.admit(&HttpView::new(&request));
        ResponseFuture::new(dispatch, &mut self.inner, request, &self.layer)
    }
}

/// What servers leave in requests: [`Peer`](sluicegate::adapter::Peer) and
/// [`MatchedRoute`](sluicegate::adapter::MatchedRoute), with the feature `axum` what axum knows, and with the feature
/// `tonic` the peer that tonic knows.
#[derive(Debug, Clone, Copy)]
pub struct Servers;

impl Framework for Servers {
    type Respond = Problem;

    fn peer(extensions: &Extensions) -> Option<IpAddr> {
        let peer = Known::peer(extensions);
        #[cfg(feature = "tonic")]
        let peer = peer.or_else(|| sluicegate_tonic::Tonic::peer(extensions));
        peer
    }

    fn route(extensions: &Extensions) -> Option<&str> {
        Known::route(extensions)
    }

    fn original_uri(extensions: &Extensions) -> Option<&Uri> {
        Known::original_uri(extensions)
    }

    const PEER_HINT: &'static str = Known::PEER_HINT;

    const ROUTE_HINT: &'static str = Known::ROUTE_HINT;
}
