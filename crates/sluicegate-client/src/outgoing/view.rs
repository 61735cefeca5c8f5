use std::fmt;
use std::net::IpAddr;

use ::http::{Extensions, HeaderMap, Method, header};
use sluicegate::adapter::MatchedRoute;
use sluicegate::key::View;

use super::request::OutgoingRequest;
use super::target::Target;

/// What keys, conditions and rules see of a request that leaves.
///
/// The route is the [`MatchedRoute`] in the extensions of the request, where the program puts it. There is no peer.
#[derive(Clone, Copy)]
pub struct OutgoingView<'a> {
    method: &'a Method,
    target: Target<'a>,
    headers: &'a HeaderMap,
    extensions: Option<&'a Extensions>,
}

impl<'a> OutgoingView<'a> {
    /// The view of `request`.
    pub fn new(request: &'a impl OutgoingRequest) -> Self {
        Self {
            method: request.method(),
            target: request.target(),
            headers: request.headers(),
            extensions: request.extensions(),
        }
    }

    /// Where the request goes.
    pub const fn target(&self) -> Target<'a> {
        self.target
    }

    /// The header of the request.
    pub const fn headers(&self) -> &'a HeaderMap {
        self.headers
    }
}

impl fmt::Debug for OutgoingView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OutgoingView({} {})", self.method, self.target.path)
    }
}

impl View for OutgoingView<'_> {
    type Request = Self;

    fn request(&self) -> &Self::Request {
        self
    }

    fn method(&self) -> &str {
        self.method.as_str()
    }

    fn path(&self) -> &str {
        self.target.path
    }

    fn query(&self) -> Option<&str> {
        self.target.query
    }

    fn host(&self) -> Option<&str> {
        match self.target.authority {
            "" => self.headers.get(header::HOST)?.to_str().ok(),
            authority => Some(authority),
        }
    }

    fn route(&self) -> Option<&str> {
        self.extensions?.get::<MatchedRoute>().map(|route| &*route.0)
    }

    fn peer(&self) -> Option<IpAddr> {
        None
    }

    fn header_lines<'b>(&'b self, name: &'b str) -> impl DoubleEndedIterator<Item = &'b [u8]> {
        self.headers.get_all(name).into_iter().map(|line| line.as_bytes())
    }

    fn extension<T: Send + Sync + 'static, O>(&self, read: impl FnOnce(&T) -> O) -> Option<O> {
        self.extensions?.get().map(read)
    }

    fn peer_hint(&self) -> &'static str {
        "requests that leave have no peer; use `Origin` or `Host`"
    }

    fn route_hint(&self) -> &'static str {
        "where requests are made, add `request.extensions_mut().insert(sluicegate::adapter::MatchedRoute(pattern.into()))`"
    }
}
