//! Who sent a request, for the application: `X-Forwarded-For`, `-Proto` and `-Host`, and `Via`.

use std::net::IpAddr;

use http::header::{HOST, HeaderName, VIA};
use http::{HeaderMap, HeaderValue, Version};

/// The name of this proxy in `Via`.
pub(crate) const NAME: &str = "sluicegate";

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// The longest `X-Forwarded-For` that is extended, in bytes. A longer one is shortened from its begin.
const LONGEST: usize = 2_048;

/// The other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client {
    pub(crate) address: IpAddr,
    pub(crate) is_secure: bool,
}

/// Removes the fields whose names `is_unwanted` recognizes.
pub(crate) fn remove(headers: &mut HeaderMap, is_unwanted: impl Fn(&HeaderName) -> bool) {
    // Most requests have none.
    if headers.keys().any(&is_unwanted) {
        let names: Vec<_> = headers.keys().filter(|name| is_unwanted(name)).cloned().collect();
        names.into_iter().for_each(|name| drop(headers.remove(name)));
    }
}

/// Writes who sent a request. What other proxies have written is extended, unless it has been removed.
pub(crate) fn write(headers: &mut HeaderMap, client: Client, version: Version) {
    let address = client.address.to_canonical();
    let lines = headers.get_all(FOR).iter().map(|line| trimmed(line.as_bytes()));
    let lines: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
    let mut chain = latest(&lines.join(&b", "[..])).to_vec();
    if !chain.is_empty() {
        chain.extend(b", ");
    }
    chain.extend(address.to_string().bytes());
    if let Ok(chain) = HeaderValue::from_bytes(&chain) {
        headers.insert(FOR, chain);
    }
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

/// A list without what is empty at its ends.
fn trimmed(list: &[u8]) -> &[u8] {
    let is_element = |byte: &u8| !matches!(byte, b',' | b' ' | b'\t');
    let begin = list.iter().position(is_element).unwrap_or(list.len());
    let end = list.iter().rposition(is_element).map_or(begin, |last| last + 1);
    &list[begin..end]
}

/// The last elements of a list, of any bytes: as many as are within [`LONGEST`]. The last one is always there. The client may
/// have written all others, and must not hide what the proxy in front has found out about it.
fn latest(list: &[u8]) -> &[u8] {
    let Some(over) = list.len().checked_sub(LONGEST).filter(|over| *over > 0) else {
        return list;
    };
    let is_comma = |byte: &u8| *byte == b',';
    let comma = list[over - 1..].iter().position(is_comma).map(|at| over - 1 + at);
    let comma = comma.or_else(|| list.iter().rposition(is_comma));
    trimmed(comma.map_or(list, |at| &list[at..]))
}

#[cfg(test)]
mod tests {
    use sluicegate_config::proxy::fields::is_removed;

    use super::*;

    fn written(is_trusted: bool, fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let field = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let mut headers: HeaderMap = fields.iter().map(field).collect();
        remove(&mut headers, |name| {
            is_removed(name.as_str(), Some("X-Edge-Client"), false, is_trusted)
        });
        let client = Client { address: [192, 0, 2, 7].into(), is_secure: true };
        write(&mut headers, client, Version::HTTP_2);
        headers
    }

    const FIELDS: [(&str, &str); 8] = [
        ("host", "example.com"),
        ("x-forwarded-for", "198.51.100.1"),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-port", "1"),
        ("x-real-ip", "203.0.113.9"),
        ("true-client-ip", "203.0.113.9"),
        ("x-edge-client", "203.0.113.9"),
        ("forwarded", "for=198.51.100.1"),
    ];

    #[test]
    fn a_client_is_not_believed() {
        let headers = written(false, &FIELDS);
        assert_eq!(headers["x-forwarded-for"], "192.0.2.7");
        assert_eq!(headers["x-forwarded-proto"], "https");
        assert_eq!(headers["x-forwarded-host"], "example.com");
        assert_eq!(headers["via"], "2 sluicegate");
        assert_eq!(headers.len(), 5, "{headers:?}");
    }

    #[test]
    fn no_network_for_delivering_content_is_believed_from_a_stranger() {
        for name in ["cf-connecting-ip", "x-sucuri-clientip", "x-vercel-forwarded-for"] {
            let fields = [("host", "example.com"), (name, "203.0.113.9")];
            assert!(!written(false, &fields).contains_key(name), "{name}");
            assert_eq!(written(true, &fields)[name], "203.0.113.9");
        }
    }

    #[test]
    fn no_stranger_names_another_path_or_method_than_the_limits_read() {
        for name in [
            "x-host",
            "x-http-host-override",
            "x-http-method",
            "x-http-method-override",
            "x-method-override",
            "x-original-host",
            "x-original-uri",
            "x-original-url",
            "x-rewrite-url",
        ] {
            let fields = [("host", "example.com"), (name, "/admin")];
            assert!(!written(false, &fields).contains_key(name), "{name}");
            assert_eq!(written(true, &fields)[name], "/admin");
        }
    }

    #[test]
    fn a_proxy_that_is_trusted_is_extended() {
        let headers = written(true, &FIELDS);
        assert_eq!(headers["x-forwarded-for"], "198.51.100.1, 192.0.2.7");
        assert_eq!(headers["x-forwarded-proto"], "http");
        assert_eq!(headers["forwarded"], "for=198.51.100.1");
        assert_eq!(headers["x-real-ip"], "203.0.113.9");
    }

    /// What a trusted proxy that has sent these lines makes of `X-Forwarded-For`.
    fn extended(lines: &[&[u8]]) -> Vec<u8> {
        let line = |line: &&[u8]| (FOR, HeaderValue::from_bytes(line).expect("a legal value"));
        let mut headers: HeaderMap = lines.iter().map(line).collect();
        let client = Client { address: [192, 0, 2, 7].into(), is_secure: false };
        write(&mut headers, client, Version::HTTP_11);
        assert_eq!(headers.get_all(FOR).iter().count(), 1);
        headers[FOR].as_bytes().to_vec()
    }

    #[test]
    fn the_list_of_proxies_does_not_grow_for_ever() {
        let long = extended(&["198.51.100.1, ".repeat(200).as_bytes()]);
        assert!(long.len() > LONGEST && long.len() < LONGEST + 20, "{}", long.len());
        assert!(long.starts_with(b"198.51.100.1, ") && long.ends_with(b", 192.0.2.7"));
        let lines = ["198.51.100.1,198.51.100.2"; 200].map(str::as_bytes);
        assert!(extended(&lines).starts_with(b"198.51.100."));
        assert!(extended(&lines).len() < LONGEST + 20);
    }

    #[test]
    fn nothing_that_a_client_writes_hides_the_address_that_a_trusted_proxy_appends() {
        let own = b"198.51.100.1, 192.0.2.7";
        for begin in [&b"\xff"[..], b"10.0.0.1", b"a,b,,", b"\xc5\xbc,\t", b"\""] {
            for length in [1, 1_000, LONGEST - 14, LONGEST - 13, LONGEST, 3 * LONGEST] {
                let begin = begin.repeat(length / begin.len() + 1);
                let one = extended(&[&[&*begin, b", 198.51.100.1"].concat()]);
                assert!(one.ends_with(own) && one.len() < LONGEST + 20);
                assert!(extended(&[&begin, b"198.51.100.1"]).ends_with(own));
                let two = extended(&[&[&*begin, b",203.0.113.9"].concat(), b"198.51.100.1"]);
                assert!(two.ends_with(b"203.0.113.9, 198.51.100.1, 192.0.2.7"));
            }
        }
        // What has no comma is one element, however long it is.
        let long = [b'a'; 2 * LONGEST];
        assert_eq!(extended(&[&long]), [&long[..], b", 192.0.2.7"].concat());
        // Nothing is no element.
        let nothing: [&[&[u8]]; 4] = [&[], &[b""], &[b" ", b","], &[b", \t,", b""]];
        for lines in nothing {
            assert_eq!(extended(lines), b"192.0.2.7");
        }
    }
}
