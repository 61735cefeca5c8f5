//! gRPC-Web, with tonic-web's layer around the limits, and inside of them.

use sluicegate_tonic::{Ip, Limit, RateLimitLayer};
use tonic_web::GrpcWebLayer;
use tower::ServiceBuilder;

use crate::servers::{plain, serve, still};

const LINE: &str = "POST /grpc.health.v1.Health/Check";

#[tokio::test]
async fn a_refusal_reaches_clients_of_grpc_web() {
    let limits = || RateLimitLayer::new(Limit::per_hour(1).by(Ip::peer())).store(still());
    let outside = ServiceBuilder::new().layer(limits()).layer(GrpcWebLayer::new()).into_inner();
    let inside = ServiceBuilder::new().layer(GrpcWebLayer::new()).layer(limits()).into_inner();
    for (address, whose) in [(serve(outside).await, "outside"), (serve(inside).await, "inside")] {
        // The budget is spent by a call that has no message.
        let first = plain(address, LINE, "content-type: application/grpc-web\r\n").await;
        assert!(!first.contains("grpc-status: 8"), "{whose}: {first}");
        for (asked, answered) in [
            ("application/grpc-web", "application/grpc-web+proto"),
            ("application/grpc-web+proto", "application/grpc-web+proto"),
            ("application/grpc-web-text", "application/grpc-web-text+proto"),
        ] {
            let fields = format!("content-type: {asked}\r\naccept: {asked}\r\n");
            let answer = plain(address, LINE, &fields).await;
            assert!(answer.starts_with("HTTP/1.1 200 "), "{whose}: {answer}");
            assert!(answer.contains(&format!("content-type: {answered}")), "{whose}: {answer}");
            assert!(answer.contains("grpc-status: 8\r\n"), "{whose}: {answer}");
            assert!(answer.contains("grpc-retry-pushback-ms: 3600000\r\n"), "{whose}: {answer}");
            assert!(answer.contains("grpc-status-details-bin: "), "{whose}: {answer}");
        }
    }
}
