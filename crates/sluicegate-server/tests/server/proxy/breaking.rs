//! Responses that break off are never whole for the client.

use std::net::SocketAddr;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2::handshake;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use super::support::Running;

const GET: &str = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";

/// Beginnings of responses, and how they end where they reach a client of HTTP/1.1.
const BEGUN: [(&str, &str); 2] = [
    ("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc", "abc"),
    ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n", "abc\r\n"),
];

/// An application that begins one response, and closes the connection when it is told to.
async fn begins(response: &'static str) -> (SocketAddr, oneshot::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (close, closes) = oneshot::channel();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("a request"));
        }
        stream.write_all(response.as_bytes()).await.expect("a reader");
        let _ = closes.await;
    });
    (address, close)
}

#[tokio::test]
async fn a_response_that_breaks_off_is_not_whole_in_http1() {
    for (response, end) in BEGUN {
        let (upstream, close) = begins(response).await;
        let proxy = Running::start(upstream, "", "").await;
        let mut client = proxy.connect().await;
        client.send(GET).await;
        let begun = client.until(end).await;
        assert!(begun.starts_with("HTTP/1.1 200 ") && begun.ends_with(end), "{begun}");
        close.send(()).expect("an application");
        // Neither the last chunk nor more bytes come, and the connection is closed.
        assert_eq!(client.rest().await, "", "after {begun:?}");
    }
}

#[tokio::test]
async fn a_response_that_breaks_off_is_not_whole_in_http2() {
    for (response, _) in BEGUN {
        let (upstream, close) = begins(response).await;
        let proxy = Running::start(upstream, "", "").await;
        let stream = TcpStream::connect(proxy.address).await.expect("a connection");
        let (mut client, connection) =
            handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2");
        tokio::spawn(connection);
        let request = Request::get("http://a/").body(Empty::<Bytes>::new()).expect("a request");
        let mut body = client.send_request(request).await.expect("a response").into_body();
        let first = body.frame().await.expect("a frame").expect("a piece");
        assert_eq!(first.into_data().expect("data"), "abc");
        close.send(()).expect("an application");
        let last = body.frame().await;
        assert!(matches!(last, Some(Err(_))), "{last:?} after {response:?}");
    }
}
