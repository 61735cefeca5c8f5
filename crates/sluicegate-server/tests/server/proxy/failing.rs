use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

use super::support::{LONGEST, OK, Running, Upstream};

const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

/// A port at which nobody listens. Nobody else can have it as long as the socket lives.
fn nobody() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let address = socket.local_addr().expect("an address");
    (socket, address)
}

#[tokio::test]
async fn an_application_that_is_away_is_a_bad_gateway_and_not_ready() {
    let (_port, address) = nobody();
    let proxy = Running::start(address, "", "").await;
    let answer = proxy.answer(GET).await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(answer.contains("content-type: application/problem+json\r\n"), "{answer}");
    assert!(answer.contains("\"status\":502"), "{answer}");
    assert!(proxy.admin("/readyz").await.starts_with("HTTP/1.1 503 "));
    assert!(proxy.admin("/healthz").await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn a_call_of_grpc_gets_a_status_of_grpc() {
    let (_port, address) = nobody();
    let proxy = Running::start(address, "", "").await;
    let call = |framing: &str| {
        format!(
            "POST /a.B/C HTTP/1.1\r\nhost: a\r\ncontent-type: application/grpc\r\n{framing}\r\n\r\n"
        )
    };
    for (framing, status, message) in [
        (
            "content-length: 0\r\nconnection: close",
            14,
            "the application does not accept connections",
        ),
        ("content-length: 0\r\nhost: b\r\nconnection: close", 13, "the request has "),
    ] {
        let answer = proxy.answer(call(framing).as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(answer.contains("content-type: application/grpc\r\n"), "{answer}");
        assert!(answer.contains(&format!("grpc-status: {status}\r\n")), "{answer}");
        assert!(answer.contains(&format!("grpc-message: {message}")), "{answer}");
        assert!(answer.ends_with("\r\n\r\n"), "{answer}");
    }
}

/// A listener that accepts nothing, with more connections than may wait.
async fn full() -> TcpListener {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let listener = socket.listen(1).expect("a listener");
    let address = listener.local_addr().expect("an address");
    let connected = Arc::new(AtomicUsize::new(0));
    for _ in 0..32 {
        let connected = Arc::clone(&connected);
        tokio::spawn(async move {
            let stream = TcpStream::connect(address).await;
            connected.fetch_add(1, Ordering::Relaxed);
            // Neither closed nor accepted.
            std::future::pending::<()>().await;
            drop(stream);
        });
    }
    // The system lets one more wait than it is told. The other connections are never made.
    let filled = async {
        while connected.load(Ordering::Relaxed) < 2 {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(LONGEST, filled).await.expect("connections");
    listener
}

#[tokio::test]
async fn an_application_that_accepts_no_connection_in_time_is_a_gateway_timeout() {
    let application = full().await;
    let address = application.local_addr().expect("an address");
    let proxy = Running::start(address, "", "connect_timeout = \"100 ms\"").await;
    let answer = proxy.answer(GET).await;
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
    assert!(answer.contains("did not accept a connection in time"), "{answer}");
    let ready = proxy.admin("/readyz").await;
    assert!(ready.starts_with("HTTP/1.1 503 ") && ready.contains("in time"), "{ready}");
}

#[tokio::test]
async fn an_application_that_does_not_answer_is_a_gateway_timeout() {
    let upstream = Upstream::start("").await;
    let proxy = Running::start(upstream.address, "", "response_timeout = \"50 ms\"").await;
    let answer = proxy.answer(GET).await;
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
}

#[tokio::test]
async fn an_application_that_answers_nonsense_is_a_bad_gateway() {
    for nonsense in [
        "nonsense\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nbad name: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nx: a\r\n folded\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nx: a\rset-cookie: b\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ncontent-length: -2\r\n\r\nok",
        "HTTP/1.1 099 Odd\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/2.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nok",
    ] {
        let upstream = Upstream::start(nonsense).await;
        let proxy = Running::start(upstream.address, "", "").await;
        let answer = proxy.answer(GET).await;
        assert!(answer.starts_with("HTTP/1.1 502 "), "{nonsense}: {answer}");
    }
}

#[tokio::test]
async fn a_response_with_two_lengths_is_written_with_one() {
    let upstream = Upstream::start(
        "HTTP/1.1 200 OK\r\ncontent-length: 40\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    )
    .await;
    let proxy = Running::start(upstream.address, "", "").await;
    let answer = proxy.answer(GET).await;
    assert!(answer.contains("transfer-encoding: chunked\r\n"), "{answer}");
    assert!(!answer.contains("content-length"), "{answer}");
}

#[tokio::test]
async fn more_requests_than_the_application_may_have_are_unavailable() {
    let upstream = Upstream::start("").await;
    let proxy = Running::start(upstream.address, "", "requests = 1").await;
    let mut first = proxy.connect().await;
    first.send(GET).await;
    while upstream.seen().is_empty() {
        tokio::task::yield_now().await;
    }
    let answer = proxy.answer(GET).await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("\r\nretry-after: 1\r\n"), "{answer}");
    assert!(answer.contains("\r\ncache-control: no-store\r\n"), "{answer}");
}

/// How many requests the application has seen.
fn heads(upstream: &Upstream) -> usize {
    upstream.seen().concat().matches("\r\n\r\n").count()
}

#[tokio::test]
async fn a_request_beyond_those_of_the_application_is_not_charged() {
    let upstream = Upstream::start("").await;
    let rule = "[[rules]]\nname = \"a\"\nkey = \"global\"\nlimits = [\"2/day\"]";
    let proxy = Running::start(upstream.address, "", &format!("requests = 1\n{rule}")).await;
    let mut first = proxy.connect().await;
    first.send(GET).await;
    while upstream.seen().is_empty() {
        tokio::task::yield_now().await;
    }
    for _ in 0..3 {
        let answer = proxy.answer(GET).await;
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    }
    upstream.answer(OK);
    assert!(first.rest().await.starts_with("HTTP/1.1 200 "));
    // The first request has used one of two.
    // The place of the first request may not be free at once. A request is refused, or the application sees it.
    let second = async {
        loop {
            let seen = heads(&upstream);
            let mut client = proxy.connect().await;
            client.send(GET).await;
            let passed = async {
                while heads(&upstream) == seen {
                    sleep(Duration::from_millis(1)).await;
                }
            };
            tokio::select! {
                answer = client.until("503") => assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}"),
                () = passed => break client,
            }
        }
    };
    let mut second = timeout(LONGEST, second).await.expect("a place");
    upstream.answer(OK);
    let answer = second.rest().await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[tokio::test]
async fn a_refusal_is_in_the_dialect_of_the_file() {
    let upstream = Upstream::start("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let rule = "[[rules]]\nname = \"a\"\nkey = \"global\"\nlimits = [\"1/day\"]";
    let dialect = "[dialect]\napi = \"anthropic\"\nrequests = \"a\"";
    let proxy = Running::start(upstream.address, "", &format!("{rule}\n{dialect}")).await;
    let served = proxy.answer(GET).await;
    assert!(served.contains("anthropic-ratelimit-requests-remaining: 0\r\n"), "{served}");
    let refused = proxy.answer(GET).await;
    assert!(refused.starts_with("HTTP/1.1 429 "), "{refused}");
    assert!(refused.contains("{\"type\":\"error\",\"error\":{"), "{refused}");
}

#[tokio::test]
async fn a_response_that_repeats_its_length_is_written_with_one() {
    for lengths in ["content-length: 2, 2", "content-length: 2\r\ncontent-length: 2"] {
        let answer = format!("HTTP/1.1 200 OK\r\n{lengths}\r\n\r\nok");
        let upstream = Upstream::start(answer.leak()).await;
        let proxy = Running::start(upstream.address, "", "").await;
        let answer = proxy.answer(GET).await;
        assert_eq!(answer.matches("content-length: 2\r\n").count(), 1, "{answer}");
        assert_eq!(answer.matches("content-length").count(), 1, "{answer}");
    }
}

#[tokio::test]
async fn a_second_answer_to_one_request_is_for_nobody() {
    const SECOND: &str = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecond";
    let upstream = Upstream::start(format!("{OK}{SECOND}").leak()).await;
    let proxy = Running::start(upstream.address, "", "").await;
    for _ in 0..5 {
        let answer = proxy.answer(GET).await;
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nok"), "{answer}");
    }
}

#[tokio::test]
async fn interim_responses_of_the_application_are_not_the_answer() {
    const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
    let upstream = Upstream::start(format!("{HINTS}{HINTS}{OK}").leak()).await;
    let proxy = Running::start(upstream.address, "", "").await;
    let answer = proxy.answer(GET).await;
    let answer = answer.strip_prefix(&HINTS.repeat(2)).expect("the hints");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nok"), "{answer}");
}
