use std::net::IpAddr;

use http::{Extensions, Uri};
use sluicegate::adapter::Framework;
use sluicegate::response::Problem;

#[cfg(not(feature = "axum"))]
use sluicegate::adapter::Plain as Known;
#[cfg(feature = "axum")]
use sluicegate_axum::adapter::Axum as Known;

/// What servers leave in requests: [`Peer`](sluicegate::adapter::Peer) and
/// [`MatchedRoute`](sluicegate::adapter::MatchedRoute), with the feature `axum` what axum knows, and with the feature
/// `tonic` the peer that tonic knows.
#[derive(Debug, Clone, Copy)]
pub struct Servers;

impl Framework for Servers {
    type Respond = Problem;

    fn peer(extensions: &Extensions) -> Option<IpAddr> {
        let peer = Known::peer(extensions);
        #[cfg(feature = "tonic")]
        let peer = peer.or_else(|| sluicegate_tonic::Tonic::peer(extensions));
        peer
    }

    fn route(extensions: &Extensions) -> Option<&str> {
        Known::route(extensions)
    }

    fn original_uri(extensions: &Extensions) -> Option<&Uri> {
        Known::original_uri(extensions)
    }

    const PEER_HINT: &'static str = Known::PEER_HINT;

    const ROUTE_HINT: &'static str = Known::ROUTE_HINT;
}
