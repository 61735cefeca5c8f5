//! The addresses in a forwarding header, read from the right: from the nearest proxy towards the client.
//!
//! Everything here reads from the right, including quotes. What a client wrote is on the left of what the proxies
//! added, so an unbalanced quote from the client can spoil only the client's own part.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::extract::trimmed;

/// How a header writes its hops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Addresses separated by commas: `x-forwarded-for`, and headers that hold a single address.
    List,
    /// `Forwarded`, RFC 7239.
    Forwarded,
}

/// The hops in `lines`, nearest first; `None` for a hop that does not tell its address.
///
/// An empty element counts as a hop that does not tell its address. It may come from a proxy that had no address to
/// add, and such a proxy did not write what is left of it.
pub(super) fn hops<'a>(
    lines: impl DoubleEndedIterator<Item = &'a [u8]>,
    form: Form,
) -> impl Iterator<Item = Option<IpAddr>> {
    lines.rev().flat_map(move |line| {
        rsplit(line, b',').map(move |element| match form {
            Form::List => address(element),
            Form::Forwarded => forwarded_for(element).and_then(address),
        })
    })
}

/// An address with or without port, IPv6 with or without brackets. IPv4-mapped IPv6 becomes IPv4.
fn address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(trimmed(text)).ok()?;
    let address = if let Some(bracketed) = text.strip_prefix('[') {
        let (v6, rest) = bracketed.split_once(']')?;
        let port = rest.strip_prefix(':').is_some_and(is_port);
        (port || rest.is_empty()).then_some(())?;
        v6.parse::<Ipv6Addr>().ok()?.into()
    } else if let Ok(address) = text.parse::<IpAddr>() {
        address
    } else {
        let (v4, port) = text.split_once(':')?;
        is_port(port).then_some(())?;
        v4.parse::<Ipv4Addr>().ok()?.into()
    };
    Some(address.to_canonical())
}

/// The digits of a port, or the obfuscated port that RFC 7239 allows.
fn is_port(port: &str) -> bool {
    match port.strip_prefix('_') {
        Some(name) => {
            let obfuscated = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            !name.is_empty() && name.bytes().all(obfuscated)
        }
        None => (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

/// The value of the only `for` in an element of `Forwarded`.
///
/// A quoted pair within the value is not decoded, so the value does not parse. No address needs one.
fn forwarded_for(element: &[u8]) -> Option<&[u8]> {
    let mut values = rsplit(element, b';').filter_map(|pair| {
        let (name, value) = trimmed(pair).split_at_checked(4)?;
        name.eq_ignore_ascii_case(b"for=").then_some(value)
    });
    let value = values.next()?;
    if values.next().is_some() {
        return None;
    }
    match value {
        [b'"', inner @ .., b'"'] => Some(inner),
        _ => Some(value),
    }
}

/// Splits at each `separator` outside of quotes, from the right.
fn rsplit(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut quoted = false;
        for (at, &byte) in text.iter().enumerate().rev() {
            if byte == b'"' && !(quoted && is_escaped(text, at)) {
                quoted = !quoted;
            } else if byte == separator && !quoted {
                rest = Some(&text[..at]);
                return Some(&text[at + 1..]);
            }
        }
        rest = None;
        Some(text)
    })
}

/// Whether an odd number of backslashes precedes `at`.
fn is_escaped(text: &[u8], at: usize) -> bool {
    text[..at].iter().rev().take_while(|&&byte| byte == b'\\').count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str], form: Form) -> Vec<Option<String>> {
        hops(lines.iter().map(|line| line.as_bytes()), form)
            .map(|hop| hop.map(|address| address.to_string()))
            .collect()
    }

    fn list(line: &str) -> Option<String> {
        read(&[line], Form::List).swap_remove(0)
    }

    fn forwarded(line: &str) -> Option<String> {
        read(&[line], Form::Forwarded).swap_remove(0)
    }

    #[test]
    fn ports_and_brackets_parse() {
        for text in
            ["192.0.2.1", "192.0.2.1:5678", " 192.0.2.1\t", "::ffff:192.0.2.1", "192.0.2.1:_x"]
        {
            assert_eq!(list(text).as_deref(), Some("192.0.2.1"), "{text}");
        }
        for text in ["2001:db8::1", "[2001:db8::1]", "[2001:DB8::1]:443", "[2001:db8:0::1]:_a-b.c"]
        {
            assert_eq!(list(text).as_deref(), Some("2001:db8::1"), "{text}");
        }
    }

    #[test]
    fn what_does_not_tell_its_address_is_none() {
        for text in [
            "",
            "unknown",
            "_hidden",
            "192.0.2",
            "192.0.2.1:",
            "192.0.2.1:x",
            "192.0.2.1:123456",
            "192.0.2.1:+1",
            "192.0.2.1:_",
            "[192.0.2.1]",
            "[2001:db8::1",
            "[2001:db8::1]443",
            "[2001:db8::1]:",
            "fe80::1%eth0",
            "\"192.0.2.1\"",
            "192.0.2.01",
            "192.0.2.1 192.0.2.2",
        ] {
            assert_eq!(list(text), None, "{text}");
        }
        assert_eq!(read(&["192.0.2.1,"], Form::List)[0], None);
    }

    #[test]
    fn hops_come_from_the_right_over_all_lines_in_order() {
        let hops = read(&["192.0.2.1, 192.0.2.2", "x", "192.0.2.3 ,192.0.2.4"], Form::List);
        let hops: Vec<_> = hops.iter().map(|hop| hop.as_deref().unwrap_or("-")).collect();
        assert_eq!(hops, ["192.0.2.4", "192.0.2.3", "-", "192.0.2.2", "192.0.2.1"]);
    }

    #[test]
    fn forwarded_is_read_by_rfc_7239() {
        for text in [
            "for=192.0.2.43",
            "For=\"192.0.2.43:47011\"",
            "for=192.0.2.43;proto=http;by=203.0.113.43",
            "by=\"_a,b;for=1.1.1.1\" ; FOR=\"192.0.2.43\";host=\"a\\\",b\"",
        ] {
            assert_eq!(forwarded(text).as_deref(), Some("192.0.2.43"), "{text}");
        }
        assert_eq!(
            forwarded("for=\"[2001:db8:cafe::17]:4711\"").as_deref(),
            Some("2001:db8:cafe::17")
        );
        for text in [
            "for=unknown",
            "for=\"_gazonk\"",
            "proto=https",
            "for=192.0.2.1;for=192.0.2.1",
            "192.0.2.1",
            "for = 192.0.2.1",
            "for=",
            "for=\"192.0.2\\.1\"",
            "for=\"192.0.2.1",
            "for=\"",
        ] {
            assert_eq!(forwarded(text), None, "{text}");
        }
    }

    #[test]
    fn an_open_quote_on_the_left_spoils_nothing_on_the_right() {
        for left in ["for=\"1.1.1.1", "\"", "\\\"", "for=\"a\\", "\"\\\\"] {
            let line = format!("{left}, for=\"[2001:db8::1]:443\";by=\"x,y\", for=192.0.2.1");
            let hops = read(&[&line], Form::Forwarded);
            assert_eq!(hops[0].as_deref(), Some("192.0.2.1"), "{line}");
            assert_eq!(hops[1].as_deref(), Some("2001:db8::1"), "{line}");
        }
    }
}
