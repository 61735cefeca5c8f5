//! Processes that divide a limit, told of each other by heartbeats.

use std::time::Duration;

use sluicegate_core::adapter::Charge;
use sluicegate_core::store::{LiveShare, Members, Share, Store};
use sluicegate_core::{Limit, ManualClock, Memory};
use sluicegate_redis::{Group, Joined};
use sluicegate_tests::servers::until;
use sluicegate_tests::{answer, key};

use crate::store::{by_hand, open, own_prefix, runtime, shared};

fn group(clock: &ManualClock, prefix: &str) -> Group {
    open(by_hand(clock).url(&shared().url()).prefix(prefix)).group("fleet")
}

fn join(group: Group) -> Joined {
    let _entered = runtime().enter();
    group.join().expect("a group")
}

/// Turns the clock until the member has that part.
fn until_part(clock: &ManualClock, members: &Members, expected: Option<(u64, u64)>) {
    until("the part to be as expected", || {
        clock.advance(Duration::from_millis(40));
        (members.part().map(|part| part.as_ratio()) == expected).then_some(())
    });
}

#[test]
fn members_that_join_and_leave_divide_the_limit() {
    let (clock, prefix) = (ManualClock::new(), own_prefix());
    let one = join(group(&clock, &prefix));
    until_part(&clock, one.members(), Some((1, 1)));
    let two = join(group(&clock, &prefix));
    assert_eq!(two.members().part(), None);
    until_part(&clock, one.members(), Some((1, 2)));
    until_part(&clock, two.members(), Some((1, 2)));
    drop(one);
    until_part(&clock, two.members(), Some((1, 1)));
}

#[test]
fn a_member_that_leaves_spends_nothing_from_then_on() {
    let (clock, prefix) = (ManualClock::new(), own_prefix());
    let one = join(group(&clock, &prefix));
    let members = one.members().clone();
    until_part(&clock, &members, Some((1, 1)));
    drop(one);
    assert_eq!(members.part(), None);
}

#[test]
fn parts_follow_what_members_want_and_weigh() {
    let (clock, prefix) = (ManualClock::new(), own_prefix());
    let by_demand = |weight| join(group(&clock, &prefix).by_demand(100).weight(weight));
    let (one, two) = (by_demand(1), by_demand(3));
    until_part(
        &clock,
        two.members(),
        Some((3, 4)).map(|_| {
            let part = sluicegate_core::limit::Part::of(3, 4).expect("a part");
            part.as_ratio()
        }),
    );
    let store: LiveShare =
        Share::live(Memory::builder().clock(&clock).build(), two.members()).count_wanted();
    // The second wants ten a second, the first nothing: it gets that, and both a part of the rest.
    let charge = Charge::of(Limit::per_second(100), key("api"), 1);
    let expected = (10.0 + 90.0 * 0.75) / 100.0;
    until("a part by demand", || {
        clock.advance(Duration::from_millis(100));
        let _ = answer(store.take(&charge));
        let part = two.members().part().map_or(0.0, |part| part.as_f64());
        ((part - expected).abs() < 0.02).then_some(())
    });
    assert!(one.members().part().is_some());
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let (clock, prefix) = (ManualClock::new(), own_prefix());
    let _entered = runtime().enter();
    let group = || group(&clock, &prefix);
    let error = |group: Group| group.join().expect_err("no sense").to_string();
    assert!(error(group().round(Duration::from_millis(1))).contains("the round is 1ms"));
    assert!(error(group().keep(1)).contains("for 1 rounds"));
    assert!(error(group().weight(0)).contains("weight"));
    assert!(error(group().by_demand(0)).contains("whole"));
}
