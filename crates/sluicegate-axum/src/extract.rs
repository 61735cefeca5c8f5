use std::convert::Infallible;
use std::ops::Deref;

use axum::extract::{FromRequestParts, OptionalFromRequestParts};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::request::Parts;
use sluicegate::Decision;
use sluicegate::response::LazyDecision;

/// The decision about the request being handled, as an extractor.
///
/// With layers on top of one another it is that of the innermost. An
/// `Option<CurrentDecision>` is for handlers that also serve routes without a layer. A request that a layer did not charge, such as
/// that of a customer without limits, has a decision without limits.
///
/// ```
/// use sluicegate_axum::CurrentDecision;
///
/// async fn handler(CurrentDecision(decision): CurrentDecision) -> String {
///     match decision.remaining() {
///         Some(remaining) => format!("{remaining} more requests\n"),
///         None => String::from("as many as you like\n"),
///     }
/// }
/// # let _ = handler;
/// ```
#[derive(Debug, Clone)]
pub struct CurrentDecision(pub Decision);

impl Deref for CurrentDecision {
    type Target = Decision;

    fn deref(&self) -> &Decision {
        &self.0
    }
}

impl<T: Sync> FromRequestParts<T> for CurrentDecision {
    type Rejection = NotLimited;

    async fn from_request_parts(parts: &mut Parts, _: &T) -> Result<Self, NotLimited> {
        current(parts).ok_or(NotLimited)
    }
}

impl<T: Sync> OptionalFromRequestParts<T> for CurrentDecision {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &T) -> Result<Option<Self>, Infallible> {
        Ok(current(parts))
    }
}

fn current(parts: &Parts) -> Option<CurrentDecision> {
    parts.extensions.get().map(LazyDecision::decision).map(CurrentDecision)
}

/// A handler asked for the decision about a request that no layer has seen: there is none on its route, or it was told to leave no
/// extensions.
#[derive(Debug, Clone, Copy)]
pub struct NotLimited;

impl IntoResponse for NotLimited {
    fn into_response(self) -> Response {
        (StatusCode::INTERNAL_SERVER_ERROR, "no rate limit decided about this request\n")
            .into_response()
    }
}
