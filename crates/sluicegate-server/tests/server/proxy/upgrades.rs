use super::support::{Running, Upstream};

const UPGRADE: &[u8] =
    b"GET /ws HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-key: k\r\n\r\n";

const SWITCHED: &str =
    "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nhello";

#[tokio::test]
async fn a_websocket_passes_and_holds_its_place_until_it_closes() {
    let upstream = Upstream::start(SWITCHED).await;
    let rules = "[[rules]]\nname = \"ws\"\nkey = \"global\"\nlimits = [\"concurrent 1\"]";
    let proxy = Running::start(upstream.address, "", rules).await;
    let mut client = proxy.connect().await;
    client.send(UPGRADE).await;
    let head = client.until("hello").await;
    assert!(head.starts_with("HTTP/1.1 101 ") && head.contains("upgrade: websocket\r\n"), "{head}");
    client.send("ping, but not HTTP").await;
    while !upstream.seen().concat().ends_with("ping, but not HTTP") {
        tokio::task::yield_now().await;
    }
    assert!(upstream.head().contains("upgrade: websocket\r\n"));
    let refused = proxy.connect_and(UPGRADE).await;
    assert!(refused.starts_with("HTTP/1.1 429 "), "{refused}");
    drop(client);
    // The place is free once the proxy has seen the end.
    loop {
        let answer = proxy.connect_and(UPGRADE).await;
        if answer.starts_with("HTTP/1.1 101 ") {
            break;
        }
        assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_upgrade_that_the_application_declines_is_an_ordinary_request() {
    let upstream = Upstream::start("HTTP/1.1 426 No\r\ncontent-length: 0\r\n\r\n").await;
    let proxy = Running::start(upstream.address, "", "").await;
    let mut client = proxy.connect().await;
    client.send(UPGRADE).await;
    assert!(client.until("\r\n\r\n").await.starts_with("HTTP/1.1 426 "));
    // What follows is a request, which the proxy reads and counts, and no tunnel.
    client.send(b"GET /again HTTP/1.1\r\nhost: a\r\nbad field: x\r\n\r\n").await;
    assert!(client.until("\r\n\r\n").await.starts_with("HTTP/1.1 400 "));
    assert!(!upstream.seen().concat().contains("/again"));
}

#[tokio::test]
async fn a_switch_that_nobody_asked_for_is_a_bad_gateway() {
    for request in [
        &b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"[..],
        b"GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n",
    ] {
        let upstream = Upstream::start(SWITCHED).await;
        let proxy = Running::start(upstream.address, "", "").await;
        let answer = proxy.connect_and(request).await;
        assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    }
}

#[tokio::test]
async fn a_switch_to_another_protocol_is_a_bad_gateway() {
    let upstream =
        Upstream::start("HTTP/1.1 101 No\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n").await;
    let proxy = Running::start(upstream.address, "", "").await;
    let answer = proxy.connect_and(UPGRADE).await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
}
