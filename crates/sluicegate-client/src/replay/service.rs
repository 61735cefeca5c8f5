use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use super::body::{ReplayBody, ReplayResponse, ResponseFuture};
use crate::call::Retried;
use crate::outgoing::{ReplayRequest, grpc};

/// A service that keeps the bodies of requests; made by [`ReplayLayer`](super::ReplayLayer).
#[derive(Debug, Clone)]
pub struct Replay<S> {
    inner: S,
    most: usize,
}

impl<S> Replay<S> {
    pub(super) const fn new(inner: S, most: usize) -> Self {
        Self { inner, most }
    }
}

impl<S, B> Service<Request<B>> for Replay<S>
where
    S: Service<Request<ReplayBody<B>>>,
    B: Body<Data = Bytes> + Unpin,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> S::Future {
        let is_grpc = grpc::is_call(request.headers());
        self.inner.call(request.map(|body| ReplayBody::read(body, self.most, is_grpc)))
    }
}

/// A service that hands the bodies over that were kept; made by [`ReplayLayer`](super::ReplayLayer).
#[derive(Debug, Clone)]
pub struct Sending<S, F> {
    inner: S,
    into: F,
}

impl<S, F> Sending<S, F> {
    pub(super) const fn new(inner: S, into: F) -> Self {
        Self { inner, into }
    }
}

impl<S, F, B, B2, Res> Service<Request<ReplayBody<B>>> for Sending<S, F>
where
    S: Service<Request<B2>, Response = Response<Res>>,
    F: Fn(ReplayBody<B>) -> B2,
    B: Body<Data = Bytes> + Unpin,
    Res: Body<Data = Bytes> + Unpin,
{
    type Response = Response<ReplayResponse<Res>>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, Res>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<ReplayBody<B>>) -> Self::Future {
        let may_repeat = request.extensions().get::<Retried>().is_some_and(|mark| mark.may_repeat);
        let looks_on = may_repeat && request.body().is_whole() && grpc::is_call(request.headers());
        ResponseFuture::new(self.inner.call(request.map(&self.into)), looks_on)
    }
}

impl<B: Body<Data = Bytes> + Unpin> ReplayRequest for Request<ReplayBody<B>> {
    fn try_clone(&self) -> Option<Self> {
        let mut copy = Self::new(self.body().try_clone()?);
        *copy.method_mut() = self.method().clone();
        *copy.uri_mut() = self.uri().clone();
        *copy.version_mut() = self.version();
        *copy.headers_mut() = self.headers().clone();
        *copy.extensions_mut() = self.extensions().clone();
        Some(copy)
    }
}
