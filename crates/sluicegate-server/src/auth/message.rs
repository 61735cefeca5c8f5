//! The messages of `ext_authz`.

use std::net::IpAddr;

use axum::http::response::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, header};
use envoy_types::pb::envoy::config::core::v3::{HeaderValue as Field, HeaderValueOption};
use envoy_types::pb::envoy::service::auth::v3::check_response::HttpResponse;
use envoy_types::pb::envoy::service::auth::v3::{
    CheckResponse, DeniedHttpResponse, OkHttpResponse,
};
use envoy_types::pb::envoy::r#type::v3::HttpStatus;
use envoy_types::pb::google::rpc;
use sluicegate_config::envoy::service::BadRequest;

use super::authorizer::DEGRADED;
use super::form::{self, parse_method, parse_target};
use super::wire::{Attributes, CheckRequest, HttpRequest};
use crate::request::trimmed;

/// The request that the client has sent to Envoy.
pub(super) fn request(message: &CheckRequest) -> Result<Request<()>, BadRequest> {
    let attributes = message.attributes.as_ref();
    let http = attributes.and_then(|asked| asked.request.as_ref()?.http.as_ref());
    let http = http.ok_or_else(|| BadRequest::new("there is no `attributes.request.http`"))?;
    let headers = headers(http)?;
    let method = parse_method(&http.method)?;
    let target = parse_target(&http.path)?;
    Ok(form::request(method, target, headers, attributes.and_then(address)))
}

/// The header fields: `header_map` if Envoy is told to send it, which keeps lines apart, otherwise `headers`.
fn headers(http: &HttpRequest) -> Result<HeaderMap, BadRequest> {
    let mut headers = HeaderMap::new();
    let fields = http.header_map.as_ref().map_or(&http.headers, |lines| &lines.headers);
    // `:path` and its like are told elsewhere.
    for field in fields.iter().filter(|field| !field.key.starts_with(b":")) {
        let name = HeaderName::from_bytes(&field.key);
        let name = name.map_err(|_| BadRequest::of_client("a header field has no valid name"))?;
        let raw = if field.raw_value.is_empty() { &field.value } else { &field.raw_value };
        // Each rule would go through the spaces around it again.
        let value = HeaderValue::from_maybe_shared(raw.slice_ref(trimmed(raw)));
        let value = value
            .map_err(|_| BadRequest::of_client(format!("the field `{name}` has no valid value")))?;
        headers
            .try_append(name, value)
            .map_err(|_| BadRequest::of_client("too many header fields"))?;
    }
    if !http.host.is_empty() {
        let host = HeaderValue::from_maybe_shared(http.host.clone());
        headers
            .insert(header::HOST, host.map_err(|_| BadRequest::of_client("`host` is not a host"))?);
    }
    Ok(headers)
}

/// The address of the client as Envoy sees it.
fn address(asked: &Attributes) -> Option<IpAddr> {
    let source = asked.source.as_ref()?.address.as_ref()?.socket.as_ref()?;
    crate::request::address(&source.address)
}

/// The answer that lets the request through, or that Envoy gives instead.
pub(super) fn response(head: &Parts, body: &[u8]) -> CheckResponse {
    let fields = |to_add: fn(&HeaderName) -> bool| -> Vec<HeaderValueOption> {
        head.headers.iter().filter(|(name, _)| to_add(name)).map(field).collect()
    };
    let (code, answer) = if head.status == StatusCode::OK {
        let answer = OkHttpResponse {
            headers: fields(|name| *name == DEGRADED),
            response_headers_to_add: fields(|name| *name != header::CONTENT_LENGTH),
            ..OkHttpResponse::default()
        };
        (rpc::Code::Ok, HttpResponse::OkResponse(answer))
    } else {
        let answer = DeniedHttpResponse {
            status: Some(HttpStatus { code: head.status.as_u16().into() }),
            headers: fields(|name| *name != header::CONTENT_LENGTH),
            body: String::from_utf8_lossy(body).into_owned(),
        };
        (rpc::Code::PermissionDenied, HttpResponse::DeniedResponse(answer))
    };
    let status = rpc::Status { code: code.into(), ..rpc::Status::default() };
    CheckResponse { status: Some(status), http_response: Some(answer), ..CheckResponse::default() }
}

/// A field to append, because `RateLimit` is a list.
fn field((name, value): (&HeaderName, &HeaderValue)) -> HeaderValueOption {
    let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
    let header = Field { key: name.as_str().to_owned(), value, ..Field::default() };
    HeaderValueOption { header: Some(header), ..HeaderValueOption::default() }
}
