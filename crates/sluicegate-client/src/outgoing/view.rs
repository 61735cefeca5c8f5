use std::fmt;
use std::net::IpAddr;

use ::http::{Extensions, HeaderMap, Method, header};
use sluicegate::adapter::MatchedRoute;
use sluicegate::key::{Readings, View};

use super::request::OutgoingRequest;
use super::target::Target;

/// What keys, conditions and rules see of a request that leaves.
///
/// The route is the [`MatchedRoute`] in the extensions of the request, where the program puts it. There is no peer.
pub struct OutgoingView<'a> {
    method: &'a Method,
    target: Target<'a>,
    headers: &'a HeaderMap,
    extensions: Option<&'a Extensions>,
    readings: Readings,
}

impl<'a> OutgoingView<'a> {
    /// The view of `request`.
    pub fn new(request: &'a impl OutgoingRequest) -> Self {
        Self {
            method: request.method(),
            target: request.target(),
            headers: request.headers(),
            extensions: request.extensions(),
            readings: Readings::new(),
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

    fn routed_path(&self) -> &str {
        self.target.path
    }

    fn readings(&self) -> &Readings {
        &self.readings
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

    fn is_route(&self, pattern: &str) -> Option<bool> {
        Some(self.route() == Some(pattern))
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

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use ::http::Request;
    use sluicegate::condition::{Condition, PathMatches};
    use sluicegate::key::Path;

    use super::*;

    #[test]
    fn many_conditions_parse_a_path_once() {
        let request = Request::get("/".repeat(7_990)).body(()).unwrap();
        let conditions: Vec<_> =
            (0..1_000).map(|number| Path.matches(&format!("/login/{number}"))).collect();
        let least = |conditions: &[_]| {
            let times = (0..5).map(|_| {
                let (view, began) = (OutgoingView::new(&request), Instant::now());
                let holds = conditions.iter().any(|path: &PathMatches| path.holds(&view).unwrap());
                assert!(!holds);
                began.elapsed()
            });
            times.min().unwrap_or(Duration::MAX)
        };
        let (few, many) = (least(&conditions[..10]), least(&conditions));
        // Where each condition parses the path, a thousand take a hundred times as long as ten.
        assert!(many < 20 * few, "{few:?}, {many:?}");
    }
}
