//! A cluster that replaces a master by itself.

use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::Charge;
use sluicegate_tests::key;
use sluicegate_tests::servers::{Cluster, until};

use super::DAY;
use super::cluster::name_of_one;
use super::load::attempts;
use super::store::{left, open, own_prefix, patient, settled};

/// The deadline of a decision.
const DEADLINE: Duration = Duration::from_secs(2);

/// How much longer a decision may take on a busy machine.
const SLACK: Duration = Duration::from_secs(5);

/// A master dies, and its replica takes its place with the data that it has received. The store needs no help, no
/// request is refused because of it, and none waits for long.
#[test]
fn a_replica_that_takes_its_masters_place_goes_on_counting() {
    let cluster = Cluster::start(3);
    let replica = cluster.replicate(&cluster.masters()[0]);
    let prefix = own_prefix();
    let store = open(patient().cluster(cluster.urls()).prefix(&prefix).deadline(DEADLINE));
    let limit = Limit::fixed_window(1_000, DAY).from_first();
    let charge = |name: &str| Charge::of(limit, key(name), 1);
    for number in 0..30 {
        let charge = charge(&format!("key-{number}"));
        until("the cluster to be known", || {
            (attempts(&store, &charge, 1, 1).admitted == 1).then_some(())
        });
    }
    let [gone, there] = [0, 1].map(|at| name_of_one(&cluster.masters()[at], &prefix));
    attempts(&store, &charge(&gone), 4, 50);
    settled(&store);
    replica.catch_up(&cluster.masters()[0]);
    let [before, others] = [&gone, &there].map(|name| left(&store, limit, name));
    assert!(before < 1_000);

    cluster.masters()[0].kill();
    let mut tally = attempts(&store, &charge(&gone), 4, 1);
    assert_eq!(
        (tally.admitted, tally.failed),
        (0, 4),
        "the replica took its place before it had to"
    );
    cluster.replace_first(&replica);
    until("the store to ask the replica", || {
        tally += attempts(&store, &charge(&gone), 4, 1);
        (tally.admitted >= 4).then_some(())
    });
    tally += attempts(&store, &charge(&gone), 4, 10);
    settled(&store);
    assert_eq!(tally.refused, 0);
    assert!(tally.slowest < DEADLINE + SLACK, "{tally:?}");
    let charged = before - left(&store, limit, &gone);
    assert!(charged >= tally.admitted, "{charged} for {tally:?}");
    assert!(charged - tally.admitted <= store.counts().unanswered, "{charged} for {tally:?}");
    assert_eq!(left(&store, limit, &there), others);
    assert_eq!(attempts(&store, &charge(&there), 1, 10).admitted, 10);
    // Counting continues until the limit is reached, and no further.
    let left = left(&store, limit, &gone);
    let rest = attempts(&store, &charge(&gone), 4, 300);
    assert_eq!((rest.admitted, rest.failed), (left, 0));
}
