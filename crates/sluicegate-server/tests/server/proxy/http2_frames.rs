//! Requests of HTTP/2 that only raw frames can have.

use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use super::support::{LONGEST, OK, Running, Upstream};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const GOAWAY: u8 = 7;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

type Fields<'a> = &'a [(&'a str, &'a str)];

const TARGET: [(&str, &str); 3] = [(":scheme", "http"), (":authority", "a"), (":method", "POST")];

fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short payload").to_be_bytes();
    [&length[1..], &[kind, flags, 0, 0, 0, 1], payload].concat()
}

/// A request on the first stream, with a body. Its fields are literals (RFC 7541, section 6.2.2).
fn request(fields: Fields<'_>, body: &[u8]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in TARGET.iter().chain(fields) {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).expect("a short text"));
            block.extend_from_slice(text.as_bytes());
        }
    }
    [PREFACE, &frame(HEADERS, END_HEADERS, &block), &frame(DATA, END_STREAM, body)].concat()
}

/// The type of the first frame that answers the request, with its payload.
async fn answered(proxy: &Running, request: &[u8]) -> (u8, Vec<u8>) {
    let mut client = proxy.connect().await;
    client.send(request).await;
    let read = async {
        loop {
            let mut head = [0; 9];
            client.0.read_exact(&mut head).await.expect("a frame");
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            client.0.read_exact(&mut payload).await.expect("a payload");
            if [HEADERS, RESET, GOAWAY].contains(&head[3]) {
                break (head[3], payload);
            }
        }
    };
    timeout(LONGEST, read).await.expect("an answer")
}

#[tokio::test]
async fn a_malformed_request_in_http2_is_not_passed_on() {
    let smuggled = b"0\r\n\r\nGET /second HTTP/1.1\r\nhost: a\r\n\r\n";
    for fields in [
        &[(":path", "/"), ("transfer-encoding", "chunked")][..],
        &[(":path", "/"), ("connection", "close")],
        &[(":path", "/"), ("upgrade", "websocket")],
        &[(":path", "/"), ("te", "gzip")],
        &[(":path", "/"), ("content-length", "1")],
        &[(":path", "/"), ("content-length", "99")],
        &[(":path", "/"), ("content-length", "43, 43")],
        &[(":path", "/"), ("x\r\ny", "1")],
        &[(":path", "/"), ("x", "1\r\ny: 2")],
        &[(":path", "/"), ("X-Upper", "1")],
        &[(":path", "/"), (":path", "/second")],
        &[("x", "1"), (":path", "/")],
        &[(":path", "")],
        &[(":path", "second")],
        &[(":path", "http://b/")],
        &[(":path", "/ HTTP/1.1\r\nhost: a\r\n\r\nGET /second")],
    ] {
        let upstream = Upstream::start(OK).await;
        let proxy = Running::start(upstream.address, "", "").await;
        let (kind, _) = answered(&proxy, &request(fields, smuggled)).await;
        assert!(kind == RESET || kind == GOAWAY, "{fields:?}: a frame of type {kind}");
        assert!(!upstream.seen().concat().contains("second"), "{fields:?}");
    }
}

/// A client whose network is gone sends nothing more, and no end either.
#[tokio::test]
async fn a_client_of_http2_that_vanishes_gives_its_place_back() {
    let upstream = Upstream::start("").await;
    let rules = "response_timeout = \"1 day\"\n\
        [[rules]]\nname = \"one\"\nkey = \"global\"\nlimits = [\"concurrent 1\"]";
    let proxy = Running::start(upstream.address, "", rules).await;
    let mut gone = proxy.connect().await;
    gone.send(request(&[(":path", "/")], b"abc")).await;
    while upstream.seen().is_empty() {
        tokio::task::yield_now().await;
    }
    let again = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    assert!(proxy.connect_and(again).await.starts_with("HTTP/1.1 429 "));
    tokio::time::pause();
    let closed = timeout(Duration::from_secs(300), gone.0.read_to_end(&mut Vec::new())).await;
    tokio::time::resume();
    let _ = closed.expect("the connection is closed");
    upstream.answer(OK);
    while !proxy.connect_and(again).await.starts_with("HTTP/1.1 200 ") {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_sound_request_in_frames_is_passed_on() {
    let upstream = Upstream::start(OK).await;
    let proxy = Running::start(upstream.address, "", "").await;
    let (kind, payload) = answered(&proxy, &request(&[(":path", "/")], b"abc")).await;
    // The first byte is the index of `:status: 200`.
    assert_eq!((kind, payload.first()), (HEADERS, Some(&0x88)));
    assert!(upstream.head().starts_with("POST / HTTP/1.1\r\n"));
}
