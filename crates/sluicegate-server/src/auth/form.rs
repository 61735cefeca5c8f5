use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};

use axum::http::header::Entry;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use sluicegate::adapter::Peer;
use sluicegate_config::envoy::service::BadRequest;

use crate::request::address;

static METHOD: HeaderName = HeaderName::from_static("x-forwarded-method");
static HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
static URI: HeaderName = HeaderName::from_static("x-forwarded-uri");
static FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
static ORIGINAL_METHOD: HeaderName = HeaderName::from_static("x-original-method");
static ORIGINAL_HOST: HeaderName = HeaderName::from_static("x-original-host");
static ORIGINAL_URI: HeaderName = HeaderName::from_static("x-original-uri");

/// How a proxy tells the request that it asks about.
///
/// Each form reads fields that the proxy always sets, and no others: a client can send the others too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `X-Forwarded-Method`, `X-Forwarded-Host` and `X-Forwarded-Uri`, as Traefik, Caddy and APISIX send them.
    Forwarded,
    /// `X-Original-Method`, `X-Original-Host` and `X-Original-URI`, as nginx is configured to.
    Original,
    /// The method, path and host of the question itself, behind a prefix of the path, as Envoy does.
    Prefixed(&'static str),
}

impl Form {
    /// The request that the client has sent to the proxy.
    ///
    /// `X-Forwarded-For` has to end with the address that the proxy sees, which becomes the peer. What is left of it stays,
    /// so rules that trust further proxies read it as the proxy itself would.
    ///
    /// # Errors
    ///
    /// If a field is missing, is there twice or makes no sense.
    pub(super) fn take(self, question: Parts) -> Result<Request<()>, BadRequest> {
        let mut headers = question.headers;
        let (method, uri) = match self {
            Self::Forwarded => target(&mut headers, [&METHOD, &HOST, &URI])?,
            Self::Original => {
                target(&mut headers, [&ORIGINAL_METHOD, &ORIGINAL_HOST, &ORIGINAL_URI])?
            }
            Self::Prefixed(prefix) => (question.method, behind(&question.uri, prefix)?),
        };
        let peer = take_peer(&mut headers)?;
        Ok(request(method, uri, headers, Some(peer)))
    }
}

/// A request as the proxy has received it.
pub(super) fn request(
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    peer: Option<IpAddr>,
) -> Request<()> {
    let mut request = Request::new(());
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    if let Some(peer) = peer {
        request.extensions_mut().insert(Peer(peer));
    }
    request
}

/// Takes the method and the target out of the fields, and makes the host that of the request.
fn target(
    headers: &mut HeaderMap,
    [method, host, uri]: [&HeaderName; 3],
) -> Result<(Method, Uri), BadRequest> {
    let (named, target) = (take(headers, method)?, take(headers, uri)?);
    let host = take(headers, host)?;
    headers.insert(header::HOST, host);
    Ok((parse_method(named.as_bytes())?, parse_target(target.as_bytes())?))
}

/// The value of a field that is there once.
fn take(headers: &mut HeaderMap, name: &HeaderName) -> Result<HeaderValue, BadRequest> {
    // The name is looked for once: this is done three times for each question.
    let Entry::Occupied(line) = headers.entry(name) else {
        return Err(BadRequest::new(format!("there is no field `{name}`: let the proxy send it")));
    };
    let is_twice = line.iter().nth(1).is_some();
    if is_twice {
        return Err(BadRequest::new(format!("there are two fields `{name}`, expected one")));
    }
    Ok(line.remove())
}

pub(super) fn parse_method(text: &[u8]) -> Result<Method, BadRequest> {
    Method::from_bytes(text)
        .map_err(|_| BadRequest::of_client(format!("`{}` is not a method", start(text))))
}

/// Reads a request target, such as `/users?page=2`. Proxies pass on characters that a client should have encoded, such
/// as `"` and `<`, so they are no error here either.
pub(super) fn parse_target(text: &[u8]) -> Result<Uri, BadRequest> {
    let parsed = Uri::try_from(text).ok();
    // One that is too long for a target is not worth the work.
    let parsed = parsed.or_else(|| {
        let encoded = (text.len() <= LONGEST_TARGET).then(|| encoded(text))?;
        Uri::try_from(encoded).ok()
    });
    // `example.com:443` is the target of a CONNECT, which has no path.
    parsed
        .filter(|uri| uri.path_and_query().is_some())
        .ok_or_else(|| BadRequest::of_client(format!("`{}` is not a path", start(text))))
}

/// The longest target that `Uri` takes, in bytes.
const LONGEST_TARGET: usize = 65_534;

/// As much of a text as fits into a message.
fn start(text: &[u8]) -> impl Display + '_ {
    text[..text.len().min(100)].escape_ascii()
}

/// The target with percent-encoding for the visible characters that have no place in one.
fn encoded(target: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or('0').to_ascii_uppercase();
    let mut text = String::with_capacity(target.len());
    for byte in target {
        match byte {
            b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' | 0x80.. => {
                text.extend(['%', digit(byte / 16), digit(byte % 16)]);
            }
            _ => text.push(char::from(*byte)),
        }
    }
    text
}

/// The target without `prefix`. In HTTP/2 the host is a part of it, and stays there.
fn behind(uri: &Uri, prefix: &str) -> Result<Uri, BadRequest> {
    let whole = uri.path_and_query().map_or("", |target| target.as_str());
    let target = whole.strip_prefix(prefix).unwrap_or_default();
    if !target.starts_with('/') {
        return Err(BadRequest::new(format!("the path does not go on after `{prefix}`")));
    }
    let mut target = parse_target(target.as_bytes())?.into_parts();
    target.authority = uri.authority().cloned();
    // A host without a scheme is the target of a CONNECT, which has no path.
    target.scheme = target.authority.as_ref().and(uri.scheme().cloned());
    Uri::from_parts(target).map_err(|_| BadRequest::of_client("the target is no URI"))
}

/// Takes the last address out of `X-Forwarded-For`: the one that the proxy has added.
fn take_peer(headers: &mut HeaderMap) -> Result<IpAddr, BadRequest> {
    let Entry::Occupied(field) = headers.entry(&FOR) else {
        return Err(BadRequest::new(format!("there is no field `{FOR}`: let the proxy send it")));
    };
    let mut lines = field.iter();
    let line = lines.next_back().map_or(b"".as_slice(), HeaderValue::as_bytes);
    let (rest, address) = match line.iter().rposition(|byte| *byte == b',') {
        Some(comma) => (Some(&line[..comma]), &line[comma + 1..]),
        None => (None, line),
    };
    let peer = parse_address(address).ok_or_else(|| {
        let shown = address.trim_ascii().escape_ascii();
        BadRequest::new(format!("`{FOR}` ends with `{shown}`, which is not an address"))
    })?;
    let rest = rest.and_then(|rest| HeaderValue::from_bytes(rest).ok());
    // Most questions have one line with one address.
    let before: Vec<_> = lines.cloned().collect();
    field.remove_entry_mult();
    for line in before.into_iter().chain(rest) {
        headers.append(&FOR, line);
    }
    Ok(peer)
}

/// An address with or without port, IPv6 with or without brackets and zone.
fn parse_address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text.trim_ascii()).ok()?;
    let with_port = || text.parse().ok().map(|address: SocketAddr| address.ip().to_canonical());
    let in_brackets = || {
        let (inside, port) = text.strip_prefix('[')?.split_once(']')?;
        let is_port = port.is_empty() || port.strip_prefix(':')?.parse::<u16>().is_ok();
        address(inside).filter(|_| is_port)
    };
    address(text).or_else(with_port).or_else(in_brackets)
}
