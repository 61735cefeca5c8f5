//! How the server starts, changes and stops.

use std::time::Duration;

use crate::server::start;

const ONE: &str = "domain: edge
descriptors:
- key: user
  rate_limit: { unit: hour, requests_per_unit: 1 }
";

#[tokio::test]
async fn a_changed_file_is_in_force_at_once_and_keeps_what_was_spent() {
    let mut server = start(ONE).await;
    assert!(!server.is_over(&[("user", "a")]).await);
    assert!(server.is_over(&[("user", "a")]).await);
    std::fs::write(&server.file, ONE.replace("unit: 1 }", "unit: 3 }")).expect("a file");
    server.reload.now().expect("a valid file");
    for over in [false, false, true] {
        assert_eq!(server.is_over(&[("user", "a")]).await, over);
    }
}

#[tokio::test]
async fn a_broken_file_leaves_the_limits_as_they_were() {
    let mut server = start(ONE).await;
    std::fs::write(&server.file, ONE.replace("hour", "fortnight")).expect("a file");
    let problem = server.reload.now().expect_err("a broken file").to_string();
    assert!(problem.contains(":4:23:") && problem.contains("fortnight"), "{problem}");
    assert!(!server.is_over(&[("user", "a")]).await);
    assert!(server.is_over(&[("user", "a")]).await);
}

#[tokio::test]
async fn a_server_that_stops_answers_every_call_that_it_has_accepted() {
    let mut server = start(ONE).await;
    let stop = server.stop.take().expect("a running server");
    let calls: Vec<_> = (0..200)
        .map(|call| {
            let mut client = server.client.clone();
            tokio::spawn(async move {
                let name = format!("user {call}");
                let descriptors = vec![crate::server::descriptor(&[("user", &name)])];
                let domain = "edge".to_owned();
                let request = envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest {
                    domain,
                    descriptors,
                    hits_addend: 0,
                };
                client.should_rate_limit(request).await.map(|_| ())
            })
        })
        .collect();
    // Some are answered, some are under way.
    assert!(!server.is_over(&[("user", "a")]).await);
    stop.send(()).expect("a running server");
    for call in calls {
        call.await.expect("no panic").expect("an answer");
    }
    drop(server.client);
    let served = tokio::time::timeout(Duration::from_secs(10), server.served).await;
    served.expect("an end").expect("no panic");
}

#[tokio::test]
async fn the_json_of_the_protocol_gets_the_same_answer() {
    let mut server = start(ONE).await;
    let ask = |body: &'static str| post(server.http.clone(), body);
    let body = r#"{"domain":"edge","descriptors":[{"entries":[{"key":"user","value":"a"}]}]}"#;
    let (status, answer) = ask(body).await;
    assert_eq!(status, 200);
    let until_reset = answer["statuses"][0]["durationUntilReset"].as_str().expect("a time");
    assert!(until_reset.ends_with('s'), "{answer}");
    assert_eq!(answer["overallCode"], "OK");
    assert_eq!(answer["statuses"][0]["currentLimit"]["unit"], "HOUR");
    assert_eq!(answer["statuses"][0]["currentLimit"]["requestsPerUnit"], 1);
    let (status, answer) = ask(body).await;
    assert_eq!((status, &answer["overallCode"]), (429, &"OVER_LIMIT".into()));
    assert!(server.is_over(&[("user", "a")]).await);
}

#[tokio::test]
async fn json_that_makes_no_sense_is_refused_as_such() {
    let server = start(ONE).await;
    for body in [
        "",
        "{",
        "[]",
        "{}",
        r#"{"domain":"edge"}"#,
        r#"{"domain":"","descriptors":[{}]}"#,
        r#"{"domain":"edge","descriptors":[{"hitsAddend":"-1"}]}"#,
        r#"{"domain":"edge","descriptors":[{"hitsAddend":1e3}]}"#,
        r#"{"domain":"edge","hitsAddend":4294967296,"descriptors":[{}]}"#,
        r#"{"domain":"edge","descriptor":[{}]}"#,
        r#"{"domain":"edge","descriptors":[{"limit":{"unit":"FORTNIGHT"}}]}"#,
    ] {
        let (status, _) = post(server.http.clone(), body).await;
        assert_eq!(status, 400, "{body}");
    }
    let long = format!(r#"{{"domain":"{}"}}"#, "x".repeat(100_000));
    assert_eq!(post(server.http.clone(), &long).await.0, 413);
}

/// Posts to `/json`, over HTTP/1. Returns the status, and the body if it is JSON.
async fn post(address: String, body: &str) -> (u16, serde_json::Value) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let mut stream = tokio::net::TcpStream::connect(&address).await.expect("a connection");
    let head = format!(
        "POST /json HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.expect("a request");
    // A server that refuses a long body need not read all of it.
    let _ = stream.write_all(body.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.expect("a status"), serde_json::from_str(body).unwrap_or_default())
}
