use std::any::Any;
use std::net::IpAddr;

use sluicegate_core::cost::llm::EstimatedTokens;
use sluicegate_core::key::{Claims, View};

/// The description of a request by a client of the HTTP API, the descriptors of Envoy, or the command line.
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
    /// How many tokens of a language model it may use.
    pub tokens: Option<EstimatedTokens>,
}

/// The address of a client as proxies write it. The zone of a link-local address, as in `fe80::1%eth0`, is left out: it
/// names an interface of the proxy.
pub(crate) fn address(text: &str) -> Option<IpAddr> {
    let address = match text.split_once('%') {
        None => text.parse().ok()?,
        Some((_, "")) => return None,
        Some((address, _)) => IpAddr::V6(address.parse().ok()?),
    };
    Some(address.to_canonical())
}

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
        let tokens = self.tokens.as_ref().map(|tokens| tokens as &dyn Any);
        let all = [Some(&self.claims as &dyn Any), tokens];
        all.into_iter().flatten().find_map(<dyn Any>::downcast_ref).map(read)
    }

    fn peer_hint(&self) -> &'static str {
        "describe the request with `ip`, or with `remote_address` in a descriptor of Envoy"
    }

    fn route_hint(&self) -> &'static str {
        "describe the request with `route`"
    }

    fn tokens_hint(&self) -> &'static str {
        "describe the request with `tokens`, or give the `cost` of the rule a `default`"
    }
}
