use std::cell::OnceCell;
use std::fmt;
use std::net::IpAddr;

use actix_web::http::header;
use actix_web::{HttpMessage, HttpRequest};
use sluicegate_core::key::{Key, KeyBuf, Missing, Readings, View};

use crate::routed::Routed;

/// The [`View`] of an actix-web request.
pub struct RequestView<'a> {
    request: &'a HttpRequest,
    /// actix-web puts the pattern together for each question; the view lends it out.
    route: OnceCell<Option<String>>,
    /// The pattern for a path whose slashes are not normalised.
    tidied: OnceCell<Option<String>>,
    readings: Readings,
}

impl<'a> RequestView<'a> {
    /// The view of `request`.
    #[inline]
    pub fn new(request: &'a HttpRequest) -> Self {
        let readings = Readings::new();
        Self { request, route: OnceCell::new(), tidied: OnceCell::new(), readings }
    }
}

/// The key that `key` reads from `request`: the same key that a rule by it uses.
///
/// With it, code can [block](crate::store::Blocks::block_key) a client of a middleware. The request is one that the
/// client has sent, or one made up with what the key reads.
///
/// ```
/// use std::time::Duration;
/// use actix_web::HttpRequest;
/// use sluicegate_actix::adapter::key_of;
/// use sluicegate_actix::store::Blocks;
/// use sluicegate_actix::{Header, Memory};
///
/// /// Blocks the API key of this request for an hour.
/// fn block(request: &HttpRequest, store: &Blocks<Memory>) -> Result<(), Box<dyn std::error::Error>> {
///     let key = key_of(&Header("x-api-key"), request)?;
///     store.block_key(key, Duration::from_secs(3_600)).now()?;
///     Ok(())
/// }
/// ```
///
/// # Errors
///
/// Returns what the request lacks.
pub fn key_of<K>(key: &K, request: &HttpRequest) -> Result<KeyBuf, Missing>
where
    K: for<'a> Key<RequestView<'a>>,
{
    KeyBuf::from_view(key, &RequestView::new(request))
}

impl RequestView<'_> {
    /// The pattern for the path as it is.
    fn pattern(&self) -> Option<&str> {
        self.route.get_or_init(|| Routed::of(self.request).pattern()).as_deref()
    }

    /// The pattern for the path as `NormalizePath` would make it.
    fn tidied_pattern(&self) -> Option<&str> {
        self.tidied.get_or_init(|| Routed::of(self.request).pattern_when_tidied()).as_deref()
    }
}

impl fmt::Debug for RequestView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestView({} {})", self.request.method(), self.request.path())
    }
}

impl View for RequestView<'_> {
    type Request = HttpRequest;

    fn request(&self) -> &HttpRequest {
        self.request
    }

    fn method(&self) -> &str {
        self.request.method().as_str()
    }

    fn path(&self) -> &str {
        self.request.path()
    }

    /// Scopes of actix-web leave the path as it is.
    fn routed_path(&self) -> &str {
        self.path()
    }

    fn readings(&self) -> &Readings {
        &self.readings
    }

    fn query(&self) -> Option<&str> {
        self.request.uri().query()
    }

    fn host(&self) -> Option<&str> {
        match self.request.uri().authority() {
            Some(authority) => Some(authority.as_str()),
            None => self.request.headers().get(header::HOST)?.to_str().ok(),
        }
    }

    /// The pattern of the resource that answers. Guards are not known before actix-web has asked them:
    /// around an app or a scope it is the first pattern that matches the path.
    fn route(&self) -> Option<&str> {
        self.pattern().or_else(|| self.tidied_pattern())
    }

    fn is_route(&self, pattern: &str) -> Option<bool> {
        if self.pattern() == Some(pattern) {
            return Some(true);
        }
        // A resource with several patterns is identified by its first. Comparing the path only with that is not
        // enough.
        let may_be = Routed::of(self.request).may_be(pattern)
            || self.pattern().is_none() && self.tidied_pattern() == Some(pattern);
        if may_be { None } else { Some(false) }
    }

    fn peer(&self) -> Option<IpAddr> {
        self.request.peer_addr().map(|peer| peer.ip())
    }

    fn header_lines<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        self.request.headers().get_all(name).map(|line| line.as_bytes())
    }

    fn extension<T: Send + Sync + 'static, O>(&self, read: impl FnOnce(&T) -> O) -> Option<O> {
        match self.request.extensions().get() {
            Some(value) => Some(read(value)),
            None => self.request.conn_data().map(read),
        }
    }

    fn peer_hint(&self) -> &'static str {
        "bind the server to a TCP socket (a Unix socket tells no address), and give test requests a \
         `.peer_addr(..)`"
    }

    fn route_hint(&self) -> &'static str {
        "the path matches no resource with a pattern: put the limit on the scope or resource, or \
         give what matches none a key with `First((Route, Const(..)))`"
    }
}
