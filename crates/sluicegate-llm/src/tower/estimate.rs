use std::fmt;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, StatusCode, request};
use pin_project_lite::pin_project;
use sluicegate::response::Body;
use sluicegate::service::HttpService;
use tower_layer::Layer;
use tower_service::Service;

use super::read_body::{ReadBody, Reading};
use crate::{Estimate, EstimateLayer, EstimateReader, EstimatedTokens};

impl<I> Layer<I> for EstimateLayer {
    type Service = EstimateService<I>;

    fn layer(&self, inner: I) -> EstimateService<I> {
        EstimateService { inner, layer: *self }
    }
}

/// A service behind an [`EstimateLayer`].
#[derive(Debug, Clone)]
pub struct EstimateService<I> {
    inner: I,
    layer: EstimateLayer,
}

impl<I, B, ResBody> Service<Request<B>> for EstimateService<I>
where
    I: Service<Request<ReadBody<B>>, Response = Response<ResBody>> + Clone,
    B: http_body::Body<Data = Bytes>,
{
    type Response = Response<Body<ResBody>>;
    type Error = I::Error;
    type Future = EstimateFuture<I, B>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), I::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> EstimateFuture<I, B> {
        let EstimateLayer { estimate, most, .. } = self.layer;
        if request.extensions().get::<EstimatedTokens>().is_some() {
            let future = self.inner.call(request.map(ReadBody::unread));
            return EstimateFuture { state: State::Running { future }, layer: self.layer };
        }
        let clone = self.inner.clone();
        let inner = mem::replace(&mut self.inner, clone);
        let (head, body) = request.into_parts();
        let is_too_large = declared(&head).is_some_and(|length| length > most as u64);
        let state = match is_too_large {
            true => State::TooLarge,
            false => State::Reading {
                body,
                reading: Reading::new(most),
                forward: Some((inner, reader(&estimate, &head), head)),
            },
        };
        EstimateFuture { state, layer: self.layer }
    }
}

fn reader(estimate: &Estimate, head: &request::Parts) -> EstimateReader {
    let mut reader = estimate.reader();
    head.headers.get_all(CONTENT_ENCODING).iter().for_each(|line| reader.encoding(line.as_bytes()));
    head.headers.get_all(CONTENT_TYPE).iter().for_each(|line| reader.content_type(line.as_bytes()));
    reader
}

/// The length that the request declares.
fn declared(head: &request::Parts) -> Option<u64> {
    head.headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

pin_project! {
    /// The response of an [`EstimateService`].
    pub struct EstimateFuture<I, B>
    where
        I: HttpService<ReadBody<B>>,
        B: http_body::Body,
    {
        #[pin]
        state: State<I, B, I::Future>,
        layer: EstimateLayer,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<I, B, F>
    where
        B: http_body::Body,
    {
        Reading {
            #[pin]
            body: B,
            reading: Reading<B::Error>,
            forward: Option<(I, EstimateReader, request::Parts)>,
        },
        Running { #[pin] future: F },
        TooLarge,
    }
}

impl<I, B> Future for EstimateFuture<I, B>
where
    I: HttpService<ReadBody<B>>,
    B: http_body::Body<Data = Bytes>,
{
    type Output = Result<Response<Body<I::ResBody>>, I::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut state = this.state;
        loop {
            let next = match state.as_mut().project() {
                StateProj::Running { future } => {
                    return Poll::Ready(
                        ready!(future.poll(cx)).map(|response| response.map(Body::new)),
                    );
                }
                StateProj::TooLarge => return Poll::Ready(Ok(refuse(*this.layer))),
                StateProj::Reading { body, reading, forward } => {
                    let (_, reader, _) = forward.as_mut().expect(POLLED_AGAIN);
                    match ready!(reading.poll(body, cx, reader)) {
                        None => State::TooLarge,
                        Some(body) => {
                            let (mut inner, reader, mut head) = forward.take().expect(POLLED_AGAIN);
                            // Left for the limit.
                            head.extensions.insert(reader.finish());
                            let request = Request::from_parts(head, body);
                            State::Running { future: inner.call(request) }
                        }
                    }
                }
            };
            state.set(next);
        }
    }
}

fn refuse<B>(layer: EstimateLayer) -> Response<Body<B>> {
    let (body, content_type) = layer.too_large();
    let mut response = Response::new(Body::from_bytes(body));
    *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

const POLLED_AGAIN: &str = "a future is not polled again once it is ready";

impl<I, B> fmt::Debug for EstimateFuture<I, B>
where
    I: HttpService<ReadBody<B>>,
    B: http_body::Body,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EstimateFuture")
    }
}
