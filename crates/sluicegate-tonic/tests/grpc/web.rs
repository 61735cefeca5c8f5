//! gRPC-Web, with tonic-web's layer around the limits, and inside of them.

use std::convert::Infallible;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use sluicegate_tonic::cost::RunningCost;
use sluicegate_tonic::{CountMessages, Ip, Limit, RateLimitLayer};
use tonic::body::Body;
use tonic_web::GrpcWebLayer;
use tower::{ServiceBuilder, ServiceExt, service_fn};

use crate::messages::{MESSAGE, Parts, read};
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

#[tokio::test]
async fn messages_are_counted_around_the_layer_of_grpc_web() {
    for (content_type, is_text) in [
        ("application/grpc", false),
        ("application/grpc-web+proto", false),
        ("application/grpc-web-text", true),
        ("application/grpc-web-text+proto", true),
    ] {
        for (count, counted) in [
            (CountMessages::sent(), 50),
            (CountMessages::received(), 20),
            (CountMessages::both(), 70),
        ] {
            let handler = service_fn(|request: Request<Body>| async {
                read(request.into_body()).await;
                let sent = (0..50).map(|_| Bytes::from_static(&MESSAGE)).collect();
                let mut trailers = HeaderMap::new();
                trailers.insert("grpc-status", "0".parse().unwrap());
                let mut response = Response::new(Body::new(Parts(sent, Some(trailers))));
                let headers = response.headers_mut();
                headers.insert("content-type", "application/grpc".parse().unwrap());
                Ok::<_, Infallible>(response)
            });
            let service =
                ServiceBuilder::new().layer(count).layer(GrpcWebLayer::new()).service(handler);
            let body = MESSAGE.repeat(20);
            let body = if is_text { STANDARD.encode(body).into_bytes() } else { body };
            let parts = body.chunks(7).map(Bytes::copy_from_slice).collect();
            let request = Request::post("/a.B/C").header("content-type", content_type);
            let request = request.header("accept", content_type).version(http::Version::HTTP_2);
            let request = request.body(Parts(parts, None)).unwrap();
            let response = service.oneshot(request).await.unwrap();
            let cost = response.extensions().get::<RunningCost>().unwrap().clone();
            read(response.into_body()).await;
            assert_eq!(cost.total(), counted, "{content_type}, {count:?}");
        }
    }
}
