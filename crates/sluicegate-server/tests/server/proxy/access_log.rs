//! What the access log says of responses without a body, and of those that break off.

use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2::handshake;
use hyper_util::rt::{TokioExecutor, TokioIo};
use sluicegate_tests::log::Log;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::support::{LONGEST, OK, Running, Upstream};

/// The lines of the access log. Tests of other paths write here too.
static LOG: LazyLock<Log> = LazyLock::new(|| {
    let log = Log::of("sluicegate_proxy::access");
    tracing::subscriber::set_global_default(log.clone()).expect("no log");
    log
});

/// Whether the log says that the response to the request for `path` was whole, with its status and bytes.
async fn logged(path: &str) -> (String, String, String) {
    let part = format!("path={path:?}");
    let line = async {
        loop {
            match LOG.lines(&part).pop() {
                Some(line) => break line,
                None => sleep(Duration::from_millis(1)).await,
            }
        }
    };
    let line = timeout(LONGEST, line).await.expect("a line");
    let field = |name: &str| {
        let (_, value) = line.split_once(&format!(" {name}=")).unwrap_or_default();
        value.split(' ').next().unwrap_or_default().to_owned()
    };
    (field("whole"), field("status"), field("bytes"))
}

/// Responses that are whole: the method, the response, its status, and the bytes of its body.
const WHOLE: [(&str, &str, &str, &str); 7] = [
    ("HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n", "200", "0"),
    ("HEAD", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "200", "0"),
    ("GET", "HTTP/1.1 204 No Content\r\n\r\n", "204", "0"),
    ("GET", "HTTP/1.1 304 Not Modified\r\ncontent-length: 10\r\n\r\n", "304", "0"),
    ("GET", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", "200", "0"),
    ("GET", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", "200", "0"),
    ("GET", OK, "200", "2"),
];

#[tokio::test]
async fn responses_without_a_body_are_whole_in_http1() {
    LazyLock::force(&LOG);
    for (at, (method, response, status, bytes)) in WHOLE.into_iter().enumerate() {
        let upstream = Upstream::start(response).await;
        let proxy = Running::start(upstream.address, "", "").await;
        let path = format!("/http1/{at}");
        let head = format!("{method} {path} HTTP/1.1\r\nhost: a\r\n\r\n");
        let mut client = proxy.connect().await;
        client.send(head).await;
        client.until("\r\n\r\n").await;
        // The connection of the client stays open.
        let expected = ("true".to_owned(), status.to_owned(), bytes.to_owned());
        assert_eq!(logged(&path).await, expected, "{method} {response:?}");
    }
}

#[tokio::test]
async fn responses_without_a_body_are_whole_in_http2() {
    LazyLock::force(&LOG);
    for (at, (method, response, status, bytes)) in WHOLE.into_iter().enumerate() {
        let upstream = Upstream::start(response).await;
        let proxy = Running::start(upstream.address, "", "").await;
        let path = format!("/http2/{at}");
        let stream = TcpStream::connect(proxy.address).await.expect("a connection");
        let (mut client, connection) =
            handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2");
        tokio::spawn(connection);
        let request = Request::builder().method(method).uri(format!("http://a{path}"));
        let request = request.body(Empty::<Bytes>::new()).expect("a request");
        let answer = client.send_request(request).await.expect("a response");
        answer.into_body().collect().await.expect("a whole body");
        let expected = ("true".to_owned(), status.to_owned(), bytes.to_owned());
        assert_eq!(logged(&path).await, expected, "{method} {response:?}");
    }
}

#[tokio::test]
async fn a_response_that_its_client_leaves_is_not_whole() {
    LazyLock::force(&LOG);
    let upstream = Upstream::start("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc").await;
    let proxy = Running::start(upstream.address, "", "").await;
    let mut client = proxy.connect().await;
    client.send("GET /left HTTP/1.1\r\nhost: a\r\n\r\n").await;
    client.until("abc").await;
    drop(client);
    let expected = ("false".to_owned(), "200".to_owned(), "3".to_owned());
    assert_eq!(logged("/left").await, expected);
}
