use std::fmt;
use std::sync::Arc;

use actix_web::body::BoxBody;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderValue};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse};
use sluicegate_core::adapter::{Dialect, Refusal, fields};

/// Makes the response of a refusal: a problem document, unless the operator said otherwise.
#[derive(Clone, Default)]
pub(crate) struct Respond(Option<Arc<RespondFn>>);

type RespondFn = dyn Fn(&Refusal, &HttpRequest) -> HttpResponse + Send + Sync;

impl Respond {
    pub(crate) fn with(
        respond: impl Fn(&Refusal, &HttpRequest) -> HttpResponse + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(respond)))
    }

    /// Answers requests that exceed a limit by `respond`, and others as before.
    pub(crate) fn too_many(
        self,
        respond: impl Fn(&Refusal, &HttpRequest) -> HttpResponse + Send + Sync + 'static,
    ) -> Self {
        Self::with(move |refusal, request| match refusal {
            Refusal::TooMany(_) => respond(refusal, request),
            _ => self.to(refusal, request),
        })
    }

    pub(crate) fn to(&self, refusal: &Refusal, request: &HttpRequest) -> HttpResponse {
        match &self.0 {
            Some(respond) => respond(refusal, request),
            None => problem(refusal),
        }
    }
}

impl fmt::Debug for Respond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "RespondFn" } else { "Problem" })
    }
}

/// A problem document (RFC 9457).
fn problem(refusal: &Refusal) -> HttpResponse {
    let mut response = HttpResponse::with_body(
        status(refusal),
        BoxBody::new(refusal.read_problem(Bytes::copy_from_slice)),
    );
    let content_type = HeaderValue::from_static(fields::PROBLEM_JSON);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// An error in the form of an API.
pub(crate) fn in_dialect(dialect: &dyn Dialect, refusal: &Refusal) -> HttpResponse {
    let body = BoxBody::new(dialect.error_body(refusal));
    let mut response = HttpResponse::with_body(status(refusal), body);
    let content_type = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

pub(crate) fn status(refusal: &Refusal) -> StatusCode {
    StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::TOO_MANY_REQUESTS)
}
