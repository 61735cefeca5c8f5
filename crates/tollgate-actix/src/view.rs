use std::cell::OnceCell;
use std::fmt;
use std::net::IpAddr;

use actix_web::http::header;
use actix_web::{HttpMessage, HttpRequest};
use tollgate_core::View;

/// The [`View`] of an actix-web request.
pub struct RequestView<'a> {
    request: &'a HttpRequest,
    /// actix-web puts the pattern together for whoever asks; the view lends it out.
    route: OnceCell<Option<String>>,
}

impl<'a> RequestView<'a> {
    /// The view of `request`.
    pub fn new(request: &'a HttpRequest) -> Self {
        Self { request, route: OnceCell::new() }
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

    fn query(&self) -> Option<&str> {
        self.request.uri().query()
    }

    fn host(&self) -> Option<&str> {
        match self.request.uri().authority() {
            Some(authority) => Some(authority.as_str()),
            None => self.request.headers().get(header::HOST)?.to_str().ok(),
        }
    }

    fn route(&self) -> Option<&str> {
        self.route.get_or_init(|| self.request.match_pattern()).as_deref()
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
