//! Clients that use HTTP/2 to make a server work, wait or remember for nothing.

use std::time::Duration;

use super::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, GO_AWAY, HEADERS, PING, RESET, Raw, SETTINGS,
    field, frame, head,
};
use super::http::send;
use super::server::{Running, start};

const ONE: &str = "domain: edge
descriptors:
- key: user
  rate_limit: { unit: hour, requests_per_unit: 1 }
";

const SHOULD_RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// What a client did is called too much: `ENHANCE_YOUR_CALM`.
const TOO_MUCH: u32 = 11;

/// `CANCEL`.
const CANCEL: u32 = 8;

async fn serves_others(server: &mut Running) {
    assert!(!server.is_over(&[("user", "a")]).await);
    let get = "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    assert_eq!(send(&server.http, get).await.0, 200);
}

fn call(stream: u32, flags: u8, path: &str) -> Vec<u8> {
    let fields = [head("POST", path), field("content-type", "application/grpc")].concat();
    frame(HEADERS, flags | END_HEADERS, stream, &fields)
}

#[tokio::test]
async fn calls_that_are_cancelled_at_once_end_the_connection() {
    let mut server = start(ONE).await;
    for address in [server.http.clone(), server.grpc.clone()] {
        let mut client = Raw::connect(&address, &[]).await;
        let mut flood = Vec::new();
        for call_number in 0..10_000 {
            let stream = call_number * 2 + 1;
            flood.extend(call(stream, 0, SHOULD_RATE_LIMIT));
            flood.extend(frame(RESET, 0, stream, &CANCEL.to_be_bytes()));
        }
        let _ = client.send(&flood).await;
        // The farewell may be lost when the server closes before it has read everything.
        if let Some(farewell) = client.next_of(GO_AWAY).await {
            assert_eq!(farewell.error(), TOO_MUCH);
        }
    }
    serves_others(&mut server).await;
}

#[tokio::test]
async fn a_head_without_end_ends_the_connection() {
    let mut server = start(ONE).await;
    for address in [server.http.clone(), server.grpc.clone()] {
        let mut client = Raw::connect(&address, &[]).await;
        client.send(&frame(HEADERS, 0, 1, &head("POST", "/json"))).await.expect("a head");
        let fields: Vec<u8> = (0..200).flat_map(|_| field("x-filler", &"x".repeat(60))).collect();
        client.flood(&frame(CONTINUATION, 0, 1, &fields)).await;
        let mut client = Raw::connect(&address, &[]).await;
        client.send(&frame(HEADERS, 0, 1, &head("POST", "/json"))).await.expect("a head");
        client.flood(&frame(CONTINUATION, 0, 1, &[])).await;
    }
    serves_others(&mut server).await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_makes_the_server_talk_and_does_not_listen_is_not_waited_for() {
    let mut server = start(ONE).await;
    let flood = |one: &[u8]| one.repeat(10_000);
    for address in [server.http.clone(), server.grpc.clone()] {
        for flood in [flood(&frame(PING, 0, 0, &[0; 8])), flood(&frame(SETTINGS, 0, 0, &[]))] {
            Raw::connect(&address, &[]).await.flood(&flood).await;
        }
    }
    serves_others(&mut server).await;
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_costs_a_client_its_call() {
    let mut server = start(ONE).await;
    for address in [server.http.clone(), server.grpc.clone()] {
        let mut client = Raw::connect(&address, &[]).await;
        client.send(&call(1, 0, SHOULD_RATE_LIMIT)).await.expect("a head");
        client.send(&call(3, 0, "/json")).await.expect("a head");
        let mut ended = Vec::new();
        while ended.len() < 2 {
            let frame = client.next().await.expect("the connection stays open");
            let is_end = frame.kind == RESET || frame.flags & END_STREAM > 0;
            if frame.stream > 0 && is_end && !ended.contains(&frame.stream) {
                ended.push(frame.stream);
            }
        }
    }
    serves_others(&mut server).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_read_costs_a_client_its_call() {
    let mut server = start(ONE).await;
    // The client has no room for a body.
    let mut client = Raw::connect(&server.http, &[(4, 0)]).await;
    let head = head("GET", "/healthz");
    client.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &head)).await.expect("a call");
    let answer = client.next_of(HEADERS).await.expect("an answer");
    assert_eq!((answer.stream, answer.flags & END_STREAM), (1, 0));
    let reset = client.next_of(RESET).await.expect("the connection stays open");
    assert_eq!(reset.stream, 1);
    serves_others(&mut server).await;
}

#[tokio::test(start_paused = true)]
async fn a_conversation_may_last() {
    let server = start(ONE).await;
    let mut client = Raw::connect(&server.grpc, &[]).await;
    client.send(&call(1, 0, "/grpc.health.v1.Health/Watch")).await.expect("a head");
    // An empty message: the health of the whole server.
    client.send(&frame(DATA, END_STREAM, 1, &[0; 5])).await.expect("a message");
    let told = client.next_of(DATA).await.expect("a message");
    assert_eq!(told.stream, 1);
    let hour = Duration::from_secs(3_600);
    let more = tokio::time::timeout(hour, client.next_of(RESET)).await;
    assert!(more.is_err(), "{more:?}");
}

#[tokio::test]
async fn frames_without_content_neither_stop_the_server_nor_pile_up() {
    let mut server = start(ONE).await;
    let mut client = Raw::connect(&server.http, &[]).await;
    client.send(&call(1, 0, "/json")).await.expect("a head");
    let empty = frame(DATA, 0, 1, &[]).repeat(1_000);
    for _ in 0..300 {
        if client.send(&empty).await.is_err() {
            break;
        }
    }
    serves_others(&mut server).await;
    let _ = client.send(&frame(DATA, END_STREAM, 1, b"{}")).await;
    // Refused as a request that makes no sense, or the connection has ended.
    if let Some(answer) = client.next_of(HEADERS).await {
        assert_eq!(answer.stream, 1);
    }
}

#[tokio::test]
async fn a_client_is_told_what_the_bounds_are() {
    let server = start(ONE).await;
    for (address, path) in [(&server.http, "/json"), (&server.grpc, SHOULD_RATE_LIMIT)] {
        let mut client = Raw::connect(address, &[]).await;
        let settings = client.next_of(SETTINGS).await.expect("settings").payload;
        let said = |name: u16| {
            let mut settings = settings.chunks(6);
            let setting = settings.find(|setting| setting[..2] == name.to_be_bytes())?;
            Some(u32::from_be_bytes(setting[2..].try_into().expect("four bytes")))
        };
        // Calls at a time, the window of a call, and the size of a head.
        assert_eq!((said(3), said(6)), (Some(1_024), Some(32 * 1024)));
        // One call may use the window of the whole connection.
        assert!(said(4).is_none_or(|window| window <= 512 * 1024));
        for call_number in 0..1_025 {
            client.send(&call(call_number * 2 + 1, 0, path)).await.expect("a head");
        }
        let refused = client.next_of(RESET).await.expect("a reset");
        assert_eq!(refused.stream, 1_024 * 2 + 1);
    }
}
