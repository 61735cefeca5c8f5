//! Hedging among the other layers.

use sluicegate::{Limit, Memory};
use sluicegate_client::outgoing::Origin;
use sluicegate_client::pace::{Pacer, Patience};
use sluicegate_client::retry::Budget;
use sluicegate_client::{ObeyLayer, Outgoing, PaceLayer, RetryLayer, ThrottleLayer};

use super::*;

fn pacer(server: &Server, limit: Limit) -> Pacer {
    let memory = Memory::builder().capacity(100).clock(&server.clock).build();
    Pacer::counted_in(memory, limit)
}

fn outgoing(server: &Server) -> Outgoing {
    let clock = &server.clock;
    Outgoing::new()
        .retry(RetryLayer::builder().clock(clock).build().unwrap())
        .throttle(ThrottleLayer::builder().clock(clock).build().unwrap())
        .obey(ObeyLayer::builder().clock(clock).build().unwrap())
        .hedge(HedgeLayer::builder().clock(clock).build().unwrap())
}

#[tokio::test]
async fn in_the_stack_a_late_request_has_one_copy() {
    let server = Server::new();
    let service = outgoing(&server).layer(server.clone());
    warm_up(&server, &service).await;
    server.plan(&[after(1_000), after(10)]);
    assert_eq!(server.until(send(&service, get())).await, (200, 2));
}

#[tokio::test]
async fn a_request_that_waits_for_its_own_turn_is_not_late() {
    let server = Server::new();
    let pace = PaceLayer::new(Origin, pacer(&server, Limit::per_second(10).burst(1)));
    let service = outgoing(&server).pace(pace).layer(server.clone());
    warm_up(&server, &service).await;
    let sent: Vec<_> = (0..20).map(|_| send(&service, get())).collect();
    for request in sent {
        server.until(request).await;
    }
    let came = server.state.lock().unwrap().came.clone();
    assert_eq!(came.len(), 20);
    assert!(came.windows(2).all(|two| two[1] - two[0] >= 100), "{came:?}");
}

#[tokio::test]
async fn a_copy_counts_against_the_limits_of_the_program() {
    let server = Server::new();
    let pacer = pacer(&server, Limit::per_hour(102)).patience(Patience::Not);
    let service = outgoing(&server).pace(PaceLayer::new(Origin, pacer)).layer(server.clone());
    warm_up(&server, &service).await;
    server.plan(&[after(100), after(100)]);
    server.until(send(&service, get())).await;
    assert_eq!(server.seen(), 2);
    // The copy has taken the last place.
    assert_eq!(server.until(send(&service, get())).await.0, 0);
}

#[tokio::test]
async fn a_copy_that_was_held_back_costs_nothing() {
    let server = Server::new();
    let clock = &server.clock;
    // After the warm-up, the budget pays for one copy.
    let budget = std::sync::Arc::new(Budget::try_new(0.01, 0).unwrap());
    let hedge = HedgeLayer::builder().budget(budget.clone()).clock(clock).build().unwrap();
    let pacer = pacer(&server, Limit::per_hour(101)).patience(Patience::Not);
    let pace = PaceLayer::new(Origin, pacer);
    let service = outgoing(&server).hedge(hedge).pace(pace).layer(server.clone());
    warm_up(&server, &service).await;
    server.plan(&[after(100)]);
    assert_eq!(server.until(send(&service, get())).await, (200, 1));
    assert!(budget.withdraw() && !budget.withdraw());
}

#[tokio::test]
async fn each_attempt_of_a_retry_may_have_a_copy() {
    let server = Server::new();
    let service = outgoing(&server).layer(server.clone());
    warm_up(&server, &service).await;
    let broken = Answer { millis: 100, status: 0 };
    server.plan(&[broken, broken, after(1_000), after(10)]);
    assert_eq!(server.until(send(&service, get())).await, (200, 4));
}
