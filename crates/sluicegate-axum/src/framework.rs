use std::net::IpAddr;

use axum::BoxError;
use axum::body::{Bytes, HttpBody};
use axum::extract::OriginalUri;
use axum::response::IntoResponse;
use http::{Extensions, Request, Response, Uri};
use sluicegate::adapter::{
    Framework, FrameworkAnswer, FrameworkBody, HttpView, MatchedRoute, Peer,
};
use sluicegate::key::{Key, KeyBuf, Missing};
use sluicegate::response::{Body, Problem};

/// Where axum keeps the peer's address, the route's pattern and the URI that the client sent.
///
/// A nested router sees a URI without the prefix of the outer one. The path of a request is always the whole path,
/// from `OriginalUri`.
///
/// A [`Peer`] or [`MatchedRoute`] that an outer layer has left in the request's extensions takes precedence, for
/// listeners whose `ConnectInfo` is not a `SocketAddr`.
#[derive(Debug, Clone, Copy)]
pub struct Axum;

impl Framework for Axum {
    type Respond = Problem;

    fn peer(extensions: &Extensions) -> Option<IpAddr> {
        extensions.get().map(|Peer(peer)| *peer).or_else(|| connect_info(extensions))
    }

    fn route(extensions: &Extensions) -> Option<&str> {
        extensions.get().map(|MatchedRoute(route)| &**route).or_else(|| matched_path(extensions))
    }

    fn original_uri(extensions: &Extensions) -> Option<&Uri> {
        extensions.get().map(|OriginalUri(uri)| uri)
    }

    const PEER_HINT: &'static str =
        "serve the router with `app.into_make_service_with_connect_info::<SocketAddr>()`";

    const ROUTE_HINT: &'static str = "no route has matched: use `route_layer`, put the layer on the route itself, or use \
         `First((Route, Const(\"no route\")))` as the key";
}

/// All bodies of axum are of one type: only what holds something is boxed.
impl<B> FrameworkBody<B> for Axum
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Body = axum::body::Body;

    fn body(body: Body<B>) -> axum::body::Body {
        if body.is_holding() && !body.is_end_stream() {
            return axum::body::Body::new(body);
        }
        body.into_inner().map_or_else(axum::body::Body::from, axum::body::Body::new)
    }

    #[inline]
    fn inner(body: B) -> axum::body::Body {
        axum::body::Body::new(body)
    }
}

/// Closures for refusals may return anything that axum can respond with.
impl<T: IntoResponse> FrameworkAnswer<T, axum::body::Body> for Axum {
    fn answer(answer: T) -> Response<Body<axum::body::Body>> {
        answer.into_response().map(Body::new)
    }
}

/// The key that `key` reads from `request`: the same key that a rule by it uses.
///
/// With it, code can [block](crate::store::Blocks::block_key) a client of a layer. The request is one that the client
/// has sent, or one made up with what the key reads.
///
/// ```
/// use std::time::Duration;
/// use axum::extract::Request;
/// use sluicegate_axum::adapter::{Peer, key_of};
/// use sluicegate_axum::store::Blocks;
/// use sluicegate_axum::{Ip, Limit, Memory, RateLimitLayer};
///
/// let store = Blocks::new(Memory::new());
/// let layer = RateLimitLayer::new(Limit::per_minute(60).by(Ip::peer())).store(store.clone());
///
/// // Somewhere else: no request from this address passes the layer for an hour.
/// let mut request = Request::new(axum::body::Body::empty());
/// request.extensions_mut().insert(Peer("203.0.113.7".parse()?));
/// let key = key_of(&Ip::peer(), &request)?;
/// store.block_key(key, Duration::from_secs(3_600)).now()?;
/// # let _ = layer;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Returns what the request lacks.
pub fn key_of<B, K>(key: &K, request: &Request<B>) -> Result<KeyBuf, Missing>
where
    K: for<'a> Key<HttpView<'a, B, Axum>>,
{
    KeyBuf::from_view(key, &HttpView::new(request))
}

#[cfg(feature = "tokio")]
fn connect_info(extensions: &Extensions) -> Option<IpAddr> {
    use std::net::SocketAddr;

    use axum::extract::ConnectInfo;
    use axum::extract::connect_info::MockConnectInfo;

    let peer = extensions.get().map(|ConnectInfo(peer): &ConnectInfo<SocketAddr>| peer);
    peer.or_else(|| {
        extensions.get().map(|MockConnectInfo(peer): &MockConnectInfo<SocketAddr>| peer)
    })
    .map(SocketAddr::ip)
}

#[cfg(not(feature = "tokio"))]
fn connect_info(_: &Extensions) -> Option<IpAddr> {
    None
}

#[cfg(feature = "matched-path")]
fn matched_path(extensions: &Extensions) -> Option<&str> {
    extensions.get().map(axum::extract::MatchedPath::as_str)
}

#[cfg(not(feature = "matched-path"))]
fn matched_path(_: &Extensions) -> Option<&str> {
    None
}
