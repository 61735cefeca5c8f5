use std::net::IpAddr;

use http::{Extensions, Response};
use sluicegate::Memory;
use sluicegate::adapter::{Framework, FrameworkAnswer, FrameworkBody, MatchedRoute, Peer};
use sluicegate::response::Body;
use sluicegate::service::RateLimitLayerFor;

use crate::respond::Grpc;

/// A tower layer that limits the requests to a tonic server, and answers refused ones with a gRPC status.
///
/// The rule `R` decides what requests are charged, the store `S` keeps the counts, and `P` makes the answers to
/// refused requests.
///
/// ```
/// use sluicegate_tonic::{Ip, Limit, Memory, RateLimitLayer};
///
/// let layer = RateLimitLayer::new(Limit::per_second(50).by(Ip::peer())).store(Memory::with_capacity(10_000));
/// # let _ = layer;
/// ```
///
/// Clones share one store with each other and with all services that they wrap.
pub type RateLimitLayer<R, S = Memory, P = Grpc> = RateLimitLayerFor<R, S, P, Tonic>;

/// Where tonic keeps the peer's address.
///
/// A [`Peer`] that an outer layer has left in the request's extensions takes precedence.
#[derive(Debug, Clone, Copy)]
pub struct Tonic;

impl Framework for Tonic {
    type Respond = Grpc;

    fn peer(extensions: &Extensions) -> Option<IpAddr> {
        extensions.get().map(|Peer(peer)| *peer).or_else(|| connect_info(extensions))
    }

    fn route(extensions: &Extensions) -> Option<&str> {
        extensions.get().map(|MatchedRoute(route)| &**route)
    }

    const PEER_HINT: &'static str = "serve with `tonic::transport::Server`, or where connections are accepted, add \
         `request.extensions_mut().insert(sluicegate_tonic::adapter::Peer(address.ip()))`";

    const ROUTE_HINT: &'static str =
        "a gRPC method is a path: use the key `Path`, or the condition `Path.matches(..)`";
}

impl<B> FrameworkBody<B> for Tonic {
    type Body = Body<B>;

    #[inline]
    fn body(body: Body<B>) -> Body<B> {
        body
    }
}

impl<T: Into<Body<ResBody>>, ResBody> FrameworkAnswer<Response<T>, ResBody> for Tonic {
    fn answer(answer: Response<T>) -> Response<Body<ResBody>> {
        answer.map(Into::into)
    }
}

#[cfg(feature = "transport")]
fn connect_info(extensions: &Extensions) -> Option<IpAddr> {
    use tonic::transport::server::TcpConnectInfo;

    let plain = extensions.get().and_then(TcpConnectInfo::remote_addr);
    plain.or_else(|| over_tls(extensions)).map(|address| address.ip())
}

#[cfg(feature = "tls")]
fn over_tls(extensions: &Extensions) -> Option<std::net::SocketAddr> {
    use tonic::transport::server::{TcpConnectInfo, TlsConnectInfo};

    let info: &TlsConnectInfo<TcpConnectInfo> = extensions.get()?;
    info.get_ref().remote_addr()
}

#[cfg(all(feature = "transport", not(feature = "tls")))]
fn over_tls(_: &Extensions) -> Option<std::net::SocketAddr> {
    None
}

#[cfg(not(feature = "transport"))]
fn connect_info(_: &Extensions) -> Option<IpAddr> {
    None
}
