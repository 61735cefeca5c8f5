//! Requests that are not quite gRPC, and clients that try to get past a limit.

use sluicegate_tonic::key::{GrpcMethod, Metadata};
use sluicegate_tonic::{Header, Ip, Limit, RateLimitLayer};

use crate::servers::{check, client, plain, serve, still};

const LINE: &str = "POST /grpc.health.v1.Health/Check";

/// A server whose one call an hour is spent.
async fn spent() -> std::net::SocketAddr {
    let layer = RateLimitLayer::new(Limit::per_hour(1).by(Ip::peer())).store(still());
    let address = serve(layer).await;
    check(&mut client(address).await).await.unwrap();
    address
}

#[tokio::test]
async fn only_calls_of_grpc_are_answered_with_a_status() {
    let address = spent().await;
    for content_type in ["application/grpc", "APPLICATION/GRPC", "application/grpc+anything"] {
        let fields = format!("content-type: {content_type}\r\n");
        let answer = plain(address, LINE, &fields).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{content_type}: {answer}");
        assert!(answer.contains("content-type: application/grpc\r\n"), "{answer}");
        assert!(answer.contains("grpc-status: 8\r\n"), "{answer}");
    }
    for fields in ["", "content-type: application/grpcfoo\r\n", "content-type: text/plain\r\n"] {
        let answer = plain(address, LINE, fields).await;
        assert!(answer.starts_with("HTTP/1.1 429 "), "{fields}: {answer}");
        assert!(answer.contains("application/problem+json"), "{fields}: {answer}");
    }
}

#[tokio::test]
async fn no_field_of_the_request_changes_whether_it_is_refused() {
    let address = spent().await;
    let long = format!("content-type: application/grpc;x={}\r\n", "y".repeat(6_000));
    for (line, fields) in [
        ("GET /grpc.health.v1.Health/Check", "content-type: application/grpc\r\n"),
        (LINE, "content-type: application/grpc\r\nte: gzip\r\n"),
        (LINE, "content-type: application/grpc\r\ngrpc-timeout: 0m\r\n"),
        (LINE, "content-type: application/grpc\r\ngrpc-timeout: nonsense\r\n"),
        (LINE, "content-type: application/grpc\r\ngrpc-encoding: nonsense\r\n"),
        (LINE, "content-type: application/grpc\r\ncontent-type: text/plain\r\n"),
        (LINE, "content-type: application/grpc\r\ngrpc-previous-rpc-attempts: 1\r\n"),
        (LINE, &long),
    ] {
        let answer = plain(address, line, fields).await;
        assert!(answer.contains("grpc-status: 8\r\n"), "{line} {fields}: {answer}");
        // Nothing that the client wrote is repeated.
        assert!(answer.len() < 1_500, "{}", answer.len());
    }
}

#[tokio::test]
async fn a_text_that_is_not_ascii_is_percent_encoded() {
    let key = sluicegate_tonic::key::from_fn(|_: &http::Request<tonic::body::Body>| None::<u64>);
    let address = serve(RateLimitLayer::new(Limit::per_hour(1).by(key))).await;
    let answer = plain(address, LINE, "content-type: application/grpc\r\n").await;
    assert!(answer.contains("grpc-status: 3\r\n"), "{answer}");

    let name = Header("schlüssel");
    let address = serve(RateLimitLayer::new(Limit::per_hour(1).by(name))).await;
    let answer = plain(address, LINE, "content-type: application/grpc\r\n").await;
    // The mistake is the server's, and what it is about is not told.
    assert!(answer.contains("grpc-status: 13\r\n") && answer.is_ascii(), "{answer}");
}

#[tokio::test]
async fn binary_metadata_that_is_not_base64_is_an_invalid_argument() {
    let address = serve(RateLimitLayer::new(Limit::per_hour(1).by(Metadata("id-bin")))).await;
    for value in ["!", "YW I", "YWI,YWI", "YWJ="] {
        let fields = format!("content-type: application/grpc\r\nid-bin: {value}\r\n");
        let answer = plain(address, LINE, &fields).await;
        assert!(answer.contains("grpc-status: 3\r\n"), "{value}: {answer}");
    }
    let fields = "content-type: application/grpc\r\n".to_owned() + &"id-bin: YQ\r\n".repeat(50);
    let answer = plain(address, LINE, &fields).await;
    assert!(answer.contains("grpc-status: 3\r\n"), "{answer}");
}

#[tokio::test]
async fn another_spelling_of_a_method_reaches_no_method() {
    let rule = Limit::per_hour(1).by(Ip::peer());
    let rule = rule.when(GrpcMethod.matches("/grpc.health.v1.Health/Check"));
    let address = serve(RateLimitLayer::new(rule)).await;
    for path in [
        "/grpc.health.v1.Health/%43heck",
        "/grpc.health.v1.Health/Check/",
        "/grpc.health.v1.Health//Check",
        "//grpc.health.v1.Health/Check",
        "/grpc.health.v1.Health/x/../Check",
        "/grpc.health.v1.Health/check",
    ] {
        let line = format!("POST {path}");
        let answer = plain(address, &line, "content-type: application/grpc\r\n").await;
        // UNIMPLEMENTED: neither limited nor served.
        assert!(answer.contains("grpc-status: 12\r\n"), "{path}: {answer}");
    }
}
