//! A request without a framework, and its charges, for tests.

use std::net::IpAddr;

use sluicegate_core::adapter::Charge;
use sluicegate_core::key::{Claims, View};
use sluicegate_core::rule::Rule;

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: Option<String>,
    pub(crate) host: Option<String>,
    pub(crate) peer: IpAddr,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) claims: Claims,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            method: "GET".into(),
            path: "/".into(),
            query: None,
            host: None,
            peer: [192, 0, 2, 1].into(),
            headers: Vec::new(),
            claims: Claims::new(),
        }
    }
}

impl Request {
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// What the request is charged to `rule`.
    pub(crate) fn charge(&self, rule: &impl Rule<Self>) -> Charge {
        let mut charge = Charge::new();
        rule.charge(self, &mut charge).expect("all that the rule asks for");
        charge
    }
}

/// The names of the limits that are charged.
pub(crate) fn names(charge: &Charge) -> Vec<String> {
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

    fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    fn route(&self) -> Option<&str> {
        Some(&self.path)
    }

    fn peer(&self) -> Option<IpAddr> {
        Some(self.peer)
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
        "there is always a peer"
    }

    fn route_hint(&self) -> &'static str {
        "there is always a route"
    }
}
