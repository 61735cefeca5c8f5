use std::fmt;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, StatusCode, request};
use pin_project_lite::pin_project;
use sluicegate_core::adapter::TooLarge;
use sluicegate_core::cost::llm::{Estimate, EstimateReader, EstimatedTokens};
use sluicegate_core::response::Dialect;
use tower::Service;
use tower_layer::Layer;

use crate::body::Body;
use crate::llm::read_body::{ReadBody, Reading};
use crate::rate_limit::future::HttpService;

/// The default bound of a body, in bytes: that of axum's extractors. A million tokens of text are about 4 MB; raise it
/// for images.
const MOST: usize = 2 * 1024 * 1024;

/// A tower layer that reads the body of a request, and leaves [`EstimatedTokens`] in its extensions for
/// [`tokens`](crate::cost::llm::tokens).
///
/// It goes around the [`RateLimitLayer`](crate::RateLimitLayer), so that the limit finds the estimate. A request with an
/// estimate already is passed on as it is.
///
/// The body is kept until it has been read, up to [`at_most`](Self::at_most) bytes, and passed on as it was. A larger one
/// is answered with `413 Content Too Large`, in the form of [`dialect`](Self::dialect) if there is one. How long a client may take to send it is for the server's timeouts.
///
/// ```
/// use sluicegate::cost::llm::{Count, Estimate, tokens};
/// use sluicegate::service::{EstimateLayer, UsageLayer};
/// use sluicegate::{Header, Limit, RateLimitLayer};
/// use tower::ServiceBuilder;
///
/// let budget = Limit::per_minute(200_000)
///     .by(Header("x-api-key"))
///     .cost(tokens(Count::All))
///     .settle_tokens(Count::All);
/// let layers = ServiceBuilder::new()
///     .layer(EstimateLayer::new(Estimate::new().output(1_000)))
///     .layer(RateLimitLayer::new(budget))
///     .layer(UsageLayer::new());
/// # let _ = layers;
/// ```
#[derive(Debug, Clone, Copy)]
pub struct EstimateLayer {
    estimate: Estimate,
    too_large: TooLarge,
}

impl EstimateLayer {
    /// Estimates by `estimate`, and reads bodies of at most 2 MiB.
    pub const fn new(estimate: Estimate) -> Self {
        Self { estimate, too_large: TooLarge::new(MOST) }
    }

    /// Reads bodies of at most `bytes`.
    #[must_use]
    pub const fn at_most(self, bytes: usize) -> Self {
        Self { too_large: self.too_large.at_most(bytes), ..self }
    }

    /// Answers larger bodies with an error in the form of the API of `dialect`, as clients of language models expect.
    /// Otherwise, the answer is a problem document (RFC 9457).
    #[must_use]
    pub fn dialect<'d>(self, dialect: impl Into<Option<&'d Dialect>>) -> Self {
        match dialect.into() {
            Some(dialect) => Self { too_large: self.too_large.dialect(dialect), ..self },
            None => self,
        }
    }
}

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
    I: Service<Request<ReadBody<B::Error>>, Response = Response<ResBody>> + Clone,
    B: http_body::Body<Data = Bytes>,
{
    type Response = Response<Body<ResBody>>;
    type Error = I::Error;
    type Future = EstimateFuture<I, B>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), I::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> EstimateFuture<I, B> {
        let clone = self.inner.clone();
        let inner = mem::replace(&mut self.inner, clone);
        let EstimateLayer { estimate, too_large } = self.layer;
        let most = too_large.most();
        let (head, body) = request.into_parts();
        let is_estimated = head.extensions.get::<EstimatedTokens>().is_some();
        let is_too_large = declared(&head).is_some_and(|length| length > most as u64);
        let state = match is_too_large {
            true => State::TooLarge,
            false => State::Reading {
                body,
                reading: Reading::new(most),
                reader: (!is_estimated).then(|| reader(&estimate, &head)),
                forward: Some((inner, head)),
            },
        };
        EstimateFuture { state, too_large }
    }
}

fn reader(estimate: &Estimate, head: &request::Parts) -> EstimateReader {
    let mut reader = estimate.reader();
    head.headers.get_all(CONTENT_ENCODING).iter().for_each(|line| reader.encoding(line.as_bytes()));
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
        I: HttpService<ReadBody<B::Error>>,
        B: http_body::Body,
    {
        #[pin]
        state: State<I, B, I::Future>,
        too_large: TooLarge,
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
            forward: Option<(I, request::Parts)>,
            reader: Option<EstimateReader>,
        },
        Running { #[pin] future: F },
        TooLarge,
    }
}

impl<I, B> Future for EstimateFuture<I, B>
where
    I: HttpService<ReadBody<B::Error>>,
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
                StateProj::TooLarge => return Poll::Ready(Ok(refuse(*this.too_large))),
                StateProj::Reading { body, reading, forward, reader } => {
                    match ready!(reading.poll(body, cx, reader)) {
                        None => State::TooLarge,
                        Some(body) => {
                            let (mut inner, mut head) = forward.take().expect(POLLED_AGAIN);
                            // Left for the limit.
                            if let Some(reader) = reader.take() {
                                head.extensions.insert(reader.finish());
                            }
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

fn refuse<B>(too_large: TooLarge) -> Response<Body<B>> {
    let mut response = Response::new(Body::from_bytes(too_large.body()));
    *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
    let content_type = HeaderValue::from_static(too_large.content_type());
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

const POLLED_AGAIN: &str = "a future is not polled again once it is ready";

impl<I, B> fmt::Debug for EstimateFuture<I, B>
where
    I: HttpService<ReadBody<B::Error>>,
    B: http_body::Body,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EstimateFuture")
    }
}
