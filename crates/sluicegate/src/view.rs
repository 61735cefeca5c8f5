//! The view of an HTTP request, and the framework that it comes from. Layers and services know their framework by a
//! type parameter, because it determines the type of response bodies.

use std::cell::OnceCell;
use std::fmt;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::sync::Arc;

use http::{Extensions, Request, Response, Uri, header};
use sluicegate_core::key::Readings;
use sluicegate_core::key::View;

use crate::body::Body;
use crate::respond::Problem;

/// What a framework leaves in a request's extensions about the connection and the route.
///
/// [`Plain`] reads this crate's own [`Peer`] and [`MatchedRoute`]; `sluicegate-axum` reads what axum
/// leaves there.
pub trait Framework {
    /// How refused requests are answered by default.
    type Respond: Default;

    /// The address of the connection's other end.
    fn peer(extensions: &Extensions) -> Option<IpAddr>;

    /// The pattern of the route that matched.
    fn route(extensions: &Extensions) -> Option<&str>;

    /// The URI as the client sent it, where the framework changes that of the request on the way to a
    /// nested router.
    fn original_uri(extensions: &Extensions) -> Option<&Uri> {
        let _ = extensions;
        None
    }

    /// The line to add where [`peer`](Self::peer) has nothing to say.
    const PEER_HINT: &'static str;

    /// The line to add where [`route`](Self::route) has nothing to say.
    const ROUTE_HINT: &'static str;
}

/// What the body of a response that has passed a layer becomes in a framework: [`Body`] itself, unless the
/// framework has one type for all bodies.
pub trait FrameworkBody<B>: Framework {
    /// The body of responses that have passed the layer.
    type Body;

    /// `body`, as that.
    fn body(body: Body<B>) -> Self::Body;

    /// The body of the service inside, with which nothing is held, as that. Most responses have one: a framework
    /// with one type for all bodies saves the wrapping here.
    #[inline]
    fn inner(body: B) -> Self::Body {
        Self::body(Body::new(body))
    }
}

/// What closures for refusals may return in a framework.
#[diagnostic::on_unimplemented(
    message = "a closure for refusals may not return `{T}` here",
    label = "not a response for this service"
)]
pub trait FrameworkAnswer<T, ResBody>: Framework {
    /// `answer`, as a response.
    fn answer(answer: T) -> Response<Body<ResBody>>;
}

/// No framework: the server itself leaves a [`Peer`] and a [`MatchedRoute`] in the request's
/// extensions.
#[derive(Debug, Clone, Copy)]
pub struct Plain;

/// The address of the connection's other end, for [`Ip`](crate::Ip) to read.
///
/// ```
/// use sluicegate::adapter::Peer;
///
/// let mut request = http::Request::new(());
/// // Where the connection is accepted:
/// let address: std::net::SocketAddr = "192.0.2.7:50123".parse().unwrap();
/// request.extensions_mut().insert(Peer(address.ip()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

/// The pattern of the route that matched, for [`Route`](crate::Route) to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchedRoute(pub Arc<str>);

impl Framework for Plain {
    type Respond = Problem;

    fn peer(extensions: &Extensions) -> Option<IpAddr> {
        extensions.get::<Peer>().map(|peer| peer.0)
    }

    fn route(extensions: &Extensions) -> Option<&str> {
        extensions.get::<MatchedRoute>().map(|route| &*route.0)
    }

    const PEER_HINT: &'static str = "where connections are accepted, add `request.extensions_mut().insert(sluicegate::adapter::Peer(address.ip()))`; in an axum router, use the layer of the crate sluicegate-axum instead";

    const ROUTE_HINT: &'static str = "in the router, add `request.extensions_mut().insert(sluicegate::adapter::MatchedRoute(pattern.into()))`";
}

impl<B> FrameworkBody<B> for Plain {
    type Body = Body<B>;

    #[inline]
    fn body(body: Body<B>) -> Body<B> {
        body
    }
}

impl<T: Into<Body<ResBody>>, ResBody> FrameworkAnswer<Response<T>, ResBody> for Plain {
    fn answer(answer: Response<T>) -> Response<Body<ResBody>> {
        answer.map(Into::into)
    }
}

/// The [`View`] of an `http` request.
pub struct HttpView<'a, B, W = Plain> {
    request: &'a Request<B>,
    /// The path as the client sent it, and the one left to route. Conditions of many rules ask for them, and each
    /// costs a search in the URI or in the extensions.
    path: OnceCell<&'a str>,
    routed_path: OnceCell<&'a str>,
    readings: Readings,
    framework: PhantomData<W>,
}

impl<'a, B, W> HttpView<'a, B, W> {
    /// The view of `request`.
    #[inline]
    pub fn new(request: &'a Request<B>) -> Self {
        Self {
            request,
            path: OnceCell::new(),
            routed_path: OnceCell::new(),
            readings: Readings::new(),
            framework: PhantomData,
        }
    }
}

impl<B, W> fmt::Debug for HttpView<'_, B, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpView({} {})", self.request.method(), self.request.uri().path())
    }
}

impl<B, W: Framework> View for HttpView<'_, B, W> {
    type Request = Request<B>;

    fn request(&self) -> &Request<B> {
        self.request
    }

    fn method(&self) -> &str {
        self.request.method().as_str()
    }

    fn path(&self) -> &str {
        self.path.get_or_init(|| {
            W::original_uri(self.request.extensions()).unwrap_or(self.request.uri()).path()
        })
    }

    fn routed_path(&self) -> &str {
        self.routed_path.get_or_init(|| self.request.uri().path())
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

    fn route(&self) -> Option<&str> {
        W::route(self.request.extensions())
    }

    fn is_route(&self, pattern: &str) -> Option<bool> {
        Some(self.route() == Some(pattern))
    }

    fn peer(&self) -> Option<IpAddr> {
        W::peer(self.request.extensions())
    }

    fn header_lines<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        self.request.headers().get_all(name).into_iter().map(|line| line.as_bytes())
    }

    fn extension<T: Send + Sync + 'static, O>(&self, read: impl FnOnce(&T) -> O) -> Option<O> {
        self.request.extensions().get().map(read)
    }

    fn peer_hint(&self) -> &'static str {
        W::PEER_HINT
    }

    fn route_hint(&self) -> &'static str {
        W::ROUTE_HINT
    }
}
