//! A request without a framework.

use std::net::IpAddr;

use sluicegate_core::key::{Key, KeyBuf, Missing, View};

#[derive(Default)]
pub(super) struct Request {
    peer: Option<IpAddr>,
    headers: Vec<(String, String)>,
}

impl Request {
    pub(super) fn from(peer: &str) -> Self {
        Self { peer: Some(peer.parse().expect("an address")), ..Self::default() }
    }

    pub(super) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}

/// The key of `request`, which must have one.
pub(super) fn key(of: &impl Key<Request>, request: &Request) -> KeyBuf {
    let mut key = KeyBuf::new();
    of.write(request, &mut key).expect("a key");
    key
}

/// What is missing from `request`.
pub(super) fn missing(of: &impl Key<Request>, request: &Request) -> Missing {
    of.write(request, &mut KeyBuf::new()).expect_err("no key")
}

impl View for Request {
    type Request = Self;

    fn request(&self) -> &Self {
        self
    }

    fn method(&self) -> &str {
        "GET"
    }

    fn path(&self) -> &str {
        "/"
    }

    fn query(&self) -> Option<&str> {
        None
    }

    fn host(&self) -> Option<&str> {
        None
    }

    fn route(&self) -> Option<&str> {
        None
    }

    fn peer(&self) -> Option<IpAddr> {
        self.peer
    }

    fn header_lines<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        let lines = self.headers.iter().filter(|(line, _)| line.eq_ignore_ascii_case(name));
        lines.map(|(_, value)| value.as_bytes())
    }

    fn extension<T: Send + Sync + 'static, O>(&self, _: impl FnOnce(&T) -> O) -> Option<O> {
        None
    }

    fn peer_hint(&self) -> &'static str {
        "use the socket"
    }

    fn route_hint(&self) -> &'static str {
        "use the router"
    }
}
