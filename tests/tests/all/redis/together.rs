//! All limits of a charge or none, while many clients ask at once.

use sluicegate_core::Limit;
use sluicegate_core::adapter::Charge;
use sluicegate_redis::Redis;
use sluicegate_tests::key;
use tokio::task::JoinSet;

use super::DAY;
use super::load::{attempts, take};
use super::store::{left, on, open, patient, runtime, settled, shared, shared_cluster};

const ALL: Limit = Limit::fixed_window(150, DAY).from_first().named("all");
const GROUP: Limit = Limit::per_day(60).burst(60).named("group");
const OWN: Limit = Limit::sliding_log(25, DAY).named("own");

/// No other limit is charged for what the log refused.
#[test]
fn earlier_limits_stay_charged_when_a_later_one_refuses() {
    let store = on(shared());
    let limits = [
        (Limit::per_day(200).burst(200), 140),
        (Limit::fixed_window(150, DAY).from_first(), 90),
        (Limit::sliding_log(60, DAY), 0),
        (Limit::per_day(100).burst(100).ban(DAY), 40),
        (Limit::concurrent(90), 30),
    ];
    let mut charge = Charge::new();
    for (limit, _) in limits {
        charge.add(limit, key("alice"), 1).expect("five limits");
    }
    let tally = attempts(&store, &charge, 16, 20);
    assert_eq!((tally.admitted, tally.refused, tally.failed), (60, 260, 0));
    for (limit, expected) in limits {
        assert_eq!(left(&store, limit, "alice"), expected, "{limit}");
    }
}

#[test]
fn several_keys_of_one_server_are_charged_together() {
    let store = on(shared());
    let admitted = contend(&store);
    assert_eq!(admitted.iter().sum::<u64>(), 150);
    keeps_its_books(&store, &admitted);
}

/// Each key may be on another server. A charge that will be given back can cause refusals while it is under way, but
/// nothing is lost, and nothing is admitted beyond the limit.
#[test]
fn multi_key_script_without_a_hash_tag() {
    let store = open(patient().cluster(shared_cluster().urls()));
    let mut admitted = contend(&store);
    settled(&store);
    assert!(admitted.iter().sum::<u64>() <= 150, "{admitted:?}");
    keeps_its_books(&store, &admitted);
    // What is left over can be spent by the next request.
    for (thread, admitted) in admitted.iter_mut().enumerate() {
        let tally = attempts(&store, &owed_by(thread), 1, 30);
        assert_eq!(tally.failed, 0);
        *admitted += tally.admitted;
    }
    settled(&store);
    assert_eq!(admitted.iter().sum::<u64>(), 150);
    keeps_its_books(&store, &admitted);
}

/// All tasks charge one key, pairs of tasks a second one, and each task a third.
fn owed_by(thread: usize) -> Charge {
    let mut charge = Charge::new();
    let debit = [
        (ALL, "all".to_owned()),
        (GROUP, format!("group {}", thread / 2)),
        (OWN, format!("own {thread}")),
    ];
    for (limit, name) in debit {
        charge.add(limit, key(&name), 1).expect("three limits");
    }
    charge
}

/// Runs eight tasks with thirty attempts each. Returns how often each was admitted.
fn contend(store: &Redis) -> Vec<u64> {
    let admitted = runtime().block_on(async {
        let mut tasks = JoinSet::new();
        for thread in 0..8 {
            let (store, charge) = (store.clone(), owed_by(thread));
            tasks.spawn(async move {
                let mut admitted = 0;
                for _ in 0..30 {
                    let outcome = take(&store, &charge).await.expect("the store answers");
                    admitted += u64::from(outcome.is_admitted());
                }
                (thread, admitted)
            });
        }
        tasks.join_all().await
    });
    let mut admitted = admitted;
    admitted.sort_unstable();
    admitted.into_iter().map(|(_, admitted)| admitted).collect()
}

/// Every limit has been charged exactly what was admitted.
fn keeps_its_books(store: &Redis, admitted: &[u64]) {
    assert_eq!(left(store, ALL, "all"), 150 - admitted.iter().sum::<u64>());
    for (pair, both) in admitted.chunks(2).enumerate() {
        assert_eq!(left(store, GROUP, &format!("group {pair}")), 60 - both.iter().sum::<u64>());
    }
    for (thread, own) in admitted.iter().enumerate() {
        assert_eq!(left(store, OWN, &format!("own {thread}")), 25 - own);
    }
}
