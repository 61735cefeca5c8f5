//! Which header fields of a request the proxy removes before anything reads it.
//!
//! The proxy and the check of its file ask the same functions, so that no rule reads a field that the proxy removes.
//! Names are in lower case.

/// Fields that are for one connection even where `Connection` does not name them.
pub const PER_CONNECTION: [&str; 6] =
    ["keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade", "http2-settings"];

/// Fields that a client cannot have removed by naming them in `Connection`: every request needs them, or proxies in front
/// of this one write them about the client. Limits read those, too.
const KEPT: [&str; 7] =
    ["host", "content-length", "trailer", "authorization", "cookie", "content-type", "via"];

/// What trailers must not say, besides those: how to pass a request on, and how to read it.
const ONLY_HEADERS: [&str; 7] = [
    "connection",
    "proxy-authorization",
    "expect",
    "max-forwards",
    "content-encoding",
    "content-range",
    "range",
];

/// Fields besides `X-Forwarded-..` in which proxies and content delivery networks say who the client is.
const CLIENT: [&str; 35] = [
    "ali-cdn-real-ip",
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "cf-pseudo-ipv4",
    "client-ip",
    "cloudfront-viewer-address",
    "do-connecting-ip",
    "fastly-client-ip",
    "fly-client-ip",
    "forwarded",
    "forwarded-for",
    "forwarded-for-ip",
    "incap-client-ip",
    "proxy-client-ip",
    "remote-addr",
    "true-client-ip",
    "wl-proxy-client-ip",
    "x-appengine-user-ip",
    "x-azure-clientip",
    "x-azure-socketip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-envoy-external-address",
    "x-forwarded",
    "x-nf-client-connection-ip",
    "x-original-forwarded-for",
    "x-originating-ip",
    "x-proxyuser-ip",
    "x-real-ip",
    "x-remote-addr",
    "x-remote-ip",
    "x-sucuri-clientip",
    "x-true-client-ip",
    "x-vercel-forwarded-for",
    "x-vercel-proxied-for",
];

/// Fields in which proxies say what a request was before they rewrote it. Applications that believe them serve another path,
/// method or host than the limits have read.
const REQUEST: [&str; 9] = [
    "x-host",
    "x-http-host-override",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-host",
    "x-original-uri",
    "x-original-url",
    "x-rewrite-url",
];

/// Whether the proxy removes the field of this name from a request before the limits read it, from a peer that is one of
/// the `trusted` proxies or is not. `client_header` is the field in which those proxies pass on the client's address, and
/// `underscores` is the setting of `[listen]`.
///
/// CGI, and with it many applications, cannot tell `X_Api_Key` or `X.Api.Key` from `X-Api-Key`, which limits read. So odd
/// names are removed: all of them, or with `underscores` those that stand for a field that the proxy itself reads or
/// writes.
pub fn is_removed(
    name: &str,
    client_header: Option<&str>,
    underscores: bool,
    is_trusted: bool,
) -> bool {
    if is_odd(name) && !underscores {
        return true;
    }
    if is_vouched(name, client_header) || is_of_proxies(name) {
        return !is_trusted;
    }
    // What stands for the field of the client's address is removed from trusted proxies too: they write the field itself,
    // and pass on what their clients write.
    match is_odd(name) {
        true => is_forbidden(name, client_header),
        false => stands_for(name, client_header),
    }
}

/// Whether a name stands for a field that the proxy itself reads or writes, in any spelling that applications cannot tell
/// from it. Trailers must not say it.
pub fn is_forbidden(name: &str, client_header: Option<&str>) -> bool {
    // Compared as CGI would see it: every odd letter becomes `-` there, or `_`, which is the same to it.
    let plain = name.replace(|letter: char| !is_plain(letter), "-");
    is_told(&plain, client_header)
        || stands_for(name, client_header)
        || PER_CONNECTION.contains(&plain.as_str())
        || ONLY_HEADERS.contains(&plain.as_str())
}

/// Whether every request needs a field of this name, or proxies write it about the client.
pub fn is_told(name: &str, client_header: Option<&str>) -> bool {
    KEPT.contains(&name) || is_of_proxies(name) || is_vouched(name, client_header)
}

/// Whether a name has other characters than letters, digits and `-`.
pub(super) fn is_odd(name: &str) -> bool {
    !name.chars().all(is_plain)
}

/// Whether only a proxy may write a field of this name: who the client is, and what the request was.
fn is_of_proxies(name: &str) -> bool {
    name.starts_with("x-forwarded-") || CLIENT.contains(&name) || REQUEST.contains(&name)
}

/// Whether trusted proxies pass the client's address on in the field of this name.
fn is_vouched(name: &str, client_header: Option<&str>) -> bool {
    client_header.is_some_and(|header| header.eq_ignore_ascii_case(name))
}

/// Whether applications cannot tell a name from that of the field of the client's address.
fn stands_for(name: &str, client_header: Option<&str>) -> bool {
    let plain =
        |letter: u8| if is_plain(letter.into()) { letter.to_ascii_lowercase() } else { b'-' };
    client_header.is_some_and(|header| header.bytes().map(plain).eq(name.bytes().map(plain)))
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '-'
}
