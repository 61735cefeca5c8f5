//! actix-web uses an older version of the `http` crate than the rest of the workspace.

use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use actix_web::{HttpRequest, HttpResponse};
use http::request::Parts;

use crate::announce::FIELD;
use crate::layer::announcing::Announcing;
use crate::layer::settings::Settings;
use crate::scheduler::Shed;

/// The response of a request that is refused.
pub(super) fn response<R>(
    settings: &Settings<R>,
    shed: &Shed,
    request: &HttpRequest,
) -> HttpResponse {
    let content_type = request.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let (head, body) = settings.response(shed, content_type, || parts(request)).into_parts();
    let status = StatusCode::from_u16(head.status.as_u16());
    let mut response = HttpResponse::new(status.unwrap_or(StatusCode::SERVICE_UNAVAILABLE));
    for (name, value) in &head.headers {
        let name = HeaderName::from_bytes(name.as_str().as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value.as_bytes())) {
            response.headers_mut().append(name, value);
        }
    }
    response.set_body(actix_web::body::BoxBody::new(body))
}

/// Adds the level of admission to a response.
pub(super) fn announce(announcing: &Announcing, headers: &mut HeaderMap) {
    let lines = |name: &str, see: &mut dyn FnMut(&[u8])| {
        headers.get_all(name).for_each(|line| see(line.as_bytes()));
    };
    if let Some(Ok(value)) = announcing.value(lines).map(HeaderValue::try_from) {
        headers.insert(HeaderName::from_static(FIELD), value);
    }
}

/// Method, URI and header fields of a request. What cannot be converted is left out.
fn parts(request: &HttpRequest) -> Parts {
    let (mut parts, ()) = http::Request::new(()).into_parts();
    parts.method = request.method().as_str().parse().unwrap_or_default();
    parts.uri = request.uri().to_string().parse().unwrap_or_default();
    for (name, value) in request.headers() {
        let name = http::HeaderName::from_bytes(name.as_str().as_bytes());
        if let (Ok(name), Ok(value)) = (name, http::HeaderValue::from_bytes(value.as_bytes())) {
            parts.headers.append(name, value);
        }
    }
    parts
}
