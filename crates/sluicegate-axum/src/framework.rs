use std::net::IpAddr;

use axum::BoxError;
use axum::body::{Bytes, HttpBody};
use axum::extract::OriginalUri;
use http::{Extensions, Uri};
use sluicegate::adapter::{Framework, FrameworkBody, MatchedRoute, Peer};
use sluicegate::response::Body;

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
