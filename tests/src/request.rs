use std::net::IpAddr;

use sluicegate_core::adapter::Charge;
use sluicegate_core::key::{Claims, Key, KeyBuf, Missing, Readings, View};
use sluicegate_core::rule::Rule;

/// A request without a framework. Its route is its path.
#[derive(Debug, Clone)]
pub struct Request {
    /// The method.
    pub method: String,
    /// The path, not decoded.
    pub path: String,
    /// The query, not decoded.
    pub query: Option<String>,
    /// The host in the target.
    pub host: Option<String>,
    /// The address of the client.
    pub peer: Option<IpAddr>,
    /// The header lines.
    pub headers: Vec<(String, String)>,
    /// The claims in the extensions.
    pub claims: Claims,
    /// The readings of the path. A request whose path changes needs new ones.
    pub readings: Readings,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            method: "GET".into(),
            path: "/".into(),
            query: None,
            host: None,
            peer: Some([192, 0, 2, 1].into()),
            headers: Vec::new(),
            claims: Claims::new(),
            readings: Readings::new(),
        }
    }
}

impl Request {
    /// A request from this address.
    ///
    /// # Panics
    ///
    /// If `peer` is not an address.
    #[must_use]
    pub fn from(peer: &str) -> Self {
        Self { peer: Some(peer.parse().expect("an address")), ..Self::default() }
    }

    /// Adds a header line.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// What the request is charged to `rule`.
    ///
    /// # Panics
    ///
    /// If the request lacks something that the rule needs.
    pub fn charge(&self, rule: &impl Rule<Self>) -> Charge {
        let mut charge = Charge::new();
        rule.charge(self, &mut charge).expect("the request has all that the rule needs");
        charge
    }

    /// The key of the request, or what is missing.
    ///
    /// # Errors
    ///
    /// Says what is missing.
    pub fn key(&self, key: &impl Key<Self>) -> Result<KeyBuf, Missing> {
        let mut written = KeyBuf::new();
        key.write(self, &mut written)?;
        Ok(written)
    }
}

/// The names of the limits that are charged.
pub fn names(charge: &Charge) -> Vec<String> {
    charge.debits().map(|debit| debit.limit.name().to_string()).collect()
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
        Some(&self.path)
    }

    fn is_route(&self, pattern: &str) -> Option<bool> {
        Some(self.route() == Some(pattern))
    }

    fn peer(&self) -> Option<IpAddr> {
        self.peer
    }

    fn header_lines<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        let lines = self.headers.iter().filter(move |(own, _)| own.eq_ignore_ascii_case(name));
        lines.map(|(_, value)| value.as_bytes())
    }

    fn extension<T: Send + Sync + 'static, O>(&self, read: impl FnOnce(&T) -> O) -> Option<O> {
        let claims: &dyn std::any::Any = &self.claims;
        claims.downcast_ref().map(read)
    }

    fn peer_hint(&self) -> &'static str {
        "use the socket"
    }

    fn route_hint(&self) -> &'static str {
        "there is always a route"
    }
}
