//! Processes that divide a limit, told of each other by heartbeats.

use std::time::Duration;

use sluicegate_core::adapter::Charge;
use sluicegate_core::limit::Part;
use sluicegate_core::store::{Fleet, Membership, Share, Store};
use sluicegate_core::{Limit, ManualClock, Memory};
use sluicegate_redis::FleetBuilder;
use sluicegate_tests::servers::{Reply, Server, until};
use sluicegate_tests::{answer, key};

use super::store::{by_hand, open, own_prefix, runtime, shared};

fn fleet(clock: &ManualClock, prefix: &str) -> FleetBuilder {
    open(by_hand(clock).url(&shared().url()).prefix(prefix)).fleet("fleet")
}

fn join(builder: FleetBuilder) -> Membership {
    let _entered = runtime().enter();
    builder.join().expect("a fleet")
}

/// Turns the clock until the member has that part.
fn until_part(clock: &ManualClock, fleet: &Fleet, expected: Option<(u64, u64)>) {
    until("the part to be as expected", || {
        clock.advance(Duration::from_millis(40));
        (fleet.part().map(|part| part.as_ratio()) == expected).then_some(())
    });
}

#[test]
fn members_that_join_and_leave_divide_the_limit() {
    let (clock, prefix) = (ManualClock::new(), own_prefix());
    let one = join(fleet(&clock, &prefix));
    until_part(&clock, one.fleet(), Some((1, 1)));
    let two = join(fleet(&clock, &prefix));
    assert_eq!(two.fleet().part(), None);
    until_part(&clock, one.fleet(), Some((1, 2)));
    until_part(&clock, two.fleet(), Some((1, 2)));
    drop(one);
    until_part(&clock, two.fleet(), Some((1, 1)));
}

#[test]
fn a_member_that_leaves_spends_nothing_from_then_on() {
    let (clock, prefix) = (ManualClock::new(), own_prefix());
    let one = join(fleet(&clock, &prefix));
    let fleet = one.fleet().clone();
    until_part(&clock, &fleet, Some((1, 1)));
    drop(one);
    assert_eq!(fleet.part(), None);
}

#[test]
fn parts_follow_what_members_want_and_weigh() {
    let (clock, prefix) = (ManualClock::new(), own_prefix());
    let by_demand = |weight| join(fleet(&clock, &prefix).by_demand(100).weight(weight));
    let (one, two) = (by_demand(1), by_demand(3));
    until_part(&clock, two.fleet(), Part::of(3, 4).map(Part::as_ratio));
    let store = Share::new(Memory::builder().clock(&clock).build(), two.fleet()).count_wanted();
    // The second wants ten a second, the first nothing: it gets that, and both a part of the rest.
    let charge = Charge::of(Limit::per_second(100), key("api"), 1);
    let expected = (10.0 + 90.0 * 0.75) / 100.0;
    until("a part by demand", || {
        clock.advance(Duration::from_millis(100));
        let _ = answer(store.take(&charge));
        let part = two.fleet().part().map_or(0.0, |part| part.as_f64());
        ((part - expected).abs() < 0.02).then_some(())
    });
    assert!(one.fleet().part().is_some());
}

#[test]
fn a_member_that_is_cut_off_stops_or_keeps_its_part_as_it_was_told() {
    let (clock, server) = (ManualClock::new(), Server::start());
    let prefix = own_prefix();
    let fleet = || open(by_hand(&clock).url(&server.url()).prefix(&prefix)).fleet("fleet");
    let stops = join(fleet().stop_when_cut_off());
    let keeps = join(fleet());
    let half = Some((1, 2));
    until_part(&clock, stops.fleet(), half);
    until_part(&clock, keeps.fleet(), half);

    server.kill();
    // The others count it for three rounds after its last heartbeat, which was at most a third of a round ago.
    let cut_off = clock.now();
    until_part(&clock, stops.fleet(), None);
    let spent_for = Duration::from_micros(clock.now() - cut_off);
    assert!(spent_for <= Duration::from_millis(3_040), "{spent_for:?}");
    clock.advance(Duration::from_secs(3_600));
    assert_eq!(stops.fleet().part(), None);
    assert_eq!(keeps.fleet().part().map(|part| part.as_ratio()), half);

    server.restart();
    until_part(&clock, stops.fleet(), half);
    until_part(&clock, keeps.fleet(), half);
}

/// Whoever may write to the row takes parts away, but nobody spends more than the whole.
#[test]
fn forged_members_take_parts_away_and_add_none() {
    let (clock, prefix) = (ManualClock::new(), own_prefix());
    let (one, two) = (join(fleet(&clock, &prefix)), join(fleet(&clock, &prefix)));
    until_part(&clock, one.fleet(), Some((1, 2)));
    until_part(&clock, two.fleet(), Some((1, 2)));

    let names = shared().cli(["KEYS", &format!("{prefix}*members")]).list();
    let name = names.into_iter().next().expect("a row").text();
    let row = || match shared().cli(["GET", &name]) {
        Reply::Bytes(row) => row,
        other => panic!("no row: {other:?}"),
    };
    let write = |row: Vec<u8>| {
        shared().cli([b"SET".to_vec(), name.clone().into_bytes(), row]);
    };
    let together = || {
        let part =
            |membership: &Membership| membership.fleet().part().map_or(0.0, |part| part.as_f64());
        part(&one) + part(&two)
    };
    let forged = |member: f64, wants: f64, weight: f64| {
        let round = (clock.now() / 1_000_000) as f64;
        [member, round, wants, weight, wants, weight].map(f64::to_le_bytes).concat()
    };
    let entries = [
        forged(7.0, 0.0, 1.0),
        forged(8.0, f64::MAX, 1.0),
        forged(9.0, f64::NAN, f64::NAN),
        forged(10.0, -1.0, 5.0),
        forged(11.0, 3.0, f64::INFINITY),
        forged(12.0, 0.0, 4e9),
    ];
    for entry in entries {
        write([row(), entry].concat());
        let mut looks = 0;
        until("several rounds to pass", || {
            clock.advance(Duration::from_millis(100));
            assert!(together() <= 1.0, "{}", together());
            looks += 1;
            (looks == 60).then_some(())
        });
    }
    write(b"junk".to_vec());
    clock.advance(Duration::from_secs(1));
    assert!(together() <= 1.0);
    shared().cli(["DEL", &name]);
    until_part(&clock, one.fleet(), Some((1, 2)));
    until_part(&clock, two.fleet(), Some((1, 2)));
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let (clock, prefix) = (ManualClock::new(), own_prefix());
    let _entered = runtime().enter();
    let fleet = || fleet(&clock, &prefix);
    let error = |builder: FleetBuilder| builder.join().expect_err("no sense").to_string();
    assert!(error(fleet().round(Duration::from_millis(1))).contains("the round is 1ms"));
    assert!(error(fleet().keep(1)).contains("for 1 rounds"));
    assert!(error(fleet().weight(0)).contains("weight"));
    assert!(error(fleet().by_demand(0)).contains("whole"));
}
