use std::any::Any;
use std::net::IpAddr;

use sluicegate_core::key::{Claims, View};

/// A request as somebody describes it: a client of the HTTP API, the descriptors of Envoy, or the command line.
///
/// Rules see it like a request of their own. What the description leaves out is missing.
#[derive(Debug, Clone, Default)]
pub struct DescribedRequest {
    /// The method, such as `GET`.
    pub method: String,
    /// The path without the query, such as `/users/7`.
    pub path: String,
    /// The query without its `?`.
    pub query: Option<String>,
    /// The host that the request is for.
    pub host: Option<String>,
    /// The pattern of the route, such as `/users/{id}`.
    pub route: Option<String>,
    /// The address of the client.
    pub peer: Option<IpAddr>,
    /// Header fields, in order.
    pub headers: Vec<(String, String)>,
    /// What the authentication of the application found out about the client.
    pub claims: Claims,
}

/// Only the description has a peer and a route, so it is what has to say more.
const HINT: &str = "describe the request with it";

impl View for DescribedRequest {
    type Request = ();

    fn request(&self) -> &() {
        &()
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
        self.route.as_deref()
    }

    fn peer(&self) -> Option<IpAddr> {
        self.peer
    }

    fn header_lines<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        let lines = self.headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        lines.map(|(_, value)| value.as_bytes())
    }

    fn extension<T: Send + Sync + 'static, O>(&self, read: impl FnOnce(&T) -> O) -> Option<O> {
        (&self.claims as &dyn Any).downcast_ref().map(read)
    }

    fn peer_hint(&self) -> &'static str {
        HINT
    }

    fn route_hint(&self) -> &'static str {
        HINT
    }
}
