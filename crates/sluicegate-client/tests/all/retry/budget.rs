use sluicegate_client::Refused;
use sluicegate_client::retry::Budget;

use super::*;

async fn flood(server: &Server, layer: &RetryLayer, clock: &ManualClock, requests: usize) {
    let service = layer.layer(server.clone());
    for _ in 0..requests {
        let mut service = service.clone();
        let sent = tokio::spawn(async move { service.ready().await?.call(get()).await });
        while !sent.is_finished() {
            clock.advance(Duration::from_secs(1));
            tokio::task::yield_now().await;
        }
        let _ = sent.await.unwrap();
    }
}

#[tokio::test]
async fn a_server_that_is_down_gets_at_most_a_tenth_more() {
    for failure in [BUSY, BROKEN] {
        let (clock, server) = (ManualClock::new(), Server::always(failure));
        let layer = RetryLayer::builder().clock(&clock).build().unwrap();
        flood(&server, &layer, &clock, 10_000).await;
        assert!((10_990..=11_000).contains(&server.seen()), "{}", server.seen());
    }
}

#[tokio::test]
async fn layers_that_share_a_budget_share_its_bound() {
    let (clock, server) = (ManualClock::new(), Server::always(BUSY));
    let budget = Arc::new(Budget::try_new(0.5, 0).unwrap());
    for _ in 0..2 {
        let layer = RetryLayer::builder().budget(budget.clone()).clock(&clock).build().unwrap();
        flood(&server, &layer, &clock, 1_000).await;
    }
    assert_eq!(server.seen(), 3_000);
}

#[tokio::test]
async fn without_a_budget_nothing_is_sent_twice() {
    let (clock, server) = (ManualClock::new(), Server::always(BUSY));
    let budget = Budget::try_new(0.0, 10).unwrap();
    let layer = RetryLayer::builder().budget(budget).clock(&clock).build().unwrap();
    flood(&server, &layer, &clock, 100).await;
    assert_eq!(server.seen(), 100);
}

#[tokio::test]
async fn requests_that_are_never_sent_pay_for_no_retry() {
    let (clock, budget) = (ManualClock::new(), Arc::new(Budget::try_new(0.5, 0).unwrap()));
    let layer = RetryLayer::builder().budget(budget).clock(&clock).build().unwrap();
    let mut held_back = layer.layer(tower::service_fn(|_: Request<String>| async {
        Err::<Response<()>, BoxError>(Refused::new("it is not its turn", None).into())
    }));
    for _ in 0..100 {
        assert!(held_back.ready().await.unwrap().call(get()).await.is_err());
    }
    let server = Server::always(BUSY);
    flood(&server, &layer, &clock, 10).await;
    assert_eq!(server.seen(), 15);
}
