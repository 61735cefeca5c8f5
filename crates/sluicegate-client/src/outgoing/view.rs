use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use ::http::{Extensions, HeaderMap, Method, header};
use sluicegate::adapter::MatchedRoute;
use sluicegate::key::{Key, KeyBuf, Missing, Readings, View};

use super::request::{OutgoingRequest, Target};

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

/// The origin that a request goes to: scheme, host in lower case, and port (RFC 6454).
///
/// Requests that name no host, as those to a channel of tonic, are all of one origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin;

impl Origin {
    /// Scheme, host and port of the origin of `target`.
    pub(crate) fn parts(target: Target<'_>) -> (&str, Cow<'_, str>, &str) {
        let (host, port) = target.host_and_port();
        let host = match host.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => Cow::Owned(host.to_ascii_lowercase()),
            false => Cow::Borrowed(host),
        };
        (target.scheme, host, port.unwrap_or(""))
    }
}

impl Key<OutgoingView<'_>> for Origin {
    fn write(&self, view: &OutgoingView<'_>, key: &mut KeyBuf) -> Result<(), Missing> {
        let (scheme, host, port) = Self::parts(view.target());
        [scheme, &*host, port].iter().for_each(|part| key.push(part.as_bytes()));
        Ok(())
    }
}

/// Any key of outgoing requests, erased.
#[derive(Clone)]
pub(crate) struct AnyKey(Arc<WriteFn>);

type WriteFn = dyn Fn(&OutgoingView<'_>, &mut KeyBuf) -> Result<(), Missing> + Send + Sync;

impl AnyKey {
    /// The key that `key` reads.
    pub(crate) fn new<K>(key: K) -> Self
    where
        K: for<'a> Key<OutgoingView<'a>> + Send + Sync + 'static,
    {
        Self(Arc::new(move |view: &OutgoingView<'_>, buf: &mut KeyBuf| key.write(view, buf)))
    }
}

impl Key<OutgoingView<'_>> for AnyKey {
    fn write(&self, view: &OutgoingView<'_>, key: &mut KeyBuf) -> Result<(), Missing> {
        (self.0)(view, key)
    }
}

impl fmt::Debug for AnyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyKey")
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use ::http::Request;
    use sluicegate::Header;
    use sluicegate::condition::{Condition, PathMatches};
    use sluicegate::key::{Const, Path, from_fn};

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

    fn key<K>(key: K, uri: &str) -> KeyBuf
    where
        K: for<'a> Key<OutgoingView<'a>> + Send + Sync + 'static,
    {
        let request = Request::get(uri).header("x-tenant", "a").body(()).unwrap();
        KeyBuf::from_view(&AnyKey::new(key), &OutgoingView::new(&request)).unwrap()
    }

    #[test]
    fn every_spelling_of_an_origin_is_one_key() {
        let origin = key(Origin, "https://api.example/a?b=c");
        assert_eq!(key(Origin, "https://API.example:443/"), origin);
        for other in ["http://api.example/", "https://api.example:8443/", "https://example/", "/a"]
        {
            assert_ne!(key(Origin, other), origin, "{other}");
        }
    }

    #[test]
    fn keys_of_the_workspace_read_outgoing_requests() {
        let tenant = from_fn(|view: &OutgoingView<'_>| Some(view.headers().len() as u64));
        let all = (Origin, Header("x-tenant"), Const("v1"), tenant);
        assert_eq!(key(all, "http://a/"), key(all, "http://a/b"));
        assert_ne!(key(all, "http://a/"), key(all, "http://b/"));
    }
}
