use sluicegate::Header;
use sluicegate_client::outgoing::Context;
use sluicegate_client::pace::Patience;
use sluicegate_client::smooth::{Refilled, Spread};

use super::*;

#[tokio::test]
async fn a_request_waits_until_it_may_go_at_most_so_long_or_not_at_all() {
    for (patience, expected) in [
        (Patience::UntilAdmitted, Ok(())),
        (Patience::AtMost(SECOND), Ok(())),
        (Patience::AtMost(999 * MS), Err(Some(SECOND))),
        (Patience::Not, Err(Some(SECOND))),
    ] {
        let gate = Gate::new(bursty(1.0), |settings| settings.patience(patience));
        gate.until(gate.send(get())).await.unwrap();
        assert_eq!(gate.until(gate.send(get())).await, expected, "{patience:?}");
        // A request that was refused takes nothing.
        gate.pass(1_000).await;
        assert!(gate.left().len() == 2 || gate.until(gate.send(get())).await.is_ok());
    }
}

#[tokio::test]
async fn the_time_of_the_caller_bounds_the_wait() {
    let gate = Gate::new(bursty(1.0), |settings| settings);
    gate.until(gate.send(get())).await.unwrap();
    let mut request = get();
    request.extensions_mut().insert(Context::new().timeout(SECOND / 2));
    assert_eq!(gate.until(gate.send(request)).await, Err(Some(SECOND)));
}

#[tokio::test]
async fn a_semaphore_is_refilled_each_period() {
    let gate = Gate::new(Refilled::new(2, SECOND).unwrap(), |settings| settings);
    let sent: Vec<_> = (0..5).map(|_| gate.send(get())).collect();
    for request in sent {
        gate.until(request).await.unwrap();
    }
    assert_eq!(gate.left(), [0, 0, 1_000, 1_000, 2_000]);
}

#[tokio::test]
async fn a_request_that_takes_more_than_is_ever_there_does_not_wait() {
    let method = Refilled::new(2, SECOND).unwrap();
    let gate = Gate::new(method, |settings| settings.cost(|_| 3));
    assert_eq!(gate.until(gate.send(get())).await, Err(None));
}

#[tokio::test]
async fn a_window_is_spread_and_requests_beyond_the_longest_delay_wait_in_order() {
    let spread = || Spread::new(20, SECOND, 20, 100 * MS).unwrap();
    let gate = Gate::new(spread(), |settings| settings);
    let sent: Vec<_> = (0..100).map(|_| gate.send(get())).collect();
    for request in sent {
        gate.until(request).await.unwrap();
    }
    let left = gate.left();
    assert!(left.windows(2).all(|two| two[0] <= two[1]), "{left:?}");
    for window in 0..4 {
        let count = left.iter().filter(|left| **left / 1_000 == window).count();
        assert!((17..=20).contains(&count), "{window}: {count} in {left:?}");
    }
    // One that does not wait for so long is told at once.
    let gate = Gate::new(spread(), |settings| settings.patience(Patience::AtMost(200 * MS)));
    let sent: Vec<_> = (0..100).map(|_| gate.send(get())).collect();
    gate.pass(201).await;
    assert!(sent.iter().all(|request| request.is_finished()));
    assert!((3..=6).contains(&gate.left().len()), "{:?}", gate.left());
}

#[tokio::test]
async fn a_bounded_number_of_requests_waits() {
    let gate = Gate::new(bursty(1.0), |settings| settings.most_waiting(2));
    let sent: Vec<_> = (0..4).map(|_| gate.send(get())).collect();
    settle().await;
    assert!(sent[3].is_finished());
    for (request, expected) in sent.into_iter().zip([Ok(()), Ok(()), Ok(()), Err(None)]) {
        assert_eq!(gate.until(request).await, expected);
    }
    // The refused one has taken no time.
    gate.until(gate.send(get())).await.unwrap();
    assert_eq!(gate.left(), [0, 1_000, 2_000, 3_000]);
}

#[tokio::test]
async fn a_request_without_its_key_is_refused_and_keys_are_bounded() {
    let gate = Gate::new(bursty(1.0), |settings| settings.by(Header("x-api-key")).keys(16));
    assert_eq!(gate.until(gate.send(get())).await, Err(None));
    for key in 0..1_000 {
        let request = Request::get("/").header("x-api-key", key).body(()).unwrap();
        gate.until(gate.send(request)).await.unwrap();
    }
    assert_eq!(gate.left().len(), 1_000);
    assert!(SmoothLayer::builder(bursty(1.0)).keys(0).build().is_err());
}
