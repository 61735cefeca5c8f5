//! Clients that send a body slowly.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};

/// How long a request may take, its body included. Decisions have a deadline of their own, which is shorter.
const SLOWEST: Duration = Duration::from_secs(90);

/// The routes, with 408 for a request that takes too long.
pub(crate) fn bounded(routes: Router) -> Router {
    routes.layer(from_fn(async |request: Request, next: Next| in_time(next.run(request)).await))
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
