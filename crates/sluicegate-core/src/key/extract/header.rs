//! A header that is sent twice is an error. Neither value is used, because a handler might read the other one.

use super::host::Host;
use super::lowercase::push_lowercase;
use crate::key::path::steps::step;
use crate::key::{Key, KeyBuf, Missing, View, tag};

/// The value of one header field. The case of the name does not matter.
///
/// The field has to be present exactly once. It is unknown which of two fields a handler reads, so a client that
/// sends two is refused with 400, even if the key is [`Optional`](super::Optional). An empty value counts as missing.
/// Spaces and tabs around the value do not count.
///
/// The client chooses the value. The key is safe if something before or after the limit rejects made-up values.
/// Otherwise a client that invents a value for each request has a fresh budget each time.
///
/// The header `host` is the key [`Host`], because requests of HTTP/2 name their host in the target alone.
#[derive(Debug, Clone, Copy)]
pub struct Header<N = &'static str>(pub N);

impl<V: View, N: AsRef<str>> Key<V> for Header<N> {
    fn write(&self, view: &V, key: &mut KeyBuf) -> Result<(), Missing> {
        let name = self.0.as_ref();
        if is_host(name) {
            return Host.write(view, key);
        }
        let mut lines = view.header_lines(name);
        let value = lines.next().map(trimmed).unwrap_or_default();
        if lines.next().is_some() {
            return Err(Missing::ambiguous_named(name, "header"));
        }
        if value.is_empty() {
            return Err(absent(name));
        }
        key.push(&[tag::HEADER]);
        push_lowercase(key, name);
        key.push(value);
        Ok(())
    }
}

/// The value that all lines of the header agree on.
pub(crate) fn header_value<'a, V: View>(view: &'a V, name: &'a str) -> Result<&'a [u8], Missing> {
    let mut lines = view.header_lines(name).map(trimmed);
    let value = lines.next().unwrap_or_default();
    if lines.any(|line| line != value) {
        return Err(Missing::ambiguous_named(name, "header"));
    }
    if value.is_empty() { Err(absent(name)) } else { Ok(value) }
}

/// Whether requests of HTTP/2 say this in their target alone.
pub(crate) fn is_host(name: &str) -> bool {
    name.eq_ignore_ascii_case("host")
}

/// A name that no request can carry is the server's mistake, not the client's.
fn absent(name: &str) -> Missing {
    if is_token(name.as_bytes()) {
        return Missing::client_named(name, "header");
    }
    no_header_name(name)
}

pub(crate) fn no_header_name(name: &str) -> Missing {
    Missing::server_named(
        name,
        "header",
        "that is no header name: it may have letters, digits and !#$%&'*+-.^_`|~, nothing else",
    )
}

/// RFC 9110: `token = 1*tchar`.
pub(crate) fn is_token(name: &[u8]) -> bool {
    let tchar = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !name.is_empty() && name.iter().all(tchar)
}

/// Trims the optional white space of RFC 9110: spaces and tabs at both ends.
pub(crate) fn trimmed(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        step(1);
        value = rest;
    }
    value
}
