//! A request without a framework, for the tests of this module.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::net::IpAddr;

use super::{Key, KeyBuf, Missing, View};
use crate::key::Readings;

pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) readings: Readings,
    pub(crate) query: Option<String>,
    pub(crate) host: Option<String>,
    pub(crate) route: Option<String>,
    pub(crate) peer: Option<IpAddr>,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) extensions: HashMap<TypeId, Box<dyn Any + Send + Sync>>,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            method: "GET".into(),
            path: "/".into(),
            readings: Readings::new(),
            query: None,
            host: None,
            route: None,
            peer: None,
            headers: Vec::new(),
            extensions: HashMap::new(),
        }
    }
}

impl Request {
    pub(crate) fn from(peer: &str) -> Self {
        Self { peer: Some(peer.parse().expect("an address")), ..Self::default() }
    }

    /// Adds a line.
    pub(crate) fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name.into(), value.as_ref().into()));
        self
    }

    pub(crate) fn extension<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.extensions.insert(TypeId::of::<T>(), Box::new(value));
        self
    }
}

/// The key of `request`, which must have one.
pub(crate) fn key(of: &impl Key<Request>, request: &Request) -> KeyBuf {
    let mut key = KeyBuf::new();
    of.write(request, &mut key).expect("a key");
    key
}

/// What is missing from `request`.
pub(crate) fn missing(of: &impl Key<Request>, request: &Request) -> Missing {
    of.write(request, &mut KeyBuf::new()).expect_err("no key")
}

impl View for Request {
    type Request = Self;

    fn request(&self) -> &Self {
        self
    }

    fn method(&self) -> &str {
        &self.method
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn routed_path(&self) -> &str {
        &self.path
    }

    fn readings(&self) -> &Readings {
        &self.readings
    }

    fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    fn route(&self) -> Option<&str> {
        self.route.as_deref()
    }

    fn is_route(&self, pattern: &str) -> Option<bool> {
        Some(self.route() == Some(pattern))
    }

    fn peer(&self) -> Option<IpAddr> {
        self.peer
    }

    fn header_lines<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        let lines: Vec<&[u8]> = self
            .headers
            .iter()
            .filter(|(line, _)| line.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_slice())
            .collect();
        lines.into_iter()
    }

    fn extension<T: Send + Sync + 'static, O>(&self, read: impl FnOnce(&T) -> O) -> Option<O> {
        self.extensions.get(&TypeId::of::<T>())?.downcast_ref().map(read)
    }

    fn peer_hint(&self) -> &'static str {
        "use the socket"
    }

    fn route_hint(&self) -> &'static str {
        "use the router"
    }
}
