//! A cluster whose slots move, and whose nodes come and go.

use std::error::Error;
use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::Charge;
use sluicegate_core::store::Store;
use sluicegate_tests::servers::{Cluster, Server, until};
use sluicegate_tests::{answer, key};

use super::DAY;
use super::load::{Load, attempts};
use super::store::{left, on, open, own_prefix, patient, rows, settled, shared_cluster};

/// The deadline of a decision if a node does not answer.
const SHORT: Duration = Duration::from_millis(200);

/// The name of the row that a store keeps in a cluster.
fn only_row(cluster: &Cluster, prefix: &str) -> String {
    let mut found: Vec<_> =
        cluster.masters().iter().flat_map(|server| rows(server, prefix)).collect();
    found.swap_remove(0)
}

/// The next master after the one that has the slot.
fn next(cluster: &Cluster, slot: u16) -> &Server {
    let masters = cluster.masters();
    let owner = cluster.owner(slot).address();
    let at = masters.iter().position(|server| server.address() == owner).expect("one of them");
    &masters[(at + 1) % masters.len()]
}

/// One key with three limits, so that some rows have moved and some have not while their slot moves.
#[test]
fn the_count_is_exact_while_its_slot_moves() {
    let cluster = Cluster::start(3);
    let prefix = own_prefix();
    let store = open(patient().cluster(cluster.urls()).prefix(&prefix));
    let mut charge = Charge::of(Limit::fixed_window(4_000, DAY).from_first(), key("alice"), 1);
    charge.add(Limit::per_day(5_000).burst(5_000), key("alice"), 1).expect("two limits");
    charge.add(Limit::sliding_log(6_000, DAY), key("alice"), 1).expect("three limits");
    let mut tally = attempts(&store, &charge, 1, 1);
    let slot = cluster.slot(only_row(&cluster, &prefix));
    let load = Load::start(&store, &charge, 8);
    for _ in 0..9 {
        load.until_answered(100);
        cluster.move_slot(slot, next(&cluster, slot));
    }
    load.until_answered(100);
    tally += load.stop();
    tally += attempts(&store, &charge, 8, 600);
    assert_eq!((tally.admitted, tally.failed), (4_000, 0));
    // Calls came while the slot was on both nodes, so the test has tested something.
    let [moved, ask, try_again] = ["MOVED", "ASK", "TRYAGAIN"].map(|code| told(&cluster, code));
    assert!(moved > 0 && ask + try_again > 0, "{moved} moved, {ask} asked, {try_again} too early");
}

/// How often a node has answered with this error code.
fn told(cluster: &Cluster, code: &str) -> u64 {
    let counts = cluster.masters().iter().map(|server| {
        let told = server.cli(["INFO", "errorstats"]).text();
        let line = format!("errorstat_{code}:count=");
        let count = told.lines().find_map(|told| told.strip_prefix(&line)?.parse::<u64>().ok());
        count.unwrap_or(0)
    });
    counts.sum()
}

/// Requests to other nodes do not wait, and get no error.
#[test]
fn a_node_that_is_gone_is_its_own_keys_trouble() {
    let cluster = Cluster::start(3);
    let prefix = own_prefix();
    let store = open(patient().cluster(cluster.urls()).prefix(&prefix));
    let limit = Limit::fixed_window(1_000_000, DAY).from_first();
    let charge = |name: &str| Charge::of(limit, key(name), 1);
    for number in 0..30 {
        assert_eq!(attempts(&store, &charge(&format!("key-{number}")), 1, 1).admitted, 1);
    }
    let [gone, there] = [0, 1].map(|at| name_of_one(&cluster.masters()[at], &prefix));
    cluster.masters()[0].kill();
    for _ in 0..3 {
        let tally = attempts(&store, &charge(&there), 4, 100);
        assert_eq!((tally.admitted, tally.failed), (400, 0));
        assert_eq!(attempts(&store, &charge(&gone), 1, 10).failed, 10);
    }
    cluster.masters()[0].restart();
    until("the node to be asked again", || {
        (attempts(&store, &charge(&gone), 1, 1).admitted == 1).then_some(())
    });
    assert_eq!(attempts(&store, &charge(&there), 1, 1).admitted, 1);
}

/// What was charged on other nodes is given back if one node does not answer, or is gone.
#[test]
fn earlier_limits_stay_charged_when_a_later_node_fails() {
    let cluster = Cluster::start(3);
    let prefix = own_prefix();
    let store = open(patient().cluster(cluster.urls()).prefix(&prefix).deadline(SHORT));
    // It looks at what is left, however busy the machine is.
    let looking = open(patient().cluster(cluster.urls()).prefix(&prefix));
    let limit = Limit::fixed_window(1_000, DAY).from_first();
    for number in 0..30 {
        let charge = Charge::of(limit, key(&format!("key-{number}")), 1);
        until("the cluster to be known", || {
            (attempts(&store, &charge, 1, 1).admitted == 1).then_some(())
        });
    }
    settled(&store);
    let names: Vec<_> =
        cluster.masters().iter().map(|server| name_of_one(server, &prefix)).collect();
    let mut charge = Charge::new();
    names.iter().for_each(|name| charge.add(limit, key(name), 1).expect("three keys"));
    let before: Vec<_> = names.iter().map(|name| left(&looking, limit, name)).collect();
    for server in cluster.masters() {
        server.pause();
        let tally = attempts(&store, &charge, 4, 10);
        assert_eq!((tally.admitted, tally.refused), (0, 0));
        server.resume();
        settled(&store);
        until("the node to be asked again", || {
            (attempts(&store, &charge, 1, 1).admitted == 1).then_some(())
        });
    }
    settled(&store);
    assert_eq!(store.counts().unanswered, 0);
    // Once for each of the three, when the node continued.
    for (name, before) in names.iter().zip(before) {
        assert_eq!(left(&looking, limit, name), before - 3, "{name}");
    }
}

/// One of the named nodes is enough. A node that is contacted alone reports what to do.
#[test]
fn a_cluster_is_found_by_any_of_its_nodes() {
    let gone = Server::start();
    gone.kill();
    let one = &shared_cluster().masters()[1];
    let store = open(patient().cluster([gone.url(), one.url()]));
    let names = (0..30).map(|number| format!("key-{number}"));
    let charges = names.map(|name| Charge::of(Limit::per_day(10), key(&name), 1));
    let charges: Vec<_> = charges.collect();
    assert!(charges.iter().all(|charge| attempts(&store, charge, 1, 1).admitted == 1));

    let alone = on(one);
    let failures = charges.iter().filter_map(|charge| answer(alone.take(charge)).err());
    let told: Vec<_> = failures.map(|error| error.source().expect("why").to_string()).collect();
    assert!(!told.is_empty());
    assert!(told.iter().all(|told| told.contains("Redis::cluster")), "{told:?}");
}

/// The name of a key whose row is on a server.
pub(crate) fn name_of_one(server: &Server, prefix: &str) -> String {
    let row = rows(server, prefix).pop().expect("thirty keys are spread over three servers");
    let (_, tag) = row.split_once('{').expect("a hash tag");
    let (name, _) = tag.split_once('}').expect("a hash tag");
    name.to_owned()
}

/// Such a request does not wait, so it would be told to come again for ever.
#[test]
fn what_would_have_to_wait_at_any_time_is_never_admitted_across_slots() {
    let store = open(patient().cluster(shared_cluster().urls()).prefix(&own_prefix()));
    let queue = Limit::leaky_bucket(1, Duration::from_secs(1)).queue(10);
    let plain = Limit::per_day(100);
    // One of them could be in one slot.
    let is_never = ["alice", "bob", "carol"].map(|name| {
        let mut charge = Charge::of(queue, key(name), 5);
        charge.add(plain, key("all"), 5).expect("two limits");
        answer(store.take(&charge)).expect("a decision").never_fits()
    });
    assert!(is_never.iter().filter(|is_never| **is_never).count() >= 2, "{is_never:?}");
}
