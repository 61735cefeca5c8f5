use std::fmt;
use std::future::{Ready, ready};
use std::ops::Deref;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpMessage, HttpRequest, ResponseError};
use sluicegate_core::Decision;
use sluicegate_core::response::LazyDecision;

/// The decision about the request being handled, as an extractor.
///
/// With limits on top of one another it is that of the innermost. An `Option<CurrentDecision>` is for
/// handlers that also serve routes without a layer. A request that a layer did not charge, such as that of a customer without limits,
/// has a decision without limits.
///
/// ```
/// use sluicegate_actix::CurrentDecision;
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

impl FromRequest for CurrentDecision {
    type Error = NotLimited;
    type Future = Ready<Result<Self, NotLimited>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let decision = request.extensions().get().map(LazyDecision::decision);
        ready(decision.map(Self).ok_or(NotLimited))
    }
}

/// A handler asked for the decision about a request that no layer has seen: there is none on its route, or it was told to leave no
/// extensions.
#[derive(Debug, Clone, Copy)]
pub struct NotLimited;

impl fmt::Display for NotLimited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no rate limit decided about this request")
    }
}

impl std::error::Error for NotLimited {}

/// `500 Internal Server Error`.
impl ResponseError for NotLimited {}
