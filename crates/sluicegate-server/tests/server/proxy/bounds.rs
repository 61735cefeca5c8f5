use std::time::Duration;

use tokio::io::AsyncWriteExt;

use super::support::{OK, Running, Upstream, upload};

#[tokio::test]
async fn a_client_that_never_ends_its_head_is_cut_off() {
    let upstream = Upstream::start(OK).await;
    let proxy = Running::start(upstream.address, "head_timeout = \"50 ms\"", "").await;
    for begun in ["", "G", "GET / HTTP/1.1\r\nhost:", "PRI * HTTP/2.0\r\n"] {
        let mut client = proxy.connect().await;
        client.send(begun).await;
        client.rest().await;
    }
    // Also after a first request.
    let mut client = proxy.connect().await;
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    client.until("ok").await;
    client.send("GET / HTTP/1.1\r\n").await;
    client.rest().await;
    assert_eq!(upstream.seen().len(), 1);
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let upstream = Upstream::start(OK).await;
    let proxy = Running::start(upstream.address, "idle_timeout = \"50 ms\"", "").await;
    let mut client = proxy.connect().await;
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert!(client.rest().await.ends_with("ok"));
}

#[tokio::test]
async fn a_body_that_never_comes_is_a_request_timeout() {
    let upstream = Upstream::start(OK).await;
    let proxy = Running::start(upstream.address, "read_timeout = \"50 ms\"", "").await;
    let answer = proxy.answer(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nabc").await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
}

#[tokio::test]
async fn a_large_head_is_refused() {
    let upstream = Upstream::start(OK).await;
    let proxy = Running::start(upstream.address, "head = 8192", "").await;
    let long = "a".repeat(9_000);
    let request = format!("GET / HTTP/1.1\r\nhost: a\r\nx: {long}\r\n\r\n");
    let answer = proxy.answer(request.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    assert_eq!(upstream.seen(), [""; 0]);
}

#[tokio::test]
async fn an_application_never_gets_more_fields_than_it_may_have() {
    let ask = |fields: usize| {
        let many: String = (0..fields).map(|at| format!("x-{at}: 1\r\n")).collect();
        format!("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{many}\r\n")
    };
    for (listen, passes) in [("", 192), ("fields = 100", 92), ("fields = 1000", 992)] {
        let upstream = Upstream::start(OK).await;
        let proxy = Running::start(upstream.address, listen, "").await;
        for (fields, status) in [(passes, 200), (passes + 1, 431), (passes + 9, 431)] {
            let answer = proxy.answer(ask(fields).as_bytes()).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{fields}: {answer}");
        }
        let got = upstream.head().lines().count() - 2;
        assert!(got > passes && got <= passes + 8, "{got}");
    }
}

#[tokio::test]
async fn a_bound_on_the_fields_of_requests_is_none_on_those_of_responses() {
    let many: String = (0..20).map(|at| format!("x-{at}: 1\r\n")).collect();
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n{many}\r\nok");
    let upstream = Upstream::start(answer.leak()).await;
    let proxy = Running::start(upstream.address, "fields = 16", "").await;
    let answer = proxy.answer(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nok"), "{answer}");
    assert_eq!(answer.matches("\r\nx-").count(), 20, "{answer}");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut_off() {
    // More than the buffers of sockets hold.
    let body = "a".repeat(32 * 1024 * 1024);
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let upstream = Upstream::start(answer.leak()).await;
    let rules = "[[rules]]\nname = \"one\"\nkey = \"global\"\nlimits = [\"concurrent 1\"]";
    let proxy = Running::start(upstream.address, "write_timeout = \"30 s\"", rules).await;
    let request = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    let mut lazy = proxy.connect().await;
    lazy.send(request).await;
    while upstream.seen().is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(proxy.connect_and(request).await.starts_with("HTTP/1.1 429 "));
    // Time goes to the end of the write, once nothing else is left to do.
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(60)).await;
    tokio::time::resume();
    while proxy.connect_and(request).await.starts_with("HTTP/1.1 429 ") {
        tokio::task::yield_now().await;
    }
    let read = lazy.rest().await;
    assert!(read.len() < body.len(), "{} bytes", read.len());
}

#[tokio::test]
async fn a_client_that_sends_all_of_a_refused_body_reads_why() {
    let upstream = Upstream::start(OK).await;
    let rules = "[[rules]]\nname = \"one\"\nkey = \"global\"\nlimits = [\"1/hour\"]";
    let proxy = Running::start(upstream.address, "", rules).await;
    let answer = proxy.connect_and(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    // By the limit, and by the proxy itself.
    for (host, status) in [("a", 429), ("a b", 400)] {
        let mut client = proxy.connect().await;
        let request = upload(&format!("POST / HTTP/1.1\r\nhost: {host}\r\n"));
        client.0.write_all(&request).await.expect("a connection that takes all of it");
        let answer = client.rest().await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    }
}
