use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use sluicegate_core::adapter::{fields, grpc};
use sluicegate_core::response::Redirect;

use super::announcing::Announcing;
use super::settings::Settings;
use crate::announce::FIELD;
use crate::scheduler::{Shed, ShedReason};

impl<R> Settings<R> {
    /// The response of a request that is refused, with the fields that it needs and does not have. The adapter leaves
    /// [`Refused`](sluicegate_core::adapter::Refused) in its extensions, so that layers further out give their charges
    /// back.
    ///
    /// `content_type` is that of the request. A call of gRPC is answered with a status of gRPC, and is not redirected,
    /// because its client would not follow.
    pub(super) fn response(
        &self,
        shed: &Shed,
        content_type: Option<&[u8]>,
        request: impl FnOnce() -> Parts,
    ) -> Response<Bytes> {
        let grpc = content_type.and_then(grpc::response_type);
        let redirect = self.when_shed.location().filter(|_| grpc.is_none());
        let mut response = match (self.respond.function(), grpc) {
            (Some(respond), _) => respond(shed, &request()),
            (None, Some(content_type)) => unavailable(shed, content_type),
            (None, None) => problem(shed, redirect.map_or(503, |to| to.status)),
        };
        if let Some(redirect) = redirect {
            send_to(redirect, &mut response);
        }
        let is_redirect = response.status().is_redirection();
        let headers = response.headers_mut();
        if let (Some(seconds), false) = (retry_after(shed), is_redirect) {
            headers.entry(RETRY_AFTER).or_insert(seconds.into());
        }
        headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        announce(&self.announcing(), headers);
        response
    }
}

/// Adds the level of admission to a response of the `http` crate.
pub(super) fn announce(announcing: &Announcing, headers: &mut HeaderMap) {
    let lines = |name: &str, see: &mut dyn FnMut(&[u8])| {
        headers.get_all(name).iter().for_each(|line| see(line.as_bytes()));
    };
    if let Some(Ok(value)) = announcing.value(lines).map(HeaderValue::try_from) {
        headers.insert(FIELD, value);
    }
}

/// gRPC's status `UNAVAILABLE`: the call was not started, so every client may repeat it. The status is in the header, as
/// gRPC has it for responses without a message.
fn unavailable(shed: &Shed, content_type: &'static str) -> Response<Bytes> {
    const UNAVAILABLE: HeaderValue = HeaderValue::from_static("14");

    let mut response = Response::new(Bytes::new());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(grpc::STATUS, UNAVAILABLE);
    let pushback = match retry_after(shed) {
        Some(_) => grpc::pushback(Duration::from_micros(shed.retry_after).min(LONGEST)).into(),
        None => HeaderValue::from_static(grpc::NEVER),
    };
    headers.insert(grpc::PUSHBACK, pushback);
    // Visible ASCII without a percent sign, which would be escaped.
    let text = format!("temporarily reduced capacity; {}", detail(shed));
    if let Ok(text) = HeaderValue::try_from(text) {
        headers.insert(grpc::MESSAGE, text);
    }
    response
}

/// `503 Service Unavailable`, unless the client is sent elsewhere, with a problem document.
fn problem(shed: &Shed, status: u16) -> Response<Bytes> {
    let detail = detail(shed);
    let problem = format!(
        "{{\"type\":\"{TYPE}\",\"title\":\"Temporarily reduced capacity\",\"status\":{status},\"detail\":\"{detail}\"}}\n"
    );
    let mut response = Response::new(Bytes::from(problem));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let content_type = HeaderValue::from_static(fields::PROBLEM_JSON);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

fn detail(shed: &Shed) -> String {
    match retry_after(shed) {
        Some(seconds) => format!("try again in {seconds} s"),
        None => "the request costs more than the server ever admits".to_owned(),
    }
}

fn send_to(redirect: &Redirect, response: &mut Response<Bytes>) {
    *response.status_mut() =
        StatusCode::from_u16(redirect.status).unwrap_or(StatusCode::TEMPORARY_REDIRECT);
    // The location is visible ASCII, so this never fails.
    if let Ok(location) = HeaderValue::from_str(&redirect.location) {
        response.headers_mut().insert(LOCATION, location);
    }
}

const TYPE: &str = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";

/// A predicted backlog of hours comes from a few slow requests, which may be gone much earlier.
const LONGEST: Duration = Duration::from_secs(3_600);

/// Whole seconds, rounded up, at least 1 and at most [`LONGEST`]. `None` if trying again is useless.
fn retry_after(shed: &Shed) -> Option<u64> {
    let seconds = shed.retry_after.div_ceil(1_000_000).clamp(1, LONGEST.as_secs());
    (shed.reason != ShedReason::NeverFits).then_some(seconds)
}
