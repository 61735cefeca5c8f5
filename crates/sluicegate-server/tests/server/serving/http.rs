//! A client of HTTP/1 that hides nothing.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Posts JSON to `path`. Returns the status, and the body if it is JSON.
pub(crate) async fn post(address: &str, path: &str, body: &str) -> (u16, Value) {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n",
    );
    let (status, _, body) = send(address, &(head + body)).await;
    (status, serde_json::from_str(&body).unwrap_or_default())
}

/// Sends a request as it is. Returns the status, the head and the body of the answer.
pub(crate) async fn send(address: &str, request: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    // A server that refuses a long body need not read all of it.
    let _ = stream.write_all(request.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.expect("a status"), head.to_lowercase(), body.to_owned())
}
