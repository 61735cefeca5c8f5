//! Keys as people read them: each value with the name of its extractor.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::print::{PartWords, parts, push_part};
use super::{KeyBuf, tag};

impl KeyBuf {
    /// The key for people to read: `ip:192.0.2.7`, `header:x-api-key=abc,route:/users/{id}`. Special characters are
    /// escaped as in [`print`](Self::print). Parts that no extractor wrote are shown as `print` shows them.
    ///
    /// Keys hold addresses and credentials. Show the text only to readers who may see them.
    ///
    /// ```
    /// use sluicegate::key::KeyBuf;
    ///
    /// assert_eq!(KeyBuf::of(("tenant", "acme")).legible(), "tenant,acme");
    /// ```
    pub fn legible(&self) -> String {
        let mut text = String::new();
        if self.is_digest() || self.is_empty() {
            // The parts of a digest cannot be told apart.
            self.print(&mut text);
            return text;
        }
        let mut parts = parts(self.words(), self.lengths());
        let mut is_tagged = true;
        while let Some(part) = parts.next() {
            let tag = if is_tagged { Tag::of(part) } else { None };
            if matches!(tag, Some(Tag::Alternative)) {
                continue;
            }
            if !text.is_empty() {
                text.push(',');
            }
            let value = |text: &mut String, value: Option<PartWords<'_>>| {
                value.into_iter().for_each(|value| push_part(text, value));
            };
            match tag {
                Some(Tag::Alone(kind)) => text.push_str(&kind),
                Some(Tag::Value(kind)) => {
                    text.push_str(kind);
                    value(&mut text, parts.next());
                }
                Some(Tag::Named(kind)) => {
                    text.push_str(kind);
                    value(&mut text, parts.next());
                    text.push('=');
                    value(&mut text, parts.next());
                }
                Some(Tag::Free { skip }) => {
                    // Only the application knows how many parts it wrote, so what follows is not a tag.
                    is_tagged = false;
                    value(&mut text, parts.by_ref().nth(skip));
                }
                Some(Tag::Alternative) | None => {
                    is_tagged = false;
                    push_part(&mut text, part);
                }
            }
        }
        text
    }
}

/// What an extractor writes first.
enum Tag {
    Alternative,
    /// No part of its own follows.
    Alone(String),
    /// One part follows.
    Value(&'static str),
    /// A name follows, then a value.
    Named(&'static str),
    /// Any number of parts follow. The first `skip` of them are not shown.
    Free {
        skip: usize,
    },
}

impl Tag {
    fn of(part: PartWords<'_>) -> Option<Self> {
        // The longest first part is a prefix length and the bytes of an address.
        let mut bytes = [0; 18];
        let len = bytes.iter_mut().zip(part.bytes()).map(|(to, byte)| *to = byte).count();
        if part.bytes().nth(len).is_some() {
            return None;
        }
        match bytes[..len] {
            [tag::GLOBAL] => Some(Self::Alone("global".into())),
            [tag::CONST | tag::FROM_FN] => Some(Self::Free { skip: 0 }),
            [tag::EXTENSION] => Some(Self::Free { skip: 1 }),
            [tag::METHOD] => Some(Self::Value("method:")),
            [tag::PATH] => Some(Self::Value("path:")),
            [tag::ROUTE] => Some(Self::Value("route:")),
            [tag::HOST] => Some(Self::Value("host:")),
            [tag::HEADER] => Some(Self::Named("header:")),
            [tag::COOKIE] => Some(Self::Named("cookie:")),
            [tag::QUERY] => Some(Self::Named("query:")),
            [tag::CLAIM] => Some(Self::Named("claim:")),
            [tag::FIRST, _] => Some(Self::Alternative),
            [tag::IPV4, bits, a, b, c, d] => {
                let address = Ipv4Addr::new(a, b, c, d);
                Some(Self::Alone(with_bits(format!("ip:{address}"), bits, 32)))
            }
            [tag::IPV6, bits, ..] if len == 10 || len == 18 => {
                let mut octets = [0; 16];
                octets.copy_from_slice(&bytes[2..]);
                let address = Ipv6Addr::from(octets);
                Some(Self::Alone(with_bits(format!("ip:{address}"), bits, 128)))
            }
            [tag] => tag::KeyTag::legible(tag).map(Self::Value),
            _ => None,
        }
    }
}

fn with_bits(address: String, bits: u8, all: u8) -> String {
    if bits == all { address } else { format!("{address}/{bits}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::testing::{Request, key};
    use crate::key::{
        Claim, Claims, Const, Cookie, Extension, First, Global, Header, Host, Ip, Key, Method,
        Path, Query, Route, from_fn,
    };

    fn request() -> Request {
        Request {
            path: "/users/7".into(),
            query: Some("page=two".into()),
            host: Some("api.example.com".into()),
            route: Some("/users/{id}".into()),
            ..Request::from("192.0.2.7")
        }
        .header("x-api-key", "a,b")
        .header("cookie", "session=s1")
        .extension(String::from("acme"))
        .extension(Claims::new().with("customer", "acme"))
    }

    fn read(of: &impl Key<Request>) -> String {
        key(of, &request()).legible()
    }

    #[test]
    fn what_extractors_write_reads_by_their_names() {
        assert_eq!(read(&Ip::peer()), "ip:192.0.2.7");
        assert_eq!(read(&Ip::peer().prefix_v4(24)), "ip:192.0.2.0/24");
        assert_eq!(read(&Header("X-Api-Key")), "header:x-api-key=a%2cb");
        assert_eq!(read(&Cookie("session")), "cookie:session=s1");
        assert_eq!(read(&Query("page")), "query:page=two");
        assert_eq!(read(&Claim("customer")), "claim:customer=acme");
        assert_eq!(read(&Method), "method:GET");
        assert_eq!(read(&Path), "path:/users/7");
        assert_eq!(read(&Route), "route:/users/%7bid%7d");
        assert_eq!(read(&Host), "host:api.example.com");
        assert_eq!(read(&Global), "global");
        assert_eq!(read(&Const("uploads")), "uploads");
        assert_eq!(read(&Extension::<String>::new()), "acme");
        assert_eq!(read(&from_fn(|_: &Request| Some(("a", "b")))), "a,b");
    }

    #[test]
    fn each_tag_has_a_name_for_readers() {
        // Tags of more than one byte.
        let longer = [tag::IPV4, tag::IPV6, tag::FIRST];
        for number in tag::ALL.into_iter().filter(|number| !longer.contains(number)) {
            let text = KeyBuf::of(([number].as_slice(), "a", "b")).legible();
            assert!(!text.starts_with('%'), "{number}: {text}");
        }
    }

    #[test]
    fn networks_of_the_newer_addresses_read_with_their_bits() {
        let request = Request::from("2001:db8:1:2:3::4");
        assert_eq!(key(&Ip::peer(), &request).legible(), "ip:2001:db8:1:2::/64");
    }

    #[test]
    fn several_keys_read_one_after_the_other() {
        assert_eq!(read(&(Ip::peer(), Method)), "ip:192.0.2.7,method:GET");
        let first = First((Header("x-tenant"), Ip::peer()));
        assert_eq!(read(&(Method, first, Global)), "method:GET,ip:192.0.2.7,global");
    }

    #[test]
    fn nobody_poses_as_an_address_in_a_value() {
        let address = key(&Ip::peer(), &request());
        let mut posing = String::new();
        address.print(&mut posing);
        let bytes = [tag::IPV4, 32, 192, 0, 2, 7];
        let posed = Request::default().header("x-api-key", bytes);
        assert_eq!(
            key(&Header("x-api-key"), &posed).legible(),
            format!("header:x-api-key={posing}")
        );
        let written = from_fn(move |_: &Request| Some(("a", bytes.to_vec())));
        assert_eq!(key(&written, &posed).legible(), format!("a,{posing}"));
    }

    #[test]
    fn an_empty_key_and_one_without_tags_read_as_they_print() {
        assert_eq!(KeyBuf::new().legible(), "*");
        assert_eq!(KeyBuf::of(("alice", "", 7_u8)).legible(), "alice,%,%07");
        let long = KeyBuf::of(("x".repeat(100), "b"));
        let mut printed = String::new();
        long.print(&mut printed);
        assert_eq!(long.legible(), printed);
    }
}
