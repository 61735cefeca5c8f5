use super::*;

#[tokio::test]
async fn requests_wait_for_retry_after_and_go_in_the_order_of_arrival() {
    let client = Client::new();
    client.refused_for("http://a/0", 10).await;
    client.server.seen();
    let mut sent = Vec::new();
    for number in 1..=5 {
        sent.push(client.send(&format!("http://a/{number}")));
        settle().await;
    }
    client.advance(9_999).await;
    assert!(client.server.seen().is_empty());
    // The wait, and at most a tenth of it.
    client.advance(1_001).await;
    assert_eq!(client.server.seen(), ["/1", "/2", "/3", "/4", "/5"]);
    for sent in sent {
        assert_eq!(sent.await.unwrap().unwrap().status(), 200);
    }
}

#[tokio::test]
async fn one_request_shows_whether_the_server_serves_again() {
    let client = Client::new();
    client.refused_for("http://a/0", 1).await;
    client.server.seen();
    client.server.stall();
    let _sent: Vec<_> = (1..=3).map(|number| client.send(&format!("http://a/{number}"))).collect();
    client.advance(1_100).await;
    assert_eq!(client.server.seen().len(), 1);
    client.server.resume();
    settle().await;
    assert_eq!(client.server.seen().len(), 2);
}

#[tokio::test]
async fn a_request_that_would_wait_for_too_long_is_refused_at_once() {
    let client = Client::with(|builder| builder.wait(Duration::from_secs(5)));
    client.refused_for("http://a/", 10).await;
    let refused = refusal(client.send("http://a/").await.unwrap());
    assert!(refused.retry_after() >= Some(Duration::from_secs(10)), "{refused}");
    assert_eq!(client.server.seen().len(), 1);
}

#[tokio::test]
async fn with_no_time_to_wait_requests_go_or_fail() {
    let client = Client::with(|builder| builder.wait(Duration::ZERO));
    client.refused_for("http://a/", 1).await;
    refusal(client.send("http://a/").await.unwrap());
    client.advance(1_100).await;
    client.server.stall();
    let probe = client.send("http://a/");
    settle().await;
    refusal(client.send("http://a/").await.unwrap());
    client.server.resume();
    assert_eq!(probe.await.unwrap().unwrap().status(), 200);
}

#[tokio::test]
async fn a_request_behind_a_probe_that_stalls_is_refused_when_its_time_is_over() {
    let client = Client::with(|builder| builder.wait(Duration::from_secs(2)));
    client.refused_for("http://a/", 1).await;
    client.advance(1_100).await;
    client.server.stall();
    let _probe = client.send("http://a/");
    settle().await;
    let second = client.send("http://a/");
    client.advance(1_999).await;
    assert!(!second.is_finished());
    client.advance(2).await;
    refusal(second.await.unwrap());
}

#[tokio::test]
async fn no_more_wait_than_the_layer_allows() {
    let client = Client::with(|builder| builder.waiting(3));
    client.refused_for("http://a/", 1).await;
    let waiting: Vec<_> = (0..3).map(|_| client.send("http://a/")).collect();
    settle().await;
    let refused = refusal(client.send("http://a/").await.unwrap());
    assert!(refused.to_string().contains("too many"), "{refused}");
    client.advance(1_100).await;
    for sent in waiting {
        assert!(sent.await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn requests_are_spread_when_little_is_left() {
    let client = Client::new();
    client.server.answer(200, &[("ratelimit", r#""a";r=100;t=60"#)]);
    client.server.answer(200, &[("ratelimit", r#""a";r=10;t=60"#)]);
    for _ in 0..2 {
        client.send("http://a/").await.unwrap().unwrap();
    }
    let _sent: Vec<_> = (0..20).map(|_| client.send("http://a/")).collect();
    client.server.seen();
    settle().await;
    assert_eq!(client.server.seen().len(), 1);
    client.advance(5_900).await;
    assert_eq!(client.server.seen().len(), 0);
    client.advance(200).await;
    assert_eq!(client.server.seen().len(), 1);
}

#[tokio::test]
async fn settings_that_make_no_sense_fail_when_the_layer_is_made() {
    let builder = ObeyLayer::builder;
    for (builder, named) in [
        (builder().believe(Duration::ZERO), "longest wait"),
        (builder().believe(Duration::MAX), "longest wait"),
        (builder().probe(Duration::ZERO), "probe"),
        (builder().servers(0), "servers"),
        (builder().servers(usize::MAX), "servers"),
        (builder().wait(Duration::MAX), "waits"),
    ] {
        let sentence = builder.build().unwrap_err().to_string();
        assert!(sentence.contains(named), "{sentence}");
    }
}
