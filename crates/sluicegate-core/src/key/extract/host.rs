//! A request can name its host in its target and in its `Host` field, and handlers, guards and proxies read either
//! one. If the two differ, if there are two fields, or if the host is not a host name, the answer is 400. So no
//! request is limited as one host and served as another.

use std::net::Ipv6Addr;

use super::lowercase::push_lowercase;
use crate::key::{Key, KeyBuf, Missing, View, tag};

/// The host that the request is for: in lower case, without port, without a final dot. All spellings of an IPv6
/// literal are one key.
///
/// A request can name its host in its target and in its `Host` field. Handlers read either, so both have to name the
/// same host. A request with several `Host` fields, two different hosts, or something that is not a host name is
/// refused with 400, as RFC 9112 requires.
///
/// Clients choose the host. The key is safe if requests for other hosts than yours are refused, by the proxy in front
/// or by the router.
#[derive(Debug, Clone, Copy)]
pub struct Host;

impl<V: View> Key<V> for Host {
    fn write(&self, view: &V, key: &mut KeyBuf) -> Result<(), Missing> {
        let name = host_of(view)?.ok_or_else(|| Missing::client_named("host", "header"))?;
        key.push(&[tag::HOST]);
        match host_address(name) {
            // Not canonical: a literal in brackets is a different host from the bare IPv4 address.
            Some(address) => key.push(&address.octets()),
            None => push_lowercase(key, name),
        }
        Ok(())
    }
}

/// The host that the request names, read by [`host_name`]; `None` if it names none.
pub(crate) fn host_of<V: View>(view: &V) -> Result<Option<&str>, Missing> {
    let mut lines = view.header_lines("host");
    let field = lines.next();
    if lines.next().is_some() {
        return Err(Missing::ambiguous_named("host", "header"));
    }
    let field = field.map(|line| std::str::from_utf8(line).ok().and_then(sound_name));
    let target = view.host().map(|host| {
        // Only a target may have a user before the host.
        sound_name(host.rsplit_once('@').map_or(host, |(_, host)| host))
    });
    let name = match (target, field) {
        (Some(None), _) | (_, Some(None)) => {
            return Err(Missing::ambiguous("a `host` that is a host name"));
        }
        (Some(Some(target)), Some(Some(field))) if !is_same_host(target, field) => {
            return Err(Missing::ambiguous("one host, in its target and in its `host` header"));
        }
        (Some(name), _) | (None, Some(name)) => name,
        (None, None) => None,
    };
    Ok(name.filter(|name| !name.is_empty()))
}

/// Host names have at most 253 bytes (RFC 1035). A dot and a port may follow.
const MAX_HOST: usize = 260;

/// The name in a `Host` field; `None` if it is not a host name. Names with percent-encoding or bytes outside ASCII
/// are not accepted, because some servers decode them and others do not.
pub(crate) fn sound_name(host: &str) -> Option<&str> {
    let host = host.trim_matches([' ', '\t']);
    let (name, rest) = match host.find(']') {
        Some(end) => host.split_at(end + 1),
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_port = |port: &str| port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_sound = host.len() <= MAX_HOST
        && (rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port))
        && (host_address(name).is_some()
            || name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)));
    is_sound.then(|| host_name(host))
}

fn is_same_host(one: &str, other: &str) -> bool {
    match host_address(one) {
        Some(address) => host_address(other) == Some(address),
        None => one.eq_ignore_ascii_case(other),
    }
}

/// `authority` without user, port and final dot.
fn host_name(authority: &str) -> &str {
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let bracket = host.rfind(']').map_or(0, |bracket| bracket + 1);
    let port = host[bracket..].find(':').map_or(host.len(), |colon| bracket + colon);
    let host = &host[..port];
    host.strip_suffix('.').unwrap_or(host)
}

/// The address in brackets.
pub(crate) fn host_address(name: &str) -> Option<Ipv6Addr> {
    name.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::testing::{Request, key, missing};
    use crate::key::{First, Header, Path};

    fn host(text: &str) -> KeyBuf {
        key(&Host, &Request { host: Some(text.into()), ..Request::default() })
    }

    #[test]
    fn every_spelling_of_a_host_is_one_key() {
        for text in
            ["Example.COM", "example.com.", "example.com:443", "EXAMPLE.com.:8080", "u@example.com"]
        {
            assert_eq!(host(text), host("example.com"), "{text}");
        }
        assert_ne!(host("example.com.."), host("example.com"));
        assert_ne!(host("example.org"), host("example.com"));
    }

    #[test]
    fn an_ipv6_literal_is_one_key_however_it_is_spelled() {
        for text in ["[2001:DB8::1]:443", "[2001:db8:0::1]", "[2001:db8::1]:"] {
            assert_eq!(host(text), host("[2001:db8::1]"), "{text}");
        }
        assert_ne!(host("[2001:db8::2]"), host("[2001:db8::1]"));
    }

    #[test]
    fn the_header_host_is_the_host_in_every_version() {
        let target = Request { host: Some("Example.com:443".into()), ..Request::default() };
        let field = Request { host: Some("example.com".into()), ..Request::default() };
        for request in [target, field.header("host", "example.com")] {
            assert_eq!(key(&Header("Host"), &request), host("example.com"));
        }
        let two = Request { host: Some("a".into()), ..Request::default() }.header("host", "b");
        assert!(missing(&Header("host"), &two).is_ambiguous());
    }

    #[test]
    fn no_host_is_the_clients_to_mend() {
        for text in [None, Some(""), Some(":80"), Some(".")] {
            let request = Request { host: text.map(Into::into), ..Request::default() };
            assert!(missing(&Host, &request).is_client(), "{text:?}");
        }
    }

    #[test]
    fn a_host_that_servers_may_read_in_two_ways_is_the_clients_to_mend() {
        let long = "a".repeat(261);
        for text in [
            "[", "]", "[]", "[::1", "a]b:c]:d", "[é]:1", "é", "%61pi", "a b", "a, b", "a/b", "a?b",
            "a#b", "a\\b", "a:b", "a:1:2", "a:123456", "::1", "a\0", &long,
        ] {
            let target = Request { host: Some(text.into()), ..Request::default() };
            assert!(missing(&Host, &target).is_ambiguous(), "{text}");
            let field = Request { host: Some(text.into()), ..Request::default() };
            assert!(missing(&Host, &field.header("host", text)).is_ambiguous(), "{text}");
        }
        let user = Request::default().header("host", "user@example.com");
        assert!(missing(&Host, &user).is_ambiguous());
        assert!(missing(&Host, &Request::default().header("host", b"\xff")).is_ambiguous());
    }

    #[test]
    fn the_host_of_the_target_and_of_the_field_have_to_be_one() {
        let request = |target: &str, field: &str| {
            let target = Some(target).filter(|target| !target.is_empty()).map(Into::into);
            Request { host: target, ..Request::default() }.header("host", field)
        };
        for (target, field) in [
            ("example.com", "Example.com."),
            ("example.com:443", "example.com"),
            ("u@example.com", "example.com:80"),
            ("", "EXAMPLE.com"),
        ] {
            assert_eq!(
                key(&Host, &request(target, field)),
                host("example.com"),
                "{target} {field}"
            );
        }
        assert_eq!(key(&Host, &request("[::1]:80", "[0::1]")), host("[::1]"));
        for (target, field) in [
            ("x1", "example.com"),
            ("x1", ""),
            ("example.com", "sub.example.com"),
            ("[::1]", "[::2]"),
        ] {
            assert!(missing(&Host, &request(target, field)).is_ambiguous(), "{target} {field}");
        }
    }

    #[test]
    fn two_fields_are_never_one_host() {
        let request = Request::default().header("host", "a").header("host", "a");
        assert!(missing(&Host, &request).is_ambiguous());
        assert!(missing(&First((Host, Path)), &request).is_ambiguous());
    }
}
