use super::*;

#[tokio::test]
async fn a_probe_whose_caller_leaves_makes_room_for_another() {
    let client = Client::new();
    client.refused_for("http://a/", 1).await;
    client.server.seen();
    client.server.stall();
    client.advance(1_100).await;
    let probe = client.send("http://a/probe");
    settle().await;
    let next = client.send("http://a/next");
    settle().await;
    assert_eq!(client.server.seen(), ["/probe"]);
    probe.abort();
    settle().await;
    assert_eq!(client.server.seen(), ["/next"]);
    client.server.resume();
    assert!(next.await.unwrap().is_ok());
}

#[tokio::test]
async fn a_caller_that_leaves_the_line_lets_those_behind_it_pass() {
    let client = Client::new();
    client.refused_for("http://a/", 1).await;
    client.server.seen();
    let sent: Vec<_> = (0..4).map(|number| client.send(&format!("http://a/{number}"))).collect();
    settle().await;
    sent[0].abort();
    sent[2].abort();
    client.advance(1_100).await;
    assert_eq!(client.server.seen(), ["/1", "/3"]);
}

#[tokio::test]
async fn callers_that_leave_while_they_wait_leave_nothing_behind() {
    let client = Client::with(|builder| builder.waiting(2));
    client.refused_for("http://a/", 1).await;
    for _ in 0..10 {
        let waiting = [client.send("http://a/"), client.send("http://a/")];
        settle().await;
        waiting.iter().for_each(JoinHandle::abort);
        settle().await;
    }
    let last = client.send("http://a/");
    client.advance(1_100).await;
    assert!(last.await.unwrap().is_ok());
}
