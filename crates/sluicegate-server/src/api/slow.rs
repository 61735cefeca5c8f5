//! Clients that send a body slowly.

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
    routes.layer(from_fn(in_time))
}

async fn in_time(request: Request, next: Next) -> Response {
    match tokio::time::timeout(SLOWEST, next.run(request)).await {
        Ok(response) => response,
        Err(_) => (StatusCode::REQUEST_TIMEOUT, "the request took too long\n").into_response(),
    }
}
