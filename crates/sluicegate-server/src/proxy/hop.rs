//! Header fields that are for one connection only (RFC 9110, section 7.6.1).

use http::header::{
    CONNECTION, CONTENT_LENGTH, HeaderName, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE,
    TRANSFER_ENCODING,
};
use http::{HeaderMap, HeaderValue};
use sluicegate_config::proxy::fields::{PER_CONNECTION, is_forbidden, is_told};

use crate::proxy::forwarded::remove;

/// Removes the fields that `Connection` names, before anything reads them: limits see what the application will see.
/// Fields about the connection itself stay, because the proxy reads them later. The field in which proxies pass on the
/// client's address, `client_header`, stays too.
pub(crate) fn strip_named(headers: &mut HeaderMap, client_header: Option<&str>) {
    if !headers.contains_key(CONNECTION) {
        return;
    }
    let lines: Vec<_> = headers.get_all(CONNECTION).iter().cloned().collect();
    let named = lines.iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    for name in named.map(<[u8]>::trim_ascii) {
        let Ok(name) = HeaderName::from_bytes(name) else { continue };
        // `Connection: host` or `Connection: x-forwarded-for` would let a client take away what a limit reads, and what
        // a trusted proxy in front has written about it.
        if !is_told(name.as_str(), client_header) && !PER_CONNECTION.contains(&name.as_str()) {
            headers.remove(name);
        }
    }
}

/// Removes the fields of a request that are not for the application, once [`strip_named`] has run. `TE` is left where it
/// says `trailers`.
pub(crate) fn strip_request(headers: &mut HeaderMap) {
    let trailers = headers.get_all(TE).iter().any(accepts_trailers);
    strip(headers);
    headers.remove(PROXY_AUTHORIZATION);
    if trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
}

/// Removes the fields of a response that are not for the client. `Trailer` stays.
pub(crate) fn strip_response(headers: &mut HeaderMap) {
    if headers.contains_key(TRANSFER_ENCODING) {
        headers.remove(CONTENT_LENGTH);
    }
    strip_named(headers, None);
    strip(headers);
    headers.remove(PROXY_AUTHENTICATE);
}

/// Like [`strip_response`], for an interim response, which has no body.
pub(crate) fn strip_interim(headers: &mut HeaderMap) {
    strip_response(headers);
    headers.remove(CONTENT_LENGTH);
}

/// Removes what trailers of a request must not say (RFC 9110, section 6.5.1). Some applications take trailers for header
/// fields, also where a name has `_` in place of `-`, and neither the limits nor the proxy have read those.
pub(crate) fn strip_trailers(trailers: &mut HeaderMap, client_header: Option<&str>) {
    remove(trailers, |name| is_forbidden(name.as_str(), client_header));
}

fn strip(headers: &mut HeaderMap) {
    headers.remove(CONNECTION);
    for name in PER_CONNECTION {
        headers.remove(name);
    }
}

fn accepts_trailers(line: &HeaderValue) -> bool {
    let mut codings = line.as_bytes().split(|byte| *byte == b',');
    codings.any(|coding| coding.trim_ascii().eq_ignore_ascii_case(b"trailers"))
}

#[cfg(test)]
mod tests {
    use sluicegate_config::proxy::fields::is_removed;

    use super::*;

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let field = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        fields.iter().map(field).collect()
    }

    fn strip_all(headers: &mut HeaderMap) {
        strip_named(headers, Some("x-client-ip"));
        strip_request(headers);
    }

    fn names(headers: &HeaderMap) -> Vec<&str> {
        headers.keys().map(HeaderName::as_str).collect()
    }

    #[test]
    fn what_is_for_one_connection_ends_there() {
        let mut headers = headers(&[
            ("connection", "close, X-Once ,keep-alive"),
            ("connection", "x-twice"),
            ("x-once", "1"),
            ("x-twice", "2"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "keep-alive"),
            ("proxy-authorization", "Basic eA=="),
            ("te", "gzip"),
            ("upgrade", "h2c"),
            ("http2-settings", "AAMAAABk"),
            ("transfer-encoding", "chunked"),
            ("accept", "*/*"),
        ]);
        strip_all(&mut headers);
        assert_eq!(names(&headers), ["accept"]);
    }

    #[test]
    fn what_is_named_is_gone_before_the_proxy_has_read_what_it_needs() {
        let mut headers = headers(&[
            ("connection", "upgrade, x-api-key, te, transfer-encoding"),
            ("upgrade", "websocket"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("x-api-key", "1"),
        ]);
        strip_named(&mut headers, None);
        assert_eq!(names(&headers), ["connection", "upgrade", "te", "transfer-encoding"]);
    }

    #[test]
    fn te_says_only_whether_trailers_are_accepted() {
        let mut headers = headers(&[("te", "gzip;q=0.5, Trailers"), ("trailer", "x-sum")]);
        strip_all(&mut headers);
        assert_eq!(headers["te"], "trailers");
        assert_eq!(headers["trailer"], "x-sum");
    }

    #[test]
    fn a_client_cannot_have_the_proxy_remove_what_others_vouch_for() {
        let mut headers = headers(&[
            ("connection", "host, cookie, authorization, content-length, X-Forwarded-For, via"),
            ("connection", "X-Client-IP"),
            ("host", "a"),
            ("cookie", "a=b"),
            ("authorization", "Bearer x"),
            ("content-length", "3"),
            ("x-forwarded-for", "192.0.2.1"),
            ("via", "1.1 sluicegate"),
            ("x-client-ip", "192.0.2.1"),
        ]);
        strip_all(&mut headers);
        let mut names = names(&headers);
        names.sort_unstable();
        assert_eq!(
            names.join(" "),
            "authorization content-length cookie host via x-client-ip x-forwarded-for"
        );
    }

    #[test]
    fn trailers_say_nothing_that_only_a_header_may_say() {
        let mut trailers = headers(&[
            ("x-sum", "1"),
            ("grpc-status", "0"),
            ("x-forwarded-for", "192.0.2.1"),
            ("x_forwarded_for", "192.0.2.1"),
            ("x_client-ip", "192.0.2.1"),
            ("forwarded", "for=192.0.2.1"),
            ("authorization", "Bearer x"),
            ("cookie", "a=b"),
            ("host", "b"),
            ("content_length", "3"),
            ("connection", "x-sum"),
            ("transfer-encoding", "chunked"),
            ("content-encoding", "gzip"),
        ]);
        strip_trailers(&mut trailers, Some("x-client-ip"));
        assert_eq!(names(&trailers), ["x-sum", "grpc-status"]);
    }

    #[test]
    fn names_that_applications_take_for_others_are_gone() {
        let fields = [
            ("x_api_key", "1"),
            ("x.api.key", "1"),
            ("content_length", "3"),
            ("transfer.encoding", "chunked"),
            ("x_forwarded_for", "192.0.2.1"),
            ("x_real-ip", "192.0.2.1"),
            ("x_client_ip", "192.0.2.1"),
            ("x-api-key", "1"),
            ("x-7", "1"),
        ];
        for (kept, expected) in [
            (false, &["x-7", "x-api-key"][..]),
            (true, &["x-7", "x-api-key", "x.api.key", "x_api_key"]),
        ] {
            let mut headers = headers(&fields);
            remove(&mut headers, |name| is_removed(name.as_str(), Some("x-client-ip"), kept, true));
            let mut names = names(&headers);
            names.sort_unstable();
            assert_eq!(names, expected);
        }
    }

    #[test]
    fn a_response_with_two_lengths_keeps_neither() {
        let mut headers = headers(&[("transfer-encoding", "chunked"), ("content-length", "3")]);
        strip_response(&mut headers);
        assert!(headers.is_empty());
    }
}
