//! Outgoing requests of several processes that wait for their turn by one quota.

use std::time::Duration;

use sluicegate_client::pace::{PaceError, Pacer, Patience};
use sluicegate_core::Limit;
use sluicegate_core::store::Store;
use sluicegate_redis::{Leased, Redis};
use sluicegate_tests::servers::until;

use super::DAY;
use super::store::{open, own_prefix, patient, runtime, shared};

/// Two stores with one quota, as two processes have them.
fn pair() -> [Redis; 2] {
    let prefix = own_prefix();
    [(); 2].map(|()| open(patient().url(&shared().url()).prefix(&prefix)))
}

/// How many of `calls` get their turn, half of them in each process.
fn admitted<S: Store + Clone>(stores: [S; 2], limit: Limit, calls: usize) -> usize {
    let pacers = stores.map(|store| Pacer::counted_in(store, limit).patience(Patience::Not));
    runtime().block_on(async {
        let mut admitted = 0;
        for call in 0..calls {
            match pacers[call % 2].turn("api").await {
                Ok(_) => admitted += 1,
                Err(error) => assert!(matches!(error, PaceError::Refused { .. }), "{error:?}"),
            }
        }
        admitted
    })
}

#[test]
fn processes_share_one_outgoing_quota() {
    let quota = Limit::fixed_window(10, DAY).from_first();
    assert_eq!(admitted(pair(), quota, 16), 10);
}

#[test]
fn processes_share_one_outgoing_quota_by_leases() {
    let quota = Limit::fixed_window(100, DAY).from_first();
    let leased = pair().map(|redis| Leased::new(redis, 1..=10));
    let admitted = admitted(leased, quota, 140);
    // What the other process still holds is not to be had.
    assert!((90..=100).contains(&admitted), "{admitted}");
}

#[test]
fn a_place_in_the_quota_is_given_back_by_a_caller_that_leaves() {
    let minute = Duration::from_secs(60);
    let [one, other] = pair().map(|redis| {
        let pacer = Pacer::counted_in(redis, Limit::per_minute(1));
        pacer.look_again(minute).expect("a minute")
    });
    runtime().block_on(async { one.turn("api").await.expect("the first") });
    let waits = until("it to wait for its place", || {
        let mut waits = Box::pin(one.turn("api"));
        let turn =
            runtime().block_on(async { tokio::time::timeout(minute / 60, &mut waits).await });
        assert!(turn.is_err());
        // Refused, since the only place within a minute is taken. If the first caller was not quick enough, this one
        // has the place for a moment, and both begin again.
        let other = other.clone().patience(Patience::AtMost(minute));
        let taken = runtime()
            .block_on(async { tokio::time::timeout(minute / 60, other.turn("api")).await });
        matches!(taken, Ok(Err(PaceError::Refused { .. }))).then_some(waits)
    });
    drop(waits);
    until("its place to be free", || {
        let other = other.clone().patience(Patience::AtMost(minute));
        let taken = runtime()
            .block_on(async { tokio::time::timeout(minute / 120, other.turn("api")).await });
        // It waits for the place that was given back.
        taken.is_err().then_some(())
    });
}
