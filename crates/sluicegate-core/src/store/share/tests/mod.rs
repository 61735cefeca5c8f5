mod fixed;
mod fleet;
mod model;
mod shadows;
mod windows;

use std::time::Duration;

use super::*;
use crate::clock::ManualClock;
use crate::key::KeyBuf;
use crate::store::set_spent::SetSpent;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

fn member_of(count: u64, clock: &ManualClock) -> (Share, Fleet) {
    let fleet = Fleet::by_clock(2 * SECOND, clock);
    fleet.open();
    fleet.see(count);
    let memory = Memory::builder().capacity(100).clock(clock).build();
    (Share::new(memory, &fleet), fleet)
}

fn take(store: &Share, limit: Limit, cost: u64) -> Outcome {
    store.take(&charge(limit, cost)).now().expect("a decision")
}

fn charge(limit: Limit, cost: u64) -> Charge {
    Charge::of(limit, KeyBuf::of("api"), cost)
}

fn admitted(store: &Share, limit: Limit) -> usize {
    (0..50).filter(|_| take(store, limit, 1).is_admitted()).count()
}

/// A limit of every shape, each admitting 8 at once.
fn eight() -> [Limit; 9] {
    [
        Limit::per_minute(8),
        Limit::per_minute(7).burst(8),
        Limit::per_minute(8).refill(8, MINUTE),
        Limit::leaky_bucket(8, MINUTE).queue(7).delay_after(7),
        Limit::fixed_window(8, MINUTE),
        Limit::sliding_log(8, MINUTE),
        Limit::sliding_window(8, MINUTE),
        Limit::concurrent(8),
        Limit::per_minute(8).named("a").carried(),
    ]
}

#[test]
fn a_member_admits_its_part_of_every_limit() {
    for limit in eight() {
        for (members, expected) in [(1, 8), (2, 4), (3, 2), (4, 2), (8, 1)] {
            let (store, _) = member_of(members, &ManualClock::new());
            assert_eq!(admitted(&store, limit), expected, "{limit} among {members}");
        }
    }
}

/// What the guide warns of: parts are for limits that all processes share. A router that hashes keys sends all requests of
/// a key to one process, which has only its part.
#[test]
fn a_key_that_is_routed_to_one_member_gets_no_more_than_that_members_part() {
    let clock = ManualClock::new();
    let members: Vec<_> = (0..4).map(|_| member_of(4, &clock).0).collect();
    let limit = Limit::per_minute(8);
    let routed: usize = members[..1].iter().map(|store| admitted(store, limit)).sum();
    assert_eq!(routed, 2, "a quarter of what the limit says");
    let spread: usize = members[1..].iter().map(|store| admitted(store, limit)).sum();
    assert_eq!(spread + routed, 8, "all of it, where requests go to all members");
}

#[test]
fn below_one_request_buckets_admit_one_at_a_time_and_counts_admit_none() {
    for limit in eight() {
        let (store, _) = member_of(9, &ManualClock::new());
        let is_bucket =
            matches!(limit.to_string().split(' ').next(), Some("8/minute" | "7/minute" | "leaky"));
        let is_stepped = limit.to_string().contains("stepped");
        let expected = usize::from(is_bucket && !is_stepped);
        assert_eq!(admitted(&store, limit), expected, "{limit}");
    }
}

#[test]
fn ten_a_second_among_96_are_five_in_48_seconds() {
    let clock = ManualClock::new();
    let (store, _) = member_of(96, &clock);
    let limit = Limit::per_second(10);
    assert!(take(&store, limit, 1).is_admitted());
    assert_eq!(take(&store, limit, 1).retry_after(), Some(Duration::from_millis(9_600)));
    let in_48_s = (0..48_000).filter(|_| {
        clock.advance(Duration::from_millis(1));
        take(&store, limit, 1).is_admitted()
    });
    assert_eq!(in_48_s.count(), 5);
}

#[test]
fn a_bucket_that_was_spent_is_spent_in_every_part() {
    for limit in [
        Limit::per_minute(60),
        Limit::per_minute(70),
        Limit::leaky_bucket(60, MINUTE).queue(59).delay_after(59),
    ] {
        let clock = ManualClock::new();
        let (store, fleet) = member_of(10, &clock);
        assert_eq!(admitted(&store, limit), limit.capacity() as usize / 10);
        for count in [3, 1, 20, 2] {
            fleet.see(count);
            clock.advance(2 * SECOND);
            // Two seconds have come back, by the part of this member.
            let expected = if count == 1 { 2 } else { 0 };
            assert!(admitted(&store, limit) <= expected + 1, "{limit}, {count}");
        }
    }
}

#[test]
fn a_part_grows_without_anybody_telling_once_the_bound_is_over() {
    let clock = ManualClock::new();
    let (store, fleet) = member_of(4, &clock);
    let limit = Limit::per_minute(60);
    fleet.see(2);
    assert_eq!(take(&store, limit, 1).decision(&charge(limit, 1)).remaining(), Some(14));
    clock.advance(Duration::from_millis(2_140));
    assert_eq!(take(&store, limit, 1).decision(&charge(limit, 1)).remaining(), Some(28));
}

#[test]
fn a_member_that_has_just_joined_says_when_it_may_spend() {
    let clock = ManualClock::new();
    let fleet = Fleet::by_clock(2 * SECOND, &clock);
    let store = Share::new(Memory::builder().capacity(100).clock(&clock).build(), &fleet);
    let limit = Limit::per_minute(60);
    assert_eq!(take(&store, limit, 1).verdict(), Verdict::Refuse { retry_after: None });
    fleet.see(3);
    let refused = take(&store, limit, 1);
    assert_eq!(refused.retry_after(), Some(2 * SECOND));
    assert_eq!(refused.decision(&charge(limit, 1)).remaining(), Some(0));
    clock.advance(Duration::from_millis(2_140));
    assert_eq!(admitted(&store, limit), 20);
}

#[test]
fn a_view_that_expired_admits_nothing_even_if_nobody_looked_for_an_hour() {
    let clock = ManualClock::new();
    let (store, fleet) = member_of(2, &clock);
    let limit = Limit::per_minute(60);
    assert!(take(&store, limit, 1).is_admitted());
    fleet.see_part_for(Some(Part::one_of(2)), 5 * SECOND);
    clock.advance(3_600 * SECOND);
    assert!(!take(&store, limit, 1).is_admitted());
}

#[test]
fn a_floor_is_admitted_while_there_is_no_part() {
    let clock = ManualClock::new();
    let fleet = Fleet::by_clock(2 * SECOND, &clock);
    let store =
        Share::new(Memory::builder().capacity(100).clock(&clock).build(), &fleet).at_least(1, 10);
    assert_eq!(admitted(&store, Limit::concurrent(10)), 1);
    fleet.see(100);
    clock.advance(3 * SECOND);
    assert_eq!(admitted(&store, Limit::fixed_window(20, MINUTE)), 2);
}

#[test]
fn what_is_told_is_the_limits_name_and_the_parts_rest() {
    let (store, _) = member_of(4, &ManualClock::new());
    for limit in [Limit::per_minute(100).named("api"), Limit::sliding_log(100, MINUTE).named("api")]
    {
        let decision = take(&store, limit, 5).decision(&charge(limit, 5));
        let status = decision.statuses().next().expect("one");
        assert_eq!((status.limit, status.remaining, status.charged), (limit, 20, 5));
    }
}

#[test]
fn what_is_too_much_for_the_part_is_refused_and_what_never_fits_never_fits() {
    let (store, fleet) = member_of(4, &ManualClock::new());
    for limit in eight() {
        assert_eq!(
            take(&store, limit, 3).verdict(),
            Verdict::Refuse { retry_after: None },
            "{limit}"
        );
        assert_eq!(take(&store, limit, 9).verdict(), Verdict::Never, "{limit}");
    }
    fleet.see(1);
}

#[test]
fn a_charge_is_given_back_as_it_was_charged_though_the_part_has_changed() {
    for limit in eight() {
        let clock = ManualClock::new();
        let (store, fleet) = member_of(4, &clock);
        let charged = charge(limit, 2);
        let outcome = take(&store, limit, 2);
        let receipt = outcome.receipts().next().expect("one");
        fleet.see(2);
        fleet.see(8);
        let debit = charged.debits().next().expect("one");
        Store::settle(&store, debit, &receipt, 0);
        fleet.see(4);
        clock.advance(3 * SECOND);
        // All of it is there again, and not more.
        assert_eq!(admitted(&store, limit), 2, "{limit}");
    }
}

#[test]
fn what_is_reset_without_a_part_is_forgotten() {
    for limit in eight().into_iter().filter(|limit| !limit.is_held()) {
        // Not a member, a part that is nothing for most limits, and one that is guarded.
        for (count, guard) in [(0, 0), (9, 0), (1, 1)] {
            let clock = ManualClock::at(1_000 * MINUTE + SECOND);
            let (store, fleet) = member_of(1, &clock);
            let guarded = store.clone().guard(30 * SECOND * guard);
            let set = || SetSpent::new(guarded.clone(), charge(limit, 0), 0).now();
            let reset = || guarded.reset(&charge(limit, 1)).now().map(drop);
            for forget in [&set as &dyn Fn() -> Result<(), StoreError>, &reset] {
                assert_eq!(admitted(&store, limit), 8, "{limit}");
                fleet.see(count);
                forget().expect("it is forgotten");
                fleet.see(0);
                fleet.open();
                fleet.see(1);
            }
            assert_eq!(admitted(&store, limit), 8, "{limit}");
        }
    }
}

#[test]
fn several_limits_are_charged_all_or_none() {
    let (store, _) = member_of(4, &ManualClock::new());
    let mut both = Charge::new();
    for limit in [Limit::per_minute(40), Limit::per_hour(8)] {
        both.add(limit, KeyBuf::of("api"), 1).expect("room");
    }
    let outcomes = [(); 3].map(|()| store.take(&both).now().expect("a decision").is_admitted());
    assert_eq!(outcomes, [true, true, false]);
    let left = store.peek(&charge(Limit::per_minute(40), 1)).now().expect("a decision");
    assert_eq!(left.decision(&charge(Limit::per_minute(40), 1)).remaining(), Some(8));
}

#[test]
fn a_charge_may_wait_for_its_turn_in_the_part() {
    let (store, _) = member_of(4, &ManualClock::new());
    let patient = charge(Limit::per_minute(4), 1).patient(MINUTE);
    let waits = [(); 2].map(|()| store.take(&patient).now().expect("a decision").wait());
    assert_eq!(waits, [Duration::ZERO, MINUTE]);
}

#[test]
fn a_window_is_guarded_at_both_ends() {
    let clock = ManualClock::at(Duration::from_secs(1_000_000));
    let (store, _) = member_of(4, &clock);
    let store = store.guard(Duration::from_millis(50));
    let limit = Limit::fixed_window(8, SECOND);
    assert_eq!(take(&store, limit, 1).retry_after(), Some(Duration::from_millis(50)));
    clock.advance(Duration::from_millis(50));
    assert!(take(&store, limit, 1).is_admitted());
    clock.advance(Duration::from_millis(900));
    assert_eq!(take(&store, limit, 1).retry_after(), Some(Duration::from_millis(100)));
    assert!(store.check(&Limit::fixed_window(8, Duration::from_millis(100))).is_err());
    assert!(store.check(&limit).is_ok());
    // A bucket needs no agreement between clocks.
    assert!(take(&store, Limit::per_second(8), 1).is_admitted());
}

#[test]
fn a_number_of_members_beyond_belief_admits_nothing() {
    let (store, fleet) = member_of(1, &ManualClock::new());
    for count in [1 << 27, u64::MAX, 0] {
        fleet.see(count);
        assert!(!take(&store, Limit::per_second(2_000_000), 1).is_admitted(), "{count}");
    }
    let (store, fleet) = member_of(1, &ManualClock::new());
    fleet.see(1_000_000);
    let limit = Limit::per_second(2_000_000);
    assert_eq!(admitted(&store, limit), 2);
}

#[test]
fn a_part_too_small_to_stay_exact_is_an_error_and_no_refusal() {
    let (store, fleet) = member_of(1, &ManualClock::new());
    fleet.see(100_000_000);
    let yearly = Limit::per(1, 365 * 24 * 3_600 * SECOND);
    let error = store.take(&charge(yearly, 1)).now().expect_err("too small");
    let source = std::error::Error::source(&error).expect("a reason").to_string();
    assert!(source.contains("too small to stay exact"), "{source}");
}

/// Checks that the view of `fleet`, which is valid for this long, is spent until its end and no longer.
fn is_spent_for(valid: Duration, fleet: &Fleet, clock: &ManualClock) {
    let store = Share::new(Memory::builder().capacity(100).clock(clock).build(), fleet);
    let limit = Limit::per_second(1_000_000);
    clock.advance(valid - Duration::from_micros(1));
    assert!(take(&store, limit, 1).is_admitted());
    clock.advance(Duration::from_micros(1));
    assert!(!take(&store, limit, 1).is_admitted());
}

#[test]
fn a_view_is_not_spent_beyond_its_time() {
    let clock = ManualClock::new();
    let fleet = Fleet::by_clock(2 * SECOND, &clock);
    fleet.open();
    let valid = Duration::from_micros(70_000);
    fleet.see_part_for(Some(Part::one_of(2)), valid);
    is_spent_for(valid, &fleet, &clock);
}

/// It grows by the older view that ends, and ends itself within the same tick.
#[test]
fn a_view_that_grows_just_before_its_end_is_not_spent_beyond_it() {
    let clock = ManualClock::new();
    let fleet = Fleet::by_clock(2 * SECOND, &clock);
    fleet.open();
    fleet.see_part_for(Some(Part::one_of(4)), 10 * SECOND);
    clock.advance(Duration::from_micros(30_000));
    let valid = Duration::from_micros(2_001_000);
    fleet.see_part_for(Some(Part::one_of(2)), valid);
    is_spent_for(valid, &fleet, &clock);
}
