use super::support::{OK, Running, Upstream};

#[tokio::test]
async fn no_request_is_lost_when_the_proxy_stops() {
    let upstream = Upstream::start("").await;
    let mut proxy = Running::start(upstream.address, "", "").await;
    let mut client = proxy.connect().await;
    client.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    while upstream.seen().is_empty() {
        tokio::task::yield_now().await;
    }
    proxy.stop();
    upstream.answer(OK);
    let answer = client.rest().await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("ok"), "{answer}");
    proxy.stopped().await;
}

#[tokio::test]
async fn an_upgraded_connection_does_not_keep_the_proxy_for_ever() {
    let switched = "HTTP/1.1 101 Go\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
    let upstream = Upstream::start(switched).await;
    let proxy = Running::start(upstream.address, "", "").await;
    let mut client = proxy.connect().await;
    client
        .send(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n")
        .await;
    client.until("\r\n\r\n").await;
    proxy.stopped().await;
    client.rest().await;
}
