//! Everything that a client can make large has a bound.

use std::net::SocketAddr;
use std::time::Duration;

use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use sluicegate_server::{Policies, Server, Service};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::http::send;
use super::server::{Running, descriptor, is_over, start, start_rules};

const ONE: &str = "domain: edge
descriptors:
- key: user
  rate_limit: { unit: hour, requests_per_unit: 1 }
";

async fn refused(server: &mut Running, request: RateLimitRequest) -> (tonic::Code, String) {
    let status = server.client.should_rate_limit(request).await.expect_err("an error");
    (status.code(), status.message().to_owned())
}

fn request(descriptors: usize, entries: usize, value: &str) -> RateLimitRequest {
    let descriptor = descriptor(&vec![("user", value); entries]);
    let domain = "edge".to_owned();
    RateLimitRequest { domain, descriptors: vec![descriptor; descriptors], hits_addend: 0 }
}

#[tokio::test]
async fn a_request_with_too_much_in_it_is_refused_and_says_why() {
    let mut server = start(ONE).await;
    let invalid = tonic::Code::InvalidArgument;
    for (request, code, what) in [
        (RateLimitRequest::default(), invalid, "domain"),
        (
            RateLimitRequest { domain: "edge".to_owned(), ..Default::default() },
            invalid,
            "descriptor",
        ),
        (request(1, 65, "a"), invalid, "64 entries"),
    ] {
        let (got, message) = refused(&mut server, request).await;
        assert_eq!(got, code, "{message}");
        assert!(message.contains(what), "{message}");
    }
    // How many match is the client's choice, and Envoy lets a request pass whose call fails.
    let answer = server.client.should_rate_limit(request(65, 1, "a")).await.expect("an answer");
    assert!(is_over(&answer.into_inner()));
    // None of them was charged.
    assert!(!server.is_over(&[("user", "a")]).await);
}

#[tokio::test]
async fn more_than_sixteen_limits_for_one_request_refuse_it_and_charge_nothing() {
    let mut server = start(ONE).await;
    let users: Vec<_> = (0..17).map(|user| format!("user {user}")).collect();
    let descriptors = users.iter().map(|user| descriptor(&[("user", user)])).collect();
    let request = RateLimitRequest { domain: "edge".to_owned(), descriptors, hits_addend: 0 };
    let answer = server.client.should_rate_limit(request).await.expect("an answer").into_inner();
    assert!(is_over(&answer));
    assert!(!server.is_over(&[("user", "user 0")]).await);
}

#[tokio::test]
async fn the_same_descriptor_twice_is_charged_twice_or_not_at_all() {
    let mut server = start(&ONE.replace("unit: 1 }", "unit: 3 }")).await;
    let twice = || vec![descriptor(&[("user", "a")]); 2];
    assert!(!is_over(&server.ask(twice()).await));
    assert!(is_over(&server.ask(twice()).await));
    assert!(!server.is_over(&[("user", "a")]).await);
    assert!(server.is_over(&[("user", "a")]).await);
}

/// A server that accepts at most `most` connections.
async fn with_connections(most: usize) -> SocketAddr {
    let service = Service::builder(Policies::new()).build().expect("a service");
    let any = "127.0.0.1:0".parse().expect("an address");
    let bound = Server::new(service).http(any).connections(most).bind().await.expect("a port");
    let address = bound.addresses().http.expect("a port");
    tokio::spawn(bound.run(std::future::pending()));
    address
}

/// A connection on which a request was sent.
async fn asked(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("a request");
    stream
}

async fn is_answered(stream: &mut TcpStream) {
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 200");
}

#[tokio::test]
async fn connections_beyond_the_bound_wait_for_their_turn() {
    let address = with_connections(1).await;
    let mut first = asked(address).await;
    is_answered(&mut first).await;
    let mut second = asked(address).await;
    let waits = tokio::time::timeout(Duration::from_millis(50), is_answered(&mut second));
    assert!(waits.await.is_err(), "it is served beside the first");
    drop(first);
    is_answered(&mut second).await;
}

#[tokio::test]
async fn a_bound_that_no_machine_reaches_is_no_bound() {
    is_answered(&mut asked(with_connections(usize::MAX).await).await).await;
}

#[tokio::test]
async fn a_head_that_is_too_long_or_makes_no_sense_is_refused() {
    let server = start(ONE).await;
    let long = format!("GET / HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "x".repeat(100_000));
    let doubled =
        "POST /json HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx";
    for (head, status) in [(long.as_str(), 431), (doubled, 400)] {
        assert_eq!(send(&server.http, head).await.0, status);
    }
}

/// What a client gets that sends this, and then nothing more. The clock runs as fast as the server waits.
async fn sent_and_silent(bytes: &[u8]) -> String {
    let server = start(ONE).await;
    let mut stream = TcpStream::connect(&server.http).await.expect("a connection");
    stream.write_all(bytes).await.expect("a request");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(start_paused = true)]
async fn a_client_that_says_nothing_or_too_little_is_not_waited_for() {
    for bytes in [&b""[..], b"P", b"PRI * HTTP/2.0", b"GET /healthz HTTP/1.1\r\nhost: x"] {
        let answer = sent_and_silent(bytes).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let head = b"POST /json HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{";
    let answer = sent_and_silent(head).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
}

#[tokio::test]
async fn a_client_that_sends_all_of_a_body_that_is_too_long_reads_why() {
    let server = start(ONE).await;
    let body = "a".repeat(1024 * 1024);
    let request = format!(
        "POST /json HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(&server.http).await.expect("a connection");
    stream.write_all(request.as_bytes()).await.expect("a connection that takes all of it");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[tokio::test]
async fn a_question_may_have_more_fields_than_a_request() {
    let server =
        start_rules("[[rules]]\nname = \"all\"\nkey = \"ip\"\nlimits = [\"9/hour\"]").await;
    for (fields, status) in [(240, 200), (300, 431)] {
        let many: String = (0..fields).map(|at| format!("x-{at}: 1\r\n")).collect();
        let question = format!(
            "GET /check HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-forwarded-method: GET\r\n\
             x-forwarded-uri: /\r\nx-forwarded-host: x\r\nx-forwarded-for: 192.0.2.1\r\n{many}\r\n"
        );
        assert_eq!(send(&server.http, &question).await.0, status);
    }
}

#[tokio::test]
async fn the_port_of_grpc_does_not_wait_for_a_body_in_http_1() {
    let server = start(ONE).await;
    let address = server.grpc.trim_start_matches("http://");
    let head = b"POST /envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit HTTP/1.1\r\nhost: x\r\n\
        content-type: application/grpc\r\ncontent-length: 100\r\n\r\n\0";
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(head).await.expect("a request");
    let closed = tokio::time::timeout(Duration::from_secs(60), async {
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    closed.await.expect("the end of the connection");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_its_answers_is_not_waited_for() {
    let server = start(ONE).await;
    let mut stream = TcpStream::connect(&server.http).await.expect("a connection");
    let requests = b"GET /v1/openapi.json HTTP/1.1\r\nhost: x\r\n\r\n".repeat(1_000);
    let flood = async { while stream.write_all(&requests).await.is_ok() {} };
    tokio::time::timeout(Duration::from_secs(600), flood).await.expect("an end");
}
