//! Plain requests of `/json` and `/v1/take`, without what axum needs for routes.
//!
//! Their clients wait for the answer with every request of their own, so these are the paths that have to be quick. What
//! is not plain, or makes no sense, is left to the routes and to axum's extractors, which have words for it.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Method, Request, StatusCode, Version, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};

use super::{json, v1};
use crate::grpc::Pieces;
use crate::service::Service;

/// Answers plain requests.
#[derive(Clone)]
pub(crate) struct Plain {
    service: Service,
    v1: v1::Context,
}

/// What a plain request asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Call {
    /// `/json`
    Json,
    /// `/v1/take`
    Take,
}

impl Plain {
    pub(crate) fn new(service: &Service, v1: &v1::Context) -> Self {
        Self { service: service.clone(), v1: v1.clone() }
    }

    /// What the request asks for, if it is plain: in HTTP/1, with a body whose length is known and not too large.
    pub(crate) fn takes<B: HttpBody>(&self, request: &Request<B>) -> Option<Call> {
        if request.method() != Method::POST || request.version() > Version::HTTP_11 {
            return None;
        }
        let (call, largest) = match request.uri().path() {
            "/json" if json::may_be_json(request) => (Call::Json, json::LARGEST),
            "/v1/take" if says_json(request) => (Call::Take, v1::LARGEST),
            _ => return None,
        };
        let length = request.body().size_hint().exact()?;
        (length <= largest as u64).then_some(call)
    }

    /// Answers a request that this [takes](Self::takes).
    pub(crate) async fn answer<B>(self, call: Call, body: B) -> Response
    where
        B: HttpBody<Data = Bytes, Error: std::fmt::Display>,
    {
        in_time(async {
            let body = match whole(body).await {
                Ok(body) => body,
                Err(error) => return cut_short(call, &error),
            };
            match call {
                Call::Json => json::answered(&self.service, &body).await,
                Call::Take => v1::take_sent(&self.v1, &body).await,
            }
        })
        .await
    }
}

/// Whether the body is declared in the usual way. Other ways are left to axum.
fn says_json<B>(request: &Request<B>) -> bool {
    let kind = request.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes() == b"application/json")
}

/// A body whose length is bounded.
async fn whole<B: HttpBody<Data = Bytes>>(body: B) -> Result<Bytes, B::Error> {
    let (mut body, mut all) = (pin!(body), Pieces::default());
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        // A body of a known length has no trailers.
        if let Ok(data) = frame?.into_data() {
            all.add(data);
        }
        if body.is_end_stream() {
            break;
        }
    }
    Ok(all.whole())
}

/// As axum says it.
fn cut_short(call: Call, error: &impl std::fmt::Display) -> Response {
    let what = format!("Failed to buffer the request body: {error}");
    match call {
        Call::Json => (StatusCode::BAD_REQUEST, what).into_response(),
        Call::Take => v1::bad(what),
    }
}

// Clients that send a body slowly.

/// How long a request may take, its body included. Decisions have a deadline of their own, which is shorter.
const SLOWEST: Duration = Duration::from_secs(90);

/// The routes, with 408 for a request that takes too long.
pub(crate) fn bounded(routes: Router) -> Router {
    routes
        .layer(from_fn(async |request: Request<Body>, next: Next| in_time(next.run(request)).await))
}

/// The answer, or 408 if that takes too long.
pub(crate) async fn in_time(answering: impl Future<Output = Response>) -> Response {
    let mut answering = pin!(answering);
    // Most requests are answered at once, and need no timer.
    if let Poll::Ready(answer) = poll_fn(|cx| Poll::Ready(answering.as_mut().poll(cx))).await {
        return answer;
    }
    match tokio::time::timeout(SLOWEST, answering).await {
        Ok(response) => response,
        Err(_) => (StatusCode::REQUEST_TIMEOUT, "the request took too long\n").into_response(),
    }
}
