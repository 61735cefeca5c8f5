//! The layer around tonic's services, without its server.

use std::net::{IpAddr, Ipv4Addr};

use http::{Request, header};
use sluicegate_tonic::adapter::Peer;
use sluicegate_tonic::{Ip, Limit, RateLimitLayer};
use tonic::body::Body;
use tonic::service::Routes;
use tonic_health::server::health_reporter;
use tower::{Layer, ServiceExt};

/// A call from this address.
fn call(peer: Option<u8>) -> Request<Body> {
    let mut request = Request::post("/grpc.health.v1.Health/Check").body(Body::empty()).unwrap();
    request.headers_mut().insert(header::CONTENT_TYPE, "application/grpc".parse().unwrap());
    if let Some(last) = peer {
        let peer = IpAddr::from(Ipv4Addr::new(192, 0, 2, last));
        request.extensions_mut().insert(Peer(peer));
    }
    request
}

#[tokio::test]
async fn the_peer_is_what_the_program_leaves_in_the_call() {
    let (_, health) = health_reporter();
    let service = RateLimitLayer::new(Limit::per_hour(1).by(Ip::peer())).layer(Routes::new(health));
    let mut statuses = Vec::new();
    for peer in [Some(1), Some(1), Some(2), None] {
        let response = service.clone().oneshot(call(peer)).await.unwrap();
        let status = response.headers().get("grpc-status").map(|status| status.to_str().unwrap());
        statuses.push(status.map(str::to_owned));
    }
    // Those that are admitted have no message, which tonic refuses in its own way.
    assert_eq!(statuses[1].as_deref(), Some("8"));
    assert_eq!(statuses[0], statuses[2]);
    assert_ne!(statuses[0].as_deref(), Some("8"));
    assert_eq!(statuses[3].as_deref(), Some("13"), "the server is not set up");
}
