//! What pages of other sites may do to the admin port through the browser of an operator: nothing.
//!
//! - A page can have its own name resolve to this host (DNS rebinding), and then read answers as its own. Without a
//!   token, a request has to name this host by an address or as `localhost`. With a token, such a page has no cookie.
//! - A page can send requests that change something, without reading the answer (CSRF). Those have to come from the
//!   dashboard itself, or from a client that is no browser.

use std::net::{IpAddr, Ipv6Addr};

use axum::http::uri::Authority;
use axum::http::{HeaderValue, Method, Request, header};

/// Why a request is refused.
pub(super) const OTHER_NAME: &str = "the admin port has no token, so it answers only to an address such as 127.0.0.1 or to `localhost`: \
    use one of them, or set a token\n";

/// Why a request is refused.
pub(super) const OTHER_SITE: &str = "a page of another site may not change anything here\n";

/// Whether the request names this host in a way that other sites cannot make point here.
pub(super) fn names_this_host<B>(request: &Request<B>) -> bool {
    // A browser always sends it; a load balancer that asks for health may not.
    let Some(authority) = authority(request) else {
        return !request.headers().contains_key(header::HOST);
    };
    let host = authority.host();
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_address = match address {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => host.parse::<IpAddr>().is_ok(),
    };
    is_address || host.eq_ignore_ascii_case("localhost")
}

/// Whether the request changes nothing, or comes from the dashboard or from a client that is no browser.
pub(crate) fn is_own<B>(request: &Request<B>) -> bool {
    if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
        return true;
    }
    let field = |name: &str| request.headers().get(name).map(HeaderValue::as_bytes);
    let site = field("sec-fetch-site").unwrap_or(b"same-origin");
    let Some(origin) = field("origin") else { return site == b"same-origin" || site == b"none" };
    let Some(own) = authority(request) else { return false };
    // TLS may end in front of the port.
    let host = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
    site == b"same-origin" && host == Some(own.as_str().as_bytes())
}

fn authority<B>(request: &Request<B>) -> Option<Authority> {
    let of_uri = request.uri().authority().cloned();
    of_uri.or_else(|| request.headers().get(header::HOST)?.to_str().ok()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn request(method: &str, fields: &[(&str, &str)]) -> Request<Body> {
        let request = Request::builder().method(method).uri("/session");
        let request =
            fields.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.body(Body::empty()).expect("a request")
    }

    #[test]
    fn a_name_that_somebody_else_can_point_here_is_not_this_host() {
        for (host, is_own) in [
            ("127.0.0.1:6070", true),
            ("127.0.0.1", true),
            ("[::1]:6070", true),
            ("localhost:6070", true),
            ("LOCALHOST", true),
            ("10.0.0.7:6070", true),
            ("attacker.example:6070", false),
            ("127.0.0.1.attacker.example", false),
            ("localhost.attacker.example", false),
            ("attacker.example@127.0.0.1.nip.io", false),
            ("[attacker]:6070", false),
            ("", false),
            ("a b", false),
        ] {
            assert_eq!(names_this_host(&request("GET", &[("host", host)])), is_own, "{host}");
        }
        assert!(names_this_host(&request("GET", &[])));
    }

    #[test]
    fn only_the_page_itself_and_clients_that_are_no_browsers_change_anything() {
        let host = ("host", "127.0.0.1:6070");
        for (fields, is_own_page) in [
            (&[][..], true),
            (&[("origin", "http://127.0.0.1:6070"), ("sec-fetch-site", "same-origin")], true),
            (&[("origin", "http://127.0.0.1:6070")], true),
            (&[("origin", "https://127.0.0.1:6070")], true),
            (&[("origin", "https://127.0.0.1")], false),
            (&[("origin", "ftp://127.0.0.1:6070")], false),
            (&[("origin", "http://127.0.0.1:8000"), ("sec-fetch-site", "same-site")], false),
            (&[("origin", "http://127.0.0.1:8000")], false),
            (&[("origin", "http://attacker.example")], false),
            (&[("origin", "null")], false),
            (&[("sec-fetch-site", "cross-site")], false),
            (&[("sec-fetch-site", "same-site")], false),
        ] {
            let fields = [&[host], fields].concat();
            assert_eq!(is_own(&request("POST", &fields)), is_own_page, "{fields:?}");
            assert!(is_own(&request("GET", &fields)));
        }
    }
}
