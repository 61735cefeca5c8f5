use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use sluicegate_core::adapter::{Refused, fields};

use super::body::Body;
use crate::scheduler::{Shed, ShedReason};

/// Makes the response of a request that is shed.
#[derive(Clone)]
pub(super) struct Respond(Arc<RespondFn>);

type RespondFn = dyn Fn(&Shed, &Parts) -> Response<Bytes> + Send + Sync;

impl Respond {
    pub(super) fn with(
        respond: impl Fn(&Shed, &Parts) -> Response<Bytes> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(respond))
    }

    /// `503 Service Unavailable` with a problem document.
    pub(super) fn problem() -> Self {
        Self::with(|shed, _| {
            let detail = match retry_after(shed) {
                Some(seconds) => format!("try again in {seconds} s"),
                None => "the request costs more than the server ever admits".to_owned(),
            };
            let problem = format!(
                "{{\"type\":\"{TYPE}\",\"title\":\"Temporarily reduced capacity\",\"status\":503,\"detail\":\"{detail}\"}}\n"
            );
            let mut response = Response::new(Bytes::from(problem));
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            let content_type = HeaderValue::from_static(fields::PROBLEM_JSON);
            response.headers_mut().insert(CONTENT_TYPE, content_type);
            response
        })
    }

    /// The response, with the fields that it needs and does not have. Layers further out give their charges back.
    pub(super) fn response<B>(&self, shed: &Shed, request: &Parts) -> Response<Body<B>> {
        let mut response = (self.0)(shed, request).map(Body::from_bytes);
        let is_redirect = response.status().is_redirection();
        let headers = response.headers_mut();
        if let (Some(seconds), false) = (retry_after(shed), is_redirect) {
            headers.entry(RETRY_AFTER).or_insert(seconds.into());
        }
        headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        response.extensions_mut().insert(Refused);
        response
    }
}

const TYPE: &str = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";

/// Whole seconds, rounded up, at least 1; none where it is no use to try again.
fn retry_after(shed: &Shed) -> Option<u64> {
    let seconds = shed.retry_after.div_ceil(1_000_000).max(1);
    (shed.reason != ShedReason::NeverFits).then_some(seconds)
}

impl fmt::Debug for Respond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Respond")
    }
}
