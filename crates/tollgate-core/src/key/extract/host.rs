use std::net::Ipv6Addr;

use super::lowercase::push_lowercase;
use crate::key::{Key, KeyBuf, Missing, View, tag};

/// The host that the request is for, in lower case, without port and without the dot that may end
/// a complete name; an IPv6 literal however it is spelled.
///
/// Clients choose hosts: this is a fair key where requests for hosts that are not served are turned
/// away, by the proxy in front or by the router.
#[derive(Debug, Clone, Copy)]
pub struct Host;

impl<V: View> Key<V> for Host {
    fn write(&self, view: &V, key: &mut KeyBuf) -> Result<(), Missing> {
        let name = host_name(view.host().unwrap_or_default());
        if name.is_empty() {
            return Err(Missing::client_named("host", "header"));
        }
        key.push(&[tag::HOST]);
        match host_address(name) {
            // Not canonical: a literal in brackets is another host than the bare IPv4 address.
            Some(address) => key.push(&address.octets()),
            None => push_lowercase(key, name),
        }
        Ok(())
    }
}

/// `authority` without user, port and final dot.
pub(crate) fn host_name(authority: &str) -> &str {
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let bracket = host.rfind(']').map_or(0, |bracket| bracket + 1);
    let port = host[bracket..].find(':').map_or(host.len(), |colon| bracket + colon);
    let host = &host[..port];
    host.strip_suffix('.').unwrap_or(host)
}

/// The address that stands there in brackets.
pub(crate) fn host_address(name: &str) -> Option<Ipv6Addr> {
    name.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::testing::{Request, key, missing};

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
    fn no_host_is_the_clients_to_mend() {
        for text in [None, Some(""), Some(":80"), Some(".")] {
            let request = Request { host: text.map(Into::into), ..Request::default() };
            assert!(missing(&Host, &request).is_client(), "{text:?}");
        }
    }

    #[test]
    fn a_garbled_host_is_some_key() {
        for text in ["[", "]", "[]", "[::1", "a]b:c]:d", "[é]:1", "é", "@@x"] {
            host(text);
        }
    }
}
