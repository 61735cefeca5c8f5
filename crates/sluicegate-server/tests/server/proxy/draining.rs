use super::support::{LONGEST, OK, Running, Upstream, proxy};

const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";

/// A proxy that goes on for longer than a test takes once it is asked to stop.
async fn start_with_delay(upstream: &Upstream) -> Running {
    let proxy = proxy(&format!("http://{}", upstream.address), "", "");
    Running::run(proxy.drain_delay(LONGEST)).await
}

/// Asks the proxy to stop, and waits until load balancers can see it.
async fn stop(proxy: &mut Running) {
    proxy.stop();
    while !proxy.admin("/readyz").await.starts_with("HTTP/1.1 503 ") {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_proxy_that_stops_says_with_each_answer_that_it_is_the_last() {
    let upstream = Upstream::start(OK).await;
    let mut proxy = start_with_delay(&upstream).await;
    let mut client = proxy.connect().await;
    client.send(GET).await;
    let answer = client.until("ok").await;
    assert!(!answer.contains("connection:"), "{answer}");
    stop(&mut proxy).await;
    client.send(GET).await;
    let answer = client.rest().await;
    assert!(answer.contains("\r\nconnection: close\r\n") && answer.ends_with("ok"), "{answer}");
}

#[tokio::test]
async fn a_websocket_opens_while_the_proxy_is_about_to_stop() {
    let switched = "HTTP/1.1 101 Go\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
    let upstream = Upstream::start(switched).await;
    let mut proxy = start_with_delay(&upstream).await;
    stop(&mut proxy).await;
    let mut client = proxy.connect().await;
    client
        .send(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n")
        .await;
    let answer = client.until("\r\n\r\n").await;
    assert!(answer.contains("\r\nconnection: upgrade\r\n"), "{answer}");
}

#[tokio::test]
async fn no_request_is_lost_when_the_proxy_stops() {
    let upstream = Upstream::start("").await;
    let mut proxy = Running::start(upstream.address, "", "").await;
    let mut client = proxy.connect().await;
    client.send(GET).await;
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
