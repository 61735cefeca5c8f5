use sluicegate_client::retry::Budget;

use super::*;

/// Copies of `requests` requests, of which every tenth is late.
async fn copies(settings: impl FnOnce(HedgeBuilder) -> HedgeBuilder, requests: usize) -> usize {
    let (server, service) = warm(|builder| settings(builder.percentile(0.8))).await;
    for number in 0..requests {
        if number % 10 == 9 {
            server.plan(&[after(60), after(1)]);
        }
        server.until(send(&service, get())).await;
        server.state.lock().unwrap().plan.clear();
    }
    server.seen() - requests
}

#[tokio::test]
async fn copies_are_the_share_of_the_budget_and_no_more() {
    // The hundred requests that taught what is late have paid for five.
    assert_eq!(copies(|settings| settings, 2_000).await, 100 + 5);
    let budget = |share| Budget::try_new(share, 0).unwrap();
    assert_eq!(copies(|settings| settings.budget(budget(0.02)), 2_000).await, 40 + 2);
    assert_eq!(copies(|settings| settings.budget(budget(0.0)), 500).await, 0);
}

#[tokio::test]
async fn a_server_that_gets_slow_as_a_whole_is_asked_a_twentieth_more() {
    let (server, service) = warm(|settings| settings).await;
    server.state.lock().unwrap().usual = after(500);
    let mut sent = Vec::new();
    for _ in 0..2_000 {
        sent.push(send(&service, get()));
        server.pass(1).await;
    }
    for request in sent {
        server.until(request).await;
    }
    let copies = server.seen() - 2_000;
    assert!(copies <= 105, "{copies}");
    // By then it is known that responses take so long.
    let before = server.seen();
    server.until(send(&service, get())).await;
    assert_eq!(server.seen() - before, 1);
}

#[tokio::test]
async fn a_server_that_stalls_is_asked_a_twentieth_more() {
    let (server, service) = warm(|settings| settings).await;
    server.state.lock().unwrap().usual = after(1_000_000);
    for _ in 0..400 {
        let sent = send(&service, get());
        server.pass(20).await;
        sent.abort();
    }
    let copies = server.seen() - 400;
    assert!((10..=25).contains(&copies), "{copies}");
}
