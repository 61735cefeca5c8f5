//! What the application sees of requests that two servers could read differently.
//!
//! Each request is followed by another one for `/second`, in the bytes that a server would take for the rest. The
//! application must never see more requests than the limits have counted, and nothing that it could read in two ways.

use tokio::time::timeout;

use super::support::{LONGEST, OK, Running, Upstream};

/// The limits of this file count every request, and refuse none.
const COUNTED: &str = "[[rules]]\nname = \"all\"\nkey = \"global\"\nlimits = [\"1000/hour\"]";

/// Requests that have to be refused, with the status.
const REFUSED: &[(&str, u16)] = &[
    ("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\ncontent-length: 5\r\n\r\nabcde", 400),
    ("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4, 5\r\n\r\nabcd", 400),
    ("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: +4\r\n\r\nabcd", 400),
    ("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0x4\r\n\r\nabcd", 400),
    ("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n", 400),
    ("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 99999999999999999999\r\n\r\n", 400),
    ("POST / HTTP/1.1\r\nhost: a\r\ncontent-length : 4\r\n\r\nabcd", 400),
    ("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding : chunked\r\n\r\n0\r\n\r\n", 400),
    ("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n", 400),
    ("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n", 400),
    ("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    ("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: \x0bchunked\r\n\r\n0\r\n\r\n", 400),
    (
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n",
        400,
    ),
    (
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: identity\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        501,
    ),
    ("POST / HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nhost: a\r\nx: a\r\n folded\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nhost: a\r\nx: a\0b\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nhost: a\r\nx: a\rtransfer-encoding: chunked\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nhost: a\r\nx y: b\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nhost: a b\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nhost: evil@a\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\n\r\n", 400),
    ("GET * HTTP/1.1\r\nhost: a\r\n\r\n", 400),
    ("POST * HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n", 400),
    ("GET a HTTP/1.1\r\nhost: a\r\n\r\n", 400),
    ("GET a:80 HTTP/1.1\r\nhost: a:80\r\n\r\n", 400),
    ("GET http://b/ HTTP/1.1\r\nhost: a\r\n\r\n", 400),
    ("GET ftp://a/ HTTP/1.1\r\nhost: a\r\n\r\n", 400),
    ("GET http://u@a/ HTTP/1.1\r\nhost: a\r\n\r\n", 400),
    ("CONNECT a:80 HTTP/1.1\r\nhost: a:80\r\n\r\n", 501),
    ("TRACE / HTTP/1.1\r\nhost: a\r\n\r\n", 405),
    ("GET / HTTP/9.9\r\nhost: a\r\n\r\n", 400),
    (" GET / HTTP/1.1\r\nhost: a\r\n\r\n", 400),
    ("GET  / HTTP/1.1\r\nhost: a\r\n\r\n", 400),
    (
        "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\ncontent-length: 4\r\n\r\nabcd",
        400,
    ),
];

/// Chunked bodies that break off, so that the application must not take them for whole.
const BROKEN_CHUNKS: &[&str] = &[
    "-1\r\nabc\r\n0\r\n\r\n",
    "0x3\r\nabc\r\n0\r\n\r\n",
    "3 3\r\nabc\r\n0\r\n\r\n",
    "fffffffffffffffff\r\nabc\r\n0\r\n\r\n",
    "3\nabc\r\n0\r\n\r\n",
    "3\r\nabcd\r\n0\r\n\r\n",
    "3;a\nb\r\nabc\r\n0\r\n\r\n",
    "\r\nabc\r\n0\r\n\r\n",
    "3\r\nabc\r\n0\r\n\n",
    "0\r\n\n",
    "0\r\n\n\r\n",
    "0\n\n",
    "0\n\r\n",
    "0\r\n \r\n",
];

/// Ends of a chunked body behind which hyper takes the next request for trailers.
const BROKEN_TRAILERS: &[&str] =
    &["0\r\nx: 1\n\n", "0\r\nx: 1\r\n\n", "0\r\nx: 1\n\r\n", "3\r\nabc\r\n0\r\nx: 1\n\n"];

const SECOND: &str = "GET /second HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn what_can_be_read_in_two_ways_is_refused() {
    let upstream = Upstream::start(OK).await;
    let proxy = Running::start(upstream.address, "", COUNTED).await;
    for (request, status) in REFUSED {
        let mut request = (*request).to_owned();
        request.insert_str(request.find("\r\n").map_or(0, |at| at + 2), "connection: close\r\n");
        let answer = proxy.answer(request.as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {answer:?}");
        assert!(!answer.starts_with("HTTP/1.1 429"), "{request:?}");
    }
    assert_eq!(upstream.seen(), [""; 0], "nothing was passed on");
}

#[tokio::test]
async fn a_length_beside_of_chunks_is_gone_and_ends_the_connection() {
    for (first, second) in [
        ("content-length: 4", "transfer-encoding: chunked"),
        ("transfer-encoding: chunked", "content-length: 4"),
    ] {
        let upstream = Upstream::start(OK).await;
        let proxy = Running::start(upstream.address, "", COUNTED).await;
        let request =
            format!("POST / HTTP/1.1\r\nhost: a\r\n{first}\r\n{second}\r\n\r\n0\r\n\r\n{SECOND}");
        let answer = proxy.answer(request.as_bytes()).await;
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
        let seen = upstream.seen().concat();
        assert!(!seen.contains("/second") && !seen.contains("content-length: 4"), "{seen}");
    }
}

#[tokio::test]
async fn a_broken_body_never_becomes_a_whole_one_or_a_second_request() {
    for chunks in BROKEN_CHUNKS {
        let upstream = Upstream::start(OK).await;
        let proxy = Running::start(upstream.address, "", COUNTED).await;
        let head = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
        let answer = proxy.answer(format!("{head}{chunks}{SECOND}").as_bytes()).await;
        assert!(answer.matches("HTTP/1.1 ").count() <= 1, "{chunks:?}: {answer}");
        let seen = upstream.seen().concat();
        assert!(!seen.contains("/second"), "{chunks:?}: {seen}");
        assert!(!seen.ends_with("0\r\n\r\n"), "{chunks:?}: {seen}");
    }
}

#[tokio::test]
async fn a_request_that_is_taken_for_trailers_is_not_lost_in_silence() {
    for end in BROKEN_TRAILERS {
        let upstream = Upstream::start(OK).await;
        let proxy = Running::start(upstream.address, "", COUNTED).await;
        let head = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
        // The last request has no length of its own, so that nothing but the connection's end ends the answers.
        let third = "GET /third HTTP/1.1\r\nhost: a\r\n\r\n";
        let answer = proxy.answer(format!("{head}{end}{SECOND}{third}").as_bytes()).await;
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{end:?}: {answer}");
        assert!(answer.contains("connection: close\r\n"), "{end:?}: {answer}");
        let seen = upstream.seen().concat();
        assert!(!seen.contains("/second") && !seen.contains("/third"), "{end:?}: {seen}");
    }
}

#[tokio::test]
async fn a_request_that_is_refused_for_what_it_is_ends_its_connection() {
    for (request, status) in REFUSED {
        let upstream = Upstream::start(OK).await;
        let proxy = Running::start(upstream.address, "", COUNTED).await;
        let answer = proxy.answer(format!("{request}{SECOND}").as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {answer:?}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{request:?}: {answer:?}");
        assert!(answer.contains("connection: close\r\n"), "{request:?}: {answer:?}");
        assert_eq!(upstream.seen(), [""; 0], "{request:?}");
    }
}

#[tokio::test]
async fn what_remains_is_written_anew_in_one_way() {
    // Bare line feeds, extensions of chunks, a length of zero digits: legal, and gone afterwards.
    for (request, end) in [
        ("GET / HTTP/1.1\nhost: a\nx: 1\nconnection: close\n\n", "\r\n\r\n"),
        (
            "POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\nTransfer-Encoding: CHUNKED\r\n\r\n3;x=\"y\"\r\nabc\r\n0\r\n\r\n",
            "\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        ),
        (
            "POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 3\r\ncontent-length: 3\r\n\r\nabc",
            "\r\n\r\nabc",
        ),
        ("GET http://a/ HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n", "\r\n\r\n"),
    ] {
        let upstream = Upstream::start(OK).await;
        let proxy = Running::start(upstream.address, "", COUNTED).await;
        let answer = proxy.answer(request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{request:?}: {answer}");
        let seen = upstream.seen().concat();
        let heads = seen.split("\r\n\r\n").next().unwrap_or_default();
        assert!(
            heads.starts_with("GET / HTTP/1.1\r\n") || heads.starts_with("POST / HTTP/1.1\r\n")
        );
        assert_eq!(heads.matches("host: a").count(), 2, "with x-forwarded-host: {seen}");
        assert!(!heads.replace("\r\n", "").contains(['\r', '\n']), "{seen:?}");
        let lengths =
            heads.matches("content-length").count() + heads.matches("transfer-encoding").count();
        assert!(lengths <= 1, "{seen}");
        assert!(seen.ends_with(end), "{seen:?}");
    }
}

#[tokio::test]
async fn an_upgrade_to_http2_is_not_passed_on() {
    let upstream = Upstream::start(OK).await;
    let proxy = Running::start(upstream.address, "", COUNTED).await;
    let answer = proxy
        .answer(
            b"GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade, http2-settings, close\r\nupgrade: h2c\r\n\
              http2-settings: AAMAAABkAAQAAP__\r\n\r\n",
        )
        .await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let head = upstream.head();
    assert!(!head.contains("h2c") && !head.contains("http2-settings"), "{head}");
    assert!(!head.contains("connection"), "{head}");
}

#[tokio::test]
async fn requests_that_come_together_are_counted_one_by_one() {
    let upstream = Upstream::start(OK).await;
    let rules = "[[rules]]\nname = \"all\"\nkey = \"global\"\nlimits = [\"1/hour\"]";
    let proxy = Running::start(upstream.address, "", rules).await;
    let first = "GET /first HTTP/1.1\r\nhost: a\r\n\r\n";
    let answer = proxy.answer(format!("{first}{SECOND}").as_bytes()).await;
    assert!(answer.contains("HTTP/1.1 200 ") && answer.contains("HTTP/1.1 429 "), "{answer}");
    assert!(!upstream.seen().concat().contains("/second"));
}

#[tokio::test]
async fn trailers_do_not_say_who_the_client_is() {
    let upstream = Upstream::start(OK).await;
    let proxy = Running::start(upstream.address, "", COUNTED).await;
    let mut client = proxy.connect().await;
    client
        .send(
            "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\
             trailer: x-forwarded-for, x_forwarded_for, host, x-sum\r\n\r\n3\r\nabc\r\n0\r\n\
             x-forwarded-for: 192.0.2.9\r\nx_forwarded_for: 192.0.2.9\r\nhost: b\r\nx-sum: 1\r\n\r\n",
        )
        .await;
    let passed = async {
        while !upstream.seen().concat().ends_with("3\r\nabc\r\n0\r\nx-sum: 1\r\n\r\n") {
            tokio::task::yield_now().await;
        }
    };
    timeout(LONGEST, passed).await.expect("the trailer that is allowed");
    assert!(!upstream.seen().concat().contains("192.0.2.9"));
}

#[tokio::test]
async fn a_request_after_the_last_one_of_a_connection_is_not_read() {
    for close in ["close", "CLOSE", "x, close"] {
        let upstream = Upstream::start(OK).await;
        let proxy = Running::start(upstream.address, "", COUNTED).await;
        let last = format!("GET / HTTP/1.1\r\nhost: a\r\nconnection: {close}\r\n\r\n");
        let answer = proxy.answer(format!("{last}{SECOND}").as_bytes()).await;
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
        assert!(!upstream.seen().concat().contains("/second"), "{close}");
    }
}
