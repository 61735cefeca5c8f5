//! What a request has to be before it is counted and passed on.
//!
//! hyper has read the message, and the one that goes on is written anew, so no two servers can divide the bytes
//! differently. The checks here refuse requests that mean one thing to the limits and another one to the application.

use http::header::{CONTENT_LENGTH, COOKIE, HOST, TRANSFER_ENCODING, VIA};
use http::uri::{Authority, Scheme};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, Version};
use sluicegate_config::proxy::fields::is_removed;

use crate::proxy::{forwarded, hop};

/// A request that is not passed on: the status, and why.
pub(crate) type Bad = (StatusCode, &'static str);

/// How often a request may have passed a proxy of this kind.
const MOST_HOPS: usize = 10;

/// How many fields the proxy itself may add to a request: `Host`, `Transfer-Encoding`, `Via`, `X-Forwarded-For`, `-Proto`
/// and `-Host`.
const ADDED: usize = 6;

/// What a request is checked by, besides itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms<'a> {
    /// The field in which trusted proxies pass on the client's address.
    pub(crate) client_header: Option<&'a str>,
    /// Whether the peer is one of them.
    pub(crate) is_trusted: bool,
    /// The most fields that the application may get.
    pub(crate) fields: usize,
    /// Whether fields are kept that have other characters than letters, digits and `-` in their names.
    pub(crate) underscores: bool,
}

/// Checks a request, and leaves it with one `Host`, which is that of its target, a target without an authority, at most
/// one `Cookie`, and no field that `Connection` names, that could be taken for another one, or that a stranger has written
/// in the name of a proxy. So limits read what the application gets.
pub(crate) fn check<B>(request: &mut Request<B>, terms: Terms<'_>) -> Result<(), Bad> {
    // What the application would not get goes before fields are counted, so that nobody is refused for it.
    let Terms { client_header, is_trusted, underscores, .. } = terms;
    forwarded::remove(request.headers_mut(), |name| {
        is_removed(name.as_str(), client_header, underscores, is_trusted)
    });
    if request.headers().len() + ADDED > terms.fields {
        let why = "the request has too many fields";
        return Err((StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, why));
    }
    match *request.method() {
        Method::CONNECT => return Err((StatusCode::NOT_IMPLEMENTED, "CONNECT is not supported")),
        // Its answer would show the client the fields that proxies add.
        Method::TRACE => return Err((StatusCode::METHOD_NOT_ALLOWED, "TRACE is not supported")),
        _ => {}
    }
    framing(request.headers())?;
    target(request)?;
    let host = host(request)?;
    if let Some(host) = host {
        request.headers_mut().insert(HOST, host);
    }
    if request.uri().authority().is_some() || request.uri().scheme().is_some() {
        *request.uri_mut() = without_authority(request.uri());
    }
    // After the checks of `Host` and of the framing: a request that names one of these in `Connection` is still checked
    // by it.
    hop::strip_named(request.headers_mut(), client_header);
    join_cookies(request.headers_mut());
    if passed(request.headers()) >= MOST_HOPS {
        return Err((StatusCode::LOOP_DETECTED, "the request goes in circles among proxies"));
    }
    Ok(())
}

/// hyper has already removed a `Content-Length` next to `Transfer-Encoding`, and closes such a connection after the answer.
fn framing(headers: &HeaderMap) -> Result<(), Bad> {
    let mut encodings = headers.get_all(TRANSFER_ENCODING).iter();
    if let Some(encoding) = encodings.next() {
        if encodings.next().is_some() || !encoding.as_bytes().eq_ignore_ascii_case(b"chunked") {
            let why = "the only transfer encoding that is supported is `chunked`";
            return Err((StatusCode::NOT_IMPLEMENTED, why));
        }
        if headers.contains_key(CONTENT_LENGTH) {
            return Err((StatusCode::BAD_REQUEST, "the request has two lengths"));
        }
    }
    if headers.get_all(CONTENT_LENGTH).iter().count() > 1 {
        return Err((StatusCode::BAD_REQUEST, "the request has two lengths"));
    }
    Ok(())
}

/// Refuses targets that only other methods have (RFC 9112, section 3.2): `*` is for `OPTIONS`, a bare host for `CONNECT`.
/// A target with another scheme than `http` and `https` is for another kind of proxy.
fn target<B>(request: &Request<B>) -> Result<(), Bad> {
    let uri = request.uri();
    if uri.path() == "*" && request.method() != Method::OPTIONS {
        return Err((StatusCode::BAD_REQUEST, "only OPTIONS is about `*`"));
    }
    if uri.authority().is_some() && uri.scheme().is_none() {
        return Err((StatusCode::BAD_REQUEST, "the target of the request is not a path"));
    }
    let is_http = |scheme: &Scheme| *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS;
    if !uri.scheme().is_none_or(is_http) {
        let why = "the scheme of the request's target is neither `http` nor `https`";
        return Err((StatusCode::BAD_REQUEST, why));
    }
    Ok(())
}

/// The path and the query of a target with an authority. A query without a path gets the path `/`, so that limits read
/// what the application gets.
///
/// `OPTIONS http://host` should become `OPTIONS *` (RFC 9112, section 3.2.4). It becomes `OPTIONS /`, because [`Uri`] does
/// not tell `http://host` from `http://host/`.
fn without_authority(uri: &Uri) -> Uri {
    match uri.path_and_query() {
        None => Uri::from_static("/"),
        // A slash in front of a valid query is always valid.
        Some(path) if path.as_str().starts_with('?') => {
            format!("/{}", path.as_str()).parse().unwrap_or_default()
        }
        Some(path) => Uri::from(path.clone()),
    }
}

/// The host that the request is for. Only HTTP/1.0 can do without.
fn host<B>(request: &Request<B>) -> Result<Option<HeaderValue>, Bad> {
    let bad = |why| Err((StatusCode::BAD_REQUEST, why));
    let mut hosts = request.headers().get_all(HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return bad("the request has two `Host` fields");
    }
    if host.is_some_and(|host| !is_host(host.as_bytes())) {
        return bad("`Host` is not a host");
    }
    let Some(target) = request.uri().authority() else {
        return match host {
            Some(host) => Ok(Some(host.clone())),
            None if request.version() == Version::HTTP_10 => Ok(None),
            None => bad("the request has no `Host`"),
        };
    };
    if !is_host(target.as_str().as_bytes()) {
        return bad("the target of the request has no valid host");
    }
    let scheme = request.uri().scheme();
    match host {
        Some(host) if !is_same(host.as_bytes(), target.as_str().as_bytes(), scheme) => {
            bad("`Host` is not the host of the request's target")
        }
        None if request.version() == Version::HTTP_11 => bad("the request has no `Host`"),
        _ => match HeaderValue::from_str(target.as_str()) {
            Ok(host) => Ok(Some(host)),
            Err(_) => bad("the target of the request has no valid host"),
        },
    }
}

/// Whether two hosts are one. A port that is left out is that of the scheme (RFC 9110, section 4.2.3).
fn is_same(one: &[u8], other: &[u8], scheme: Option<&Scheme>) -> bool {
    let port: &[u8] = if scheme == Some(&Scheme::HTTPS) { b":443" } else { b":80" };
    let name = |host: &[u8]| {
        let name = host.strip_suffix(port).or_else(|| host.strip_suffix(b":")).unwrap_or(host);
        name.to_ascii_lowercase()
    };
    name(one) == name(other)
}

/// Whether it is a host with or without a port. The grammar of URIs allows more in names than any application expects.
fn is_host(text: &[u8]) -> bool {
    text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._~:[]%".contains(byte))
        && Authority::try_from(text).is_ok_and(|host| !host.host().is_empty())
}

/// Clients of HTTP/2 may divide cookies among fields. HTTP/1.1 has one (RFC 9113, section 8.2.3), and an application may
/// read another one of several than the limits do.
fn join_cookies(headers: &mut HeaderMap) {
    if headers.get_all(COOKIE).iter().nth(1).is_some() {
        let lines: Vec<_> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
        if let Ok(joined) = HeaderValue::from_bytes(&lines.join(&b"; "[..])) {
            headers.insert(COOKIE, joined);
        }
    }
}

/// How often the request has passed a proxy of this kind.
fn passed(headers: &HeaderMap) -> usize {
    let lines = headers.get_all(VIA).iter().filter_map(|line| line.to_str().ok());
    let hops = lines.flat_map(|line| line.split(','));
    hops.filter(|hop| hop.split_whitespace().nth(1) == Some(forwarded::NAME)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: Terms<'_> =
        Terms { client_header: None, is_trusted: false, fields: 100, underscores: false };

    fn checked(uri: &str, fields: &[(&'static str, &str)]) -> Result<(String, String), u16> {
        let mut request = Request::builder().uri(uri);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let mut request = request.body(()).unwrap();
        check(&mut request, TERMS).map_err(|(status, _)| status.as_u16())?;
        let host = request.headers()[HOST].to_str().unwrap().to_owned();
        Ok((request.uri().to_string(), host))
    }

    #[test]
    fn a_target_with_a_host_is_reduced_to_its_path() {
        let sound = Ok(("/a?b".to_owned(), "example.com".to_owned()));
        assert_eq!(checked("http://example.com/a?b", &[("host", "example.com")]), sound);
        assert_eq!(checked("/a?b", &[("host", "example.com")]), sound);
    }

    #[test]
    fn a_target_without_a_path_has_the_path_that_the_application_gets() {
        for (uri, whole, path) in [
            ("http://a", "/", "/"),
            ("http://a?x=1", "/?x=1", "/"),
            ("http://a/b?x=1", "/b?x=1", "/b"),
        ] {
            let request = Request::builder().uri(uri).header(HOST, "a");
            let mut request = request.body(()).unwrap();
            check(&mut request, TERMS).unwrap();
            let uri = request.uri();
            assert_eq!((uri.to_string().as_str(), uri.path()), (whole, path));
            assert_eq!(uri.path_and_query().map(|path| path.as_str()), Some(whole));
        }
    }

    #[test]
    fn a_target_with_another_scheme_is_refused() {
        for uri in ["ftp://a/", "ws://a/", "file://a/etc", "httpss://a/"] {
            assert_eq!(checked(uri, &[("host", "a")]), Err(400), "{uri}");
        }
        assert!(checked("HTTPS://a/", &[("host", "a")]).is_ok());
    }

    #[test]
    fn a_request_for_two_hosts_is_refused() {
        assert_eq!(checked("http://a/", &[("host", "b")]), Err(400));
        assert_eq!(checked("/", &[("host", "a"), ("host", "a")]), Err(400));
        for host in ["", "a b", "user@a", "a,b", "a/b", "a:b:c"] {
            assert_eq!(checked("/", &[("host", host)]), Err(400), "{host}");
        }
        assert_eq!(checked("/", &[]), Err(400));
    }

    #[test]
    fn a_port_that_is_left_out_is_that_of_the_scheme() {
        for (uri, host) in [
            ("http://h:80/", "h"),
            ("http://h/", "H:80"),
            ("http://h:/", "h"),
            ("https://h:443/", "h"),
            ("https://h/", "h:443"),
            ("http://[::1]:80/", "[::1]"),
        ] {
            let target = uri.split('/').nth(2).unwrap_or_default().to_owned();
            let sound = Ok(("/".to_owned(), target));
            assert_eq!(checked(uri, &[("host", host)]), sound, "{uri} {host}");
        }
        for (uri, host) in [
            ("http://h:443/", "h"),
            ("https://h:80/", "h"),
            ("http://h:8080/", "h"),
            ("http://h/", "h:8080"),
            ("http://h:80/", "h:443"),
            ("http://[::80]/", "[:"),
        ] {
            assert_eq!(checked(uri, &[("host", host)]), Err(400), "{uri} {host}");
        }
    }

    #[test]
    fn cookies_that_a_client_divides_are_one_field() {
        let request = Request::builder().header(HOST, "a");
        let request = request.header(COOKIE, "a=1").header(COOKIE, "b=2; c=3");
        let mut request = request.body(()).unwrap();
        check(&mut request, TERMS).unwrap();
        let cookies: Vec<_> = request.headers().get_all(COOKIE).iter().collect();
        assert_eq!(cookies, ["a=1; b=2; c=3"]);
    }

    /// A header with an underscore, and the spellings of it that an application cannot tell from it.
    #[test]
    fn the_field_of_the_clients_address_is_kept_of_trusted_proxies_as_the_file_spells_it() {
        for (is_trusted, expected) in [(true, &["host", "x_edge_ip"][..]), (false, &["host"])] {
            let request = Request::builder().header(HOST, "a").header("x_edge_ip", "192.0.2.1");
            let request = request.header("x-edge-ip", "192.0.2.2").header("x.edge.ip", "192.0.2.3");
            let mut request = request.header("connection", "x_edge_ip").body(()).unwrap();
            let client_header = Some("X_Edge_IP");
            let terms = Terms { client_header, is_trusted, underscores: true, ..TERMS };
            check(&mut request, terms).unwrap();
            request.headers_mut().remove("connection");
            let names: Vec<_> = request.headers().keys().map(http::HeaderName::as_str).collect();
            assert_eq!(names, expected);
        }
    }

    #[test]
    fn only_chunked_is_a_transfer_encoding() {
        for encoding in ["gzip, chunked", "chunked, chunked", "identity", "xchunked", ""] {
            let fields = [("host", "a"), ("transfer-encoding", encoding)];
            assert_eq!(checked("/", &fields), Err(501), "{encoding}");
        }
        let both = [("host", "a"), ("transfer-encoding", "chunked"), ("content-length", "5")];
        assert_eq!(checked("/", &both), Err(400));
    }

    #[test]
    fn the_application_gets_no_more_fields_than_it_may_have() {
        for (fields, status) in [(93, 200), (94, 431)] {
            let mut request = Request::builder().header(HOST, "a");
            for at in 0..fields {
                request = request.header("x-many", at);
            }
            let checked = check(&mut request.body(()).unwrap(), TERMS);
            assert_eq!(checked.map_or_else(|(status, _)| status.as_u16(), |()| 200), status);
        }
    }

    #[test]
    fn a_request_that_goes_in_circles_is_refused() {
        let via = ["1.1 sluicegate"; MOST_HOPS].join(", ");
        assert_eq!(checked("/", &[("host", "a"), ("via", &via)]), Err(508));
        assert!(checked("/", &[("host", "a"), ("via", "1.1 sluicegate, 1.1 other")]).is_ok());
    }
}
