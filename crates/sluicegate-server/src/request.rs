use std::any::Any;
use std::cell::OnceCell;
use std::cmp::Ordering;
use std::net::IpAddr;

use sluicegate_core::adapter::step;
use sluicegate_core::key::{Claims, Readings, View};
use sluicegate_llm::EstimatedTokens;

/// The description of a request by a client of the HTTP API, the descriptors of Envoy, or the command line.
///
/// Rules see its [`view`](Self::view) like that of a request. What the description leaves out is missing.
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
    /// Header fields, in order. A value may be any bytes.
    pub headers: Vec<(String, Vec<u8>)>,
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

impl DescribedRequest {
    /// Sets the path and the query to those of a request target (RFC 9112, section 3.2), as a client may have written it:
    /// with the scheme and the host of a request to a proxy, or with a fragment, which frameworks drop before they route.
    /// Without a path, it is `/`.
    pub fn set_target(&mut self, target: &str) {
        let target = target.split('#').next().unwrap_or_default();
        let (path, query) = target.split_once('?').unzip();
        let path = path.unwrap_or(target);
        let path = match path.split_once("://").filter(|_| !path.starts_with('/')) {
            None => path,
            Some((_, behind)) => behind.find('/').map_or("", |at| &behind[at..]),
        };
        path_or_root(path).clone_into(&mut self.path);
        self.query = query.map(str::to_owned);
    }

    /// What rules see of it. One view is for all rules of a decision: it parses the path once.
    pub fn view(&self) -> impl View + '_ {
        DescribedView { request: self, readings: Readings::new(), by_name: OnceCell::new() }
    }
}

/// What rules see of a request that is described.
struct DescribedView<'a> {
    request: &'a DescribedRequest,
    readings: Readings,
    /// The header fields by name, and those of a name in order, so that each rule finds its own among many. The spaces
    /// around a value are not a part of it, and each rule would go through them again.
    by_name: OnceCell<Vec<(&'a str, &'a [u8])>>,
}

impl<'a> DescribedView<'a> {
    fn by_name(&self) -> &[(&'a str, &'a [u8])] {
        self.by_name.get_or_init(|| {
            let fields = self.request.headers.iter();
            let mut fields: Vec<_> =
                fields.map(|(name, value)| (name.as_str(), trimmed(value))).collect();
            fields.sort_by(|(one, _), (other, _)| ignoring_case(one, other));
            fields
        })
    }
}

/// The value without the spaces and tabs around it.
pub(crate) fn trimmed(value: &[u8]) -> &[u8] {
    let is_value = |byte: &u8| !matches!(byte, b' ' | b'\t');
    let begin = value.iter().position(is_value).unwrap_or(value.len());
    let end = value.iter().rposition(is_value).map_or(begin, |last| last + 1);
    step(value.len() - (end - begin));
    &value[begin..end]
}

fn path_or_root(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}

fn ignoring_case(one: &str, other: &str) -> Ordering {
    let (one, other) = (one.bytes(), other.bytes());
    one.map(|byte| byte.to_ascii_lowercase()).cmp(other.map(|byte| byte.to_ascii_lowercase()))
}

impl View for DescribedView<'_> {
    type Request = ();

    fn request(&self) -> &() {
        &()
    }

    fn method(&self) -> &str {
        &self.request.method
    }

    fn path(&self) -> &str {
        &self.request.path
    }

    fn routed_path(&self) -> &str {
        &self.request.path
    }

    fn readings(&self) -> &Readings {
        &self.readings
    }

    fn query(&self) -> Option<&str> {
        self.request.query.as_deref()
    }

    fn host(&self) -> Option<&str> {
        self.request.host.as_deref()
    }

    fn route(&self) -> Option<&str> {
        self.request.route.as_deref()
    }

    fn is_route(&self, pattern: &str) -> Option<bool> {
        Some(self.route() == Some(pattern))
    }

    fn peer(&self) -> Option<IpAddr> {
        self.request.peer
    }

    fn header_lines<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        let fields = self.by_name();
        let begin = fields.partition_point(|(other, _)| ignoring_case(other, name).is_lt());
        let behind =
            fields[begin..].partition_point(|(other, _)| ignoring_case(other, name).is_eq());
        fields[begin..begin + behind].iter().map(|(_, value)| *value)
    }

    fn extension<T: Send + Sync + 'static, O>(&self, read: impl FnOnce(&T) -> O) -> Option<O> {
        let tokens = self.request.tokens.as_ref().map(|tokens| tokens as &dyn Any);
        let all = [Some(&self.request.claims as &dyn Any), tokens];
        all.into_iter().flatten().find_map(<dyn Any>::downcast_ref).map(read)
    }

    fn peer_hint(&self) -> &'static str {
        "describe the request with `ip`, or with `remote_address` in a descriptor of Envoy"
    }

    fn route_hint(&self) -> &'static str {
        "describe the request with `route`"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_read_in_every_form_that_a_client_may_send() {
        for (target, path, query) in [
            ("/login", "/login", None),
            ("/login?a=b?c", "/login", Some("a=b?c")),
            ("/login#x", "/login", None),
            ("/login#x?a=b", "/login", None),
            ("/login?a=b#x", "/login", Some("a=b")),
            ("http://host/login", "/login", None),
            ("HTTPS://user@host:80/login?a#b", "/login", Some("a")),
            ("http://host", "/", None),
            ("http://host?a=b", "/", Some("a=b")),
            ("/go?to=http://host/login", "/go", Some("to=http://host/login")),
            ("/go/http://host/login", "/go/http://host/login", None),
            ("", "/", None),
            ("?a", "/", Some("a")),
            ("#a", "/", None),
            ("*", "*", None),
            ("login", "login", None),
        ] {
            let mut request = DescribedRequest::default();
            request.set_target(target);
            assert_eq!(
                (request.path.as_str(), request.query.as_deref()),
                (path, query),
                "{target}"
            );
        }
    }
}
