//! Who sent a request, for the application: `X-Forwarded-For`, `-Proto` and `-Host`, and `Via`.

use std::net::IpAddr;

use http::header::{FORWARDED, HOST, HeaderName, VIA};
use http::{HeaderMap, HeaderValue, Version};
use sluicegate::key::Proxies;

use crate::check::NAME;

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// The longest `X-Forwarded-For` that is extended, in bytes. A longer one begins anew.
const LONGEST: usize = 2_048;

/// The other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client {
    pub(crate) address: IpAddr,
    pub(crate) is_secure: bool,
}

/// Writes who sent a request. What other proxies have written is extended if the client is one of `trusted`, and replaced
/// otherwise. `Forwarded` stays as it is if the client is trusted. Otherwise it is removed, because the application could
/// not tell that the client has made it up.
pub(crate) fn write(
    headers: &mut HeaderMap,
    client: Client,
    version: Version,
    trusted: Option<&Proxies>,
) {
    let is_trusted = trusted.is_some_and(|trusted| trusted.contains(client.address));
    remove_untold(headers, is_trusted);
    let address = client.address.to_canonical();
    let mut chain = String::new();
    for line in headers.get_all(FOR).iter().filter_map(|line| line.to_str().ok()) {
        if chain.len() + line.len() <= LONGEST && !line.trim().is_empty() {
            chain += line.trim();
            chain += ", ";
        }
    }
    chain += &address.to_string();
    insert(headers, FOR, &chain);
    if !headers.contains_key(PROTO) {
        let proto = if client.is_secure { "https" } else { "http" };
        headers.insert(PROTO, HeaderValue::from_static(proto));
    }
    if let (false, Some(host)) = (headers.contains_key(X_HOST), headers.get(HOST).cloned()) {
        headers.insert(X_HOST, host);
    }
    let version = match version {
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2",
        _ => "1.1",
    };
    let hop = HeaderValue::from_str(&format!("{version} {NAME}"));
    headers.extend(hop.ok().map(|hop| (VIA, hop)));
}

/// Removes forwarding fields that no trusted proxy has written. Some applications cannot tell
/// `X_Forwarded_For` from `X-Forwarded-For`, so no client may send the former.
fn remove_untold(headers: &mut HeaderMap, is_trusted: bool) {
    let untold = |name: &HeaderName| {
        let text = name.as_str().as_bytes();
        let is_forwarding = text.len() > 11
            && text
                .iter()
                .zip(b"x-forwarded")
                .all(|(byte, expected)| byte == expected || *byte == b'_' && *expected == b'-');
        let is_disguised = is_forwarding && text.contains(&b'_');
        is_disguised || !is_trusted && (is_forwarding || name == FORWARDED)
    };
    // Most requests have none.
    if headers.keys().any(untold) {
        let names: Vec<_> = headers.keys().filter(|name| untold(name)).cloned().collect();
        names.into_iter().for_each(|name| drop(headers.remove(name)));
    }
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(trusted: &str, fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let field = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let mut headers: HeaderMap = fields.iter().map(field).collect();
        let trusted: Proxies = trusted.parse().unwrap();
        let client = Client { address: [192, 0, 2, 7].into(), is_secure: true };
        write(&mut headers, client, Version::HTTP_2, Some(&trusted));
        headers
    }

    const FIELDS: [(&str, &str); 6] = [
        ("host", "example.com"),
        ("x-forwarded-for", "198.51.100.1"),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-port", "1"),
        ("x_forwarded_for", "203.0.113.9"),
        ("forwarded", "for=198.51.100.1"),
    ];

    #[test]
    fn a_client_is_not_believed() {
        let headers = written("10.0.0.0/8", &FIELDS);
        assert_eq!(headers["x-forwarded-for"], "192.0.2.7");
        assert_eq!(headers["x-forwarded-proto"], "https");
        assert_eq!(headers["x-forwarded-host"], "example.com");
        assert_eq!(headers["via"], "2 sluicegate");
        assert_eq!(headers.len(), 5, "{headers:?}");
    }

    #[test]
    fn a_proxy_that_is_trusted_is_extended() {
        let headers = written("192.0.2.0/24", &FIELDS);
        assert_eq!(headers["x-forwarded-for"], "198.51.100.1, 192.0.2.7");
        assert_eq!(headers["x-forwarded-proto"], "http");
        assert_eq!(headers["forwarded"], "for=198.51.100.1");
        assert!(!headers.contains_key("x_forwarded_for"));
    }

    #[test]
    fn the_list_of_proxies_does_not_grow_for_ever() {
        let long = "198.51.100.1, ".repeat(200).leak();
        let headers = written("192.0.2.0/24", &[("x-forwarded-for", long)]);
        assert_eq!(headers["x-forwarded-for"], "192.0.2.7");
    }
}
