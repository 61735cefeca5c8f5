use sluicegate_server::admin::Token;

use super::support::{OK, Running, Upstream, proxy};

const GET: &[u8] = b"GET /a?b=c HTTP/1.1\r\nhost: example.com\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn a_request_and_its_response_are_passed_on() {
    let upstream = Upstream::start(
        "HTTP/1.1 203 Good\r\ncontent-length: 2\r\nx-app: 1\r\nconnection: x-hop\r\nx-hop: 1\r\n\r\nok",
    )
    .await;
    let proxy = Running::start(upstream.address, "", "").await;
    let answer = proxy
        .answer(
            b"POST /a?b=c HTTP/1.1\r\nHost: example.com\r\nContent-Length: 3\r\nX-Forwarded-For: 8.8.8.8\r\n\
              Connection: close, X-Hop\r\nX-Hop: 1\r\nTE: trailers, gzip\r\nX-Own: 1\r\n\r\nabc",
        )
        .await;
    assert!(answer.starts_with("HTTP/1.1 203 "), "{answer}");
    assert!(answer.contains("x-app: 1\r\n") && answer.ends_with("\r\n\r\nok"), "{answer}");
    assert!(!answer.contains("x-hop"), "{answer}");
    let seen = upstream.seen().concat();
    assert!(seen.starts_with("POST /a?b=c HTTP/1.1\r\n"), "{seen}");
    assert!(seen.ends_with("\r\n\r\nabc"), "{seen}");
    for field in [
        "\r\nhost: example.com\r\n",
        "x-own: 1\r\n",
        "te: trailers\r\n",
        "via: 1.1 sluicegate\r\n",
        "x-forwarded-for: 127.0.0.1\r\n",
        "x-forwarded-proto: http\r\n",
        "x-forwarded-host: example.com\r\n",
    ] {
        assert_eq!(seen.matches(field).count(), 1, "{field} in {seen}");
    }
    assert!(!seen.contains("x-hop"), "{seen}");
}

#[tokio::test]
async fn limits_refuse_before_the_application_is_asked() {
    let upstream = Upstream::start(OK).await;
    let rules = "[[rules]]\nname = \"api\"\nkey = \"ip\"\nlimits = [\"1/hour\"]";
    let proxy = Running::start(upstream.address, "", rules).await;
    assert!(proxy.answer(GET).await.starts_with("HTTP/1.1 200 "));
    let refused = proxy.answer(GET).await;
    assert!(refused.starts_with("HTTP/1.1 429 ") && refused.contains("retry-after: "), "{refused}");
    assert_eq!(upstream.seen().len(), 1);
}

#[tokio::test]
async fn limits_read_the_fields_that_the_application_sees() {
    let upstream = Upstream::start(OK).await;
    let rules =
        "[[rules]]\nname = \"keys\"\nkey = { header = \"x-api-key\" }\nlimits = [\"1/hour\"]";
    let proxy = Running::start(upstream.address, "", rules).await;
    let ask = |fields: &str| format!("GET / HTTP/1.1\r\nhost: a\r\n{fields}\r\n");
    // The application would see no key, so this is a request without one, and charges nobody's.
    for fields in ["", "x-api-key: alice\r\n"] {
        let unseen = ask(&format!("connection: close, X-Api-Key\r\n{fields}"));
        let answer = proxy.answer(unseen.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    }
    assert_eq!(upstream.seen(), [""; 0], "nothing was passed on");
    let seen = ask("connection: close\r\nx-api-key: alice\r\n");
    assert!(proxy.answer(seen.as_bytes()).await.starts_with("HTTP/1.1 200 "));
    assert!(proxy.answer(seen.as_bytes()).await.starts_with("HTTP/1.1 429 "));
    assert_eq!(upstream.seen().concat().matches("alice").count(), 1);
}

#[tokio::test]
async fn a_client_cannot_have_its_address_removed() {
    let upstream = Upstream::start(OK).await;
    let rules = "[proxies]\ntrusted = [\"127.0.0.1\"]\nheader = \"X-Client-IP\"\n\
                 [[rules]]\nname = \"all\"\nkey = \"ip\"\nlimits = [\"1/hour\"]";
    let proxy = Running::start(upstream.address, "", rules).await;
    for (address, status) in [("192.0.2.1", 200), ("192.0.2.2", 200), ("192.0.2.1", 429)] {
        let request = format!(
            "GET / HTTP/1.1\r\nhost: a\r\nconnection: close, x-client-ip\r\nx-client-ip: {address}\r\n\r\n"
        );
        let answer = proxy.answer(request.as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{address}: {answer}");
    }
}

#[tokio::test]
async fn names_that_an_application_takes_for_limited_ones_are_dropped() {
    let rules =
        "[[rules]]\nname = \"keys\"\nkey = { header = \"x-api-key\" }\nlimits = [\"1/hour\"]";
    let request = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\nx-api-key: alice\r\n\
        X_Api_Key: bob\r\nx.api.key: bob\r\nContent_Length: 7\r\nX_Real_IP: bob\r\n\r\n";
    let upstream = Upstream::start(OK).await;
    let proxy = Running::start(upstream.address, "", rules).await;
    assert!(proxy.answer(request).await.starts_with("HTTP/1.1 200 "));
    let head = upstream.head();
    assert!(head.contains("x-api-key: alice") && !head.contains("bob"), "{head}");
    assert!(!head.contains('_'), "{head}");
    // On demand they pass, but for those that stand for what the proxy itself says or reads.
    let upstream = Upstream::start(OK).await;
    let proxy = Running::start(upstream.address, "underscores = true", rules).await;
    assert!(proxy.answer(request).await.starts_with("HTTP/1.1 200 "));
    let head = upstream.head();
    assert!(head.contains("x_api_key: bob") && head.contains("x.api.key: bob"), "{head}");
    assert!(!head.contains("content_length") && !head.contains("x_real_ip"), "{head}");
}

#[tokio::test]
async fn only_a_named_proxy_says_who_the_client_is() {
    let fields = "X-Real-IP: 192.0.2.66\r\nTrue-Client-IP: 192.0.2.66\r\nCF-Connecting-IP: 192.0.2.66\r\n\
        X-Client-IP: 192.0.2.66\r\nFastly-Client-IP: 192.0.2.66\r\nForwarded: for=192.0.2.66\r\n\
        X-Cluster-Client-IP: 192.0.2.66\r\nX-Forwarded-For: 192.0.2.66\r\nX-Edge: 192.0.2.66\r\n";
    let request = format!("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{fields}\r\n");
    for (trusted, seen) in [("10.0.0.0/8", 0), ("127.0.0.1", 9)] {
        let upstream = Upstream::start(OK).await;
        let proxies = format!("[proxies]\ntrusted = [\"{trusted}\"]\nheader = \"X-Edge\"");
        let proxy = Running::start(upstream.address, "", &proxies).await;
        assert!(proxy.answer(request.as_bytes()).await.starts_with("HTTP/1.1 200 "));
        assert_eq!(upstream.head().matches("192.0.2.66").count(), seen, "{}", upstream.head());
    }
    // Limits read what the application sees: this key is missing, and not the client's to choose.
    let upstream = Upstream::start(OK).await;
    let rules = "[proxies]\ntrusted = [\"10.0.0.0/8\"]\n[[rules]]\nname = \"by\"\nkey = { header = \"x-real-ip\" }\n\
                 limits = [\"1/hour\"]";
    let proxy = Running::start(upstream.address, "", rules).await;
    assert!(proxy.answer(request.as_bytes()).await.starts_with("HTTP/1.1 400 "));
}

#[tokio::test]
async fn early_hints_are_passed_on_before_the_response() {
    const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\nconnection: x-hop\r\n\
        x-hop: 1\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n";
    const PASSED: &str = "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n\
        HTTP/1.1 102 Processing\r\n\r\n";
    // At once, with the response.
    let upstream = Upstream::start(format!("{HINTS}{OK}").leak()).await;
    let proxy = Running::start(upstream.address, "", "").await;
    let answer = proxy.answer(&[GET, GET].concat()[..]).await;
    assert!(answer.starts_with(&format!("{PASSED}HTTP/1.1 200 OK\r\n")), "{answer}");
    // One after the other on a connection, and long before the response.
    let upstream = Upstream::start(HINTS).await;
    let proxy = Running::start(upstream.address, "", "").await;
    let mut client = proxy.connect().await;
    for _ in 0..2 {
        client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        let hints = client.until("102 Processing\r\n\r\n").await;
        assert_eq!(hints, PASSED);
        upstream.answer(OK);
        assert!(client.until("ok").await.starts_with("HTTP/1.1 200 OK\r\n"));
    }
    // HTTP/1.0 has none.
    let upstream = Upstream::start(format!("{HINTS}{OK}").leak()).await;
    let proxy = Running::start(upstream.address, "", "").await;
    let answer = proxy.answer(b"GET / HTTP/1.0\r\nhost: a\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");
}

#[tokio::test]
async fn an_answer_says_whether_its_connection_goes_on() {
    let rules = "[[rules]]\nname = \"api\"\nkey = \"ip\"\nlimits = [\"1/hour\"]";
    let upstream = Upstream::start(OK).await;
    let proxy = Running::start(upstream.address, "", rules).await;
    let post = |length: usize, more: &str| {
        format!("POST / HTTP/1.1\r\nhost: a\r\n{more}content-length: {length}\r\n\r\n")
    };
    let mut client = proxy.connect().await;
    client.send(post(0, "")).await;
    assert!(client.until("ok").await.starts_with("HTTP/1.1 200 "));
    // A short body that has come is read, and the connection goes on.
    for _ in 0..2 {
        client.send(post(3, "") + "abc").await;
        let refused = client.until("}").await;
        assert!(refused.starts_with("HTTP/1.1 429 "), "{refused}");
        assert!(!refused.contains("connection: close"), "{refused}");
    }
    // A body that does not come, that waits to be asked for, or that is long: the connection ends, and says so.
    for (length, more, body) in
        [(3, "", ""), (3, "expect: 100-continue\r\n", ""), (1 << 20, "", &*"a".repeat(200 * 1024))]
    {
        let mut client = proxy.connect().await;
        client.send(post(length, more)).await;
        client.send(body).await;
        let refused = client.until("\r\n\r\n").await;
        assert!(refused.starts_with("HTTP/1.1 429 "), "{length}: {refused}");
        assert!(refused.contains("connection: close\r\n"), "{length}: {refused}");
    }
}

#[tokio::test]
async fn options_about_the_whole_server_are_passed_on() {
    let upstream = Upstream::start(OK).await;
    let proxy = Running::start(upstream.address, "", "").await;
    let asked = b"OPTIONS * HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let answer = proxy.answer(asked).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(upstream.head().starts_with("OPTIONS * HTTP/1.1\r\n"), "{}", upstream.head());
}

#[tokio::test]
async fn a_throttle_sheds_with_503() {
    let upstream = Upstream::start("").await;
    let throttle = "[throttle]\ncapacity = { in_flight = 1 }\nqueue = { cost = 1 }";
    let proxy = Running::start(upstream.address, "", throttle).await;
    let mut first = proxy.connect().await;
    first.send(GET).await;
    while upstream.seen().is_empty() {
        tokio::task::yield_now().await;
    }
    let mut others = Vec::new();
    for _ in 0..3 {
        let mut client = proxy.connect().await;
        client.send(GET).await;
        others.push(tokio::spawn(async move { client.until("\r\n\r\n").await }));
    }
    let shed = others.pop().expect("a client").await.expect("no panic");
    assert!(shed.starts_with("HTTP/1.1 503 "), "{shed}");
}

/// The application never answers, so those who wait are answered by the time that the queue is for.
#[tokio::test]
async fn nobody_waits_for_longer_than_the_queue_of_a_throttle() {
    let upstream = Upstream::start("").await;
    let throttle = "[throttle]\ncapacity = { in_flight = 4 }\nqueue = \"200 ms\"";
    let proxy = Running::start(upstream.address, "", throttle).await;
    let mut running = Vec::new();
    for count in 1..=4 {
        let mut client = proxy.connect().await;
        client.send(GET).await;
        running.push(client);
        while upstream.seen().len() < count {
            tokio::task::yield_now().await;
        }
    }
    let mut waiting = Vec::new();
    for _ in 0..8 {
        let mut client = proxy.connect().await;
        client.send(GET).await;
        waiting.push(tokio::spawn(async move { client.until("\r\n\r\n").await }));
    }
    for client in waiting {
        let shed = client.await.expect("no panic");
        assert!(shed.starts_with("HTTP/1.1 503 "), "{shed}");
    }
    assert_eq!(upstream.seen().len(), 4);
}

#[tokio::test]
async fn a_body_streams_with_its_trailers() {
    let upstream = Upstream::start(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n2\r\nok\r\n0\r\nx-sum: 7\r\n\r\n",
    )
    .await;
    let proxy = Running::start(upstream.address, "", "").await;
    let answer = proxy
        .answer(
            b"PUT / HTTP/1.1\r\nhost: a\r\nte: trailers\r\nconnection: close\r\ntrailer: x-end\r\n\
              transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx-end: 1\r\n\r\n",
        )
        .await;
    assert!(answer.contains("2\r\nok\r\n") && answer.contains("x-sum: 7\r\n"), "{answer}");
    let seen = upstream.seen().concat();
    assert!(seen.contains("3\r\nabc\r\n0\r\nx-end: 1\r\n\r\n"), "{seen}");
}

#[tokio::test]
async fn the_client_is_told_to_continue_only_once_the_request_is_admitted() {
    let upstream = Upstream::start(OK).await;
    let rules = "[[rules]]\nname = \"api\"\nkey = \"ip\"\nlimits = [\"1/hour\"]";
    let proxy = Running::start(upstream.address, "", rules).await;
    let head = b"POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n";
    let mut client = proxy.connect().await;
    client.send(head).await;
    let first = client.until("\r\n\r\n").await;
    assert!(first.starts_with("HTTP/1.1 100 "), "{first}");
    client.send(b"abc").await;
    assert!(client.until("ok").await.contains("HTTP/1.1 200 "));
    let mut client = proxy.connect().await;
    client.send(head).await;
    let refused = client.until("\r\n\r\n").await;
    assert!(refused.starts_with("HTTP/1.1 429 "), "{refused}");
}

#[tokio::test]
async fn health_is_on_the_admin_port_alone() {
    let upstream = Upstream::start("HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n").await;
    let proxy = Running::start(upstream.address, "", "").await;
    assert!(proxy.admin("/healthz").await.starts_with("HTTP/1.1 200 "));
    assert!(proxy.admin("/readyz").await.starts_with("HTTP/1.1 200 "));
    let health = b"GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    assert!(proxy.answer(health).await.starts_with("HTTP/1.1 404 "));
}

/// Another site may have pointed its name at this host.
#[tokio::test]
async fn what_the_admin_port_shows_is_for_operators_alone() {
    let upstream = Upstream::start(OK).await;
    let open = Running::start(upstream.address, "", "").await;
    let token = Token::new("0123456789abcdef").expect("a token");
    let url = format!("http://{}", upstream.address);
    let guarded = Running::run(proxy(&url, "", "").token(token)).await;
    for path in ["/v1/status", "/v1/peaks", "/v1/openapi.json", "/rlconfig"] {
        assert!(open.admin(path).await.starts_with("HTTP/1.1 403 "), "{path}");
        assert!(guarded.admin(path).await.starts_with("HTTP/1.1 401 "), "{path}");
    }
    assert!(guarded.admin("/readyz").await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn a_query_without_a_path_is_about_the_root_for_limits_and_the_application() {
    let upstream = Upstream::start(OK).await;
    let rules =
        "[[rules]]\nname = \"root\"\nkey = \"ip\"\nwhen = { path = \"/\" }\nlimits = [\"1/hour\"]";
    let proxy = Running::start(upstream.address, "", rules).await;
    let ask =
        |target: &str| format!("GET {target} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    assert!(proxy.answer(ask("http://a?x=1").as_bytes()).await.starts_with("HTTP/1.1 200 "));
    assert!(upstream.head().starts_with("GET /?x=1 HTTP/1.1\r\n"));
    for target in ["/", "http://a", "http://a?y", "HTTP://a/?y", "/?"] {
        let answer = proxy.answer(ask(target).as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 429 "), "{target}: {answer}");
    }
}
