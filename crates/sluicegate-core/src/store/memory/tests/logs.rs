//! The room that sliding logs share.

use proptest::prelude::*;

use super::*;
use crate::limit::testing::decide;
use crate::limit::{Attempt, State};

fn logs(entries: usize) -> (Memory, ManualClock) {
    let clock = ManualClock::new();
    let builder = Memory::builder().capacity(1_000).log_entries(entries);
    (builder.clock(&clock).build(), clock)
}

/// Entries that logs hold beyond their own.
fn entries(store: &Memory) -> usize {
    store.0.log_budget.used()
}

/// Spends until the first refusal, and returns how often that worked.
fn spend(store: &Memory, clock: &ManualClock, limit: Limit, number: u64, times: usize) -> u64 {
    let one = |_| {
        clock.advance(Duration::from_micros(1));
        u64::from(admits(store, limit, number))
    };
    (0..times).map(one).sum()
}

#[test]
fn the_entries_of_all_logs_are_bounded() {
    let (store, clock) = logs(1_000);
    let limit = Limit::sliding_log(100, MINUTE);
    let mut admitted = [0; 200];
    for number in (0..200).cycle().take(30_000) {
        clock.advance(Duration::from_micros(1));
        admitted[number as usize] += u64::from(admits(&store, limit, number));
        assert!(entries(&store) <= 1_000);
    }
    assert!(admitted.iter().all(|admitted| *admitted == 100), "{admitted:?}");
    assert_eq!(store.turned_away(), 0);
}

/// What is owed beyond the limit is an entry now and one ahead.
#[test]
fn a_debt_beyond_the_limit_takes_no_more_room_than_there_is() {
    let limit = Limit::sliding_log(100, MINUTE);
    for own in 1..16 {
        let (store, clock) = logs(4);
        assert_eq!(spend(&store, &clock, limit, 1, own), own as u64);
        let charge = Charge::of(limit, key(1), 1);
        let outcome = store.take(&charge).now().expect("a decision");
        clock.advance(Duration::from_micros(1));
        let (debit, receipt) = (charge.debits().next(), outcome.receipts().next());
        store.settle(debit.expect("one"), &receipt.expect("one"), 150);
        assert!(entries(&store) <= 4, "{own}: {}", entries(&store));
    }
}

/// The entries of recovered logs are free for others, even if their keys do not come back.
#[test]
fn the_room_of_recovered_logs_is_swept_up() {
    let (store, clock) = logs(1_000);
    let limit = Limit::sliding_log(100, MINUTE);
    (0..40).for_each(|number| assert_eq!(spend(&store, &clock, limit, number, 64), 64));
    let before = entries(&store);
    assert!(before > 400, "{before}");
    clock.advance(MINUTE + EXPIRED);
    // Sweeping takes a bounded amount at a time.
    (300..340).for_each(|number| assert_eq!(spend(&store, &clock, limit, number, 64), 64));
    let forget = |number| store.reset(&Charge::of(limit, key(number), 1)).now();
    (0..40).for_each(|number| assert!(forget(number).is_ok()));
    assert!(entries(&store) > 300, "{} of {before}", entries(&store));
}

#[test]
fn a_row_that_is_reused_gives_back_its_room() {
    let (store, clock) = logs(1_000_000);
    let limit = Limit::sliding_log(12, SECOND);
    for number in 0..5_000 {
        clock.advance(Duration::from_millis(2));
        assert_eq!(spend(&store, &clock, limit, number, 12), 12);
    }
    // Never more rows than the table has, with four entries each beside their own.
    assert!(entries(&store) <= 4 * 1_260, "{}", entries(&store));
}

#[test]
fn a_reset_gives_back_its_room() {
    let (store, clock) = logs(100);
    let limit = Limit::sliding_log(20, SECOND);
    for _ in 0..100 {
        assert_eq!(spend(&store, &clock, limit, 0, 20), 20);
        assert_ne!(entries(&store), 0);
        store.reset(&Charge::of(limit, key(0), 1)).now().expect("no room is needed");
        assert_eq!(entries(&store), 0);
    }
}

/// Addresses with a thousand entries each, and one that guesses a password.
#[test]
fn the_logs_of_one_limit_do_not_switch_off_those_of_another() {
    let (store, clock) = logs(16_000);
    let (limit, login) = (Limit::sliding_log(1_000, MINUTE), Limit::sliding_log(5, MINUTE));
    for number in 0..60 {
        assert_eq!(spend(&store, &clock, limit, number, 1_000), 1_000);
    }
    assert!(entries(&store) > 7_000);
    // The first five are limited exactly, with room or without.
    assert_eq!(spend(&store, &clock, limit, 100, 5), 5);
    assert_eq!(spend(&store, &clock, limit, 100, 9_995), 995);
    assert_eq!(spend(&store, &clock, login, 200, 10_000), 5);
    assert!((0..60).all(|number| !admits(&store, limit, number)));
    assert_eq!(store.turned_away(), 0);
}

/// However much another limit has taken, some of the room is left.
#[test]
fn the_logs_of_a_limit_leave_room_for_those_of_others() {
    let (store, clock) = logs(16_000);
    let flood = Limit::sliding_log(1_000, MINUTE);
    let all =
        |limit, times| (0..60).map(|number| spend(&store, &clock, limit, number, times)).sum();
    let met: u64 = all(flood, 1_000);
    assert_eq!(met, 60_000);
    for (count, part) in [(900, 2), (800, 3), (700, 4)] {
        let before = entries(&store);
        let limit = Limit::sliding_log(count, MINUTE);
        let met: u64 = all(limit, 700);
        assert_eq!(met, 42_000);
        let (after, left) = (entries(&store), 16_000 - before);
        assert!(after - before > left / 4, "part {part}: {} of {left}", after - before);
        assert!(after - before <= left / 2 + 1_000, "part {part}: {} of {left}", after - before);
    }
}

/// With only its own entries, a log still counts every attempt of a flood.
#[test]
fn a_log_without_room_refuses_a_burst_exactly() {
    let (store, clock) = logs(0);
    let limit = Limit::sliding_log(100, MINUTE).count_refused();
    for number in [0, 1] {
        assert_eq!(spend(&store, &clock, limit, number, 100), 100);
    }
    assert!((0..2).all(|number| !admits(&store, limit, number)));
    assert_eq!(entries(&store), 0);
    clock.advance(2 * MINUTE);
    assert!((0..2).all(|number| admits(&store, limit, number)));
}

#[test]
fn looking_and_giving_back_need_no_room() {
    let (store, clock) = logs(0);
    let limit = Limit::sliding_log(20, MINUTE);
    let charge = Charge::of(limit, key(0), 1);
    assert_eq!(spend(&store, &clock, limit, 0, 15), 15);
    clock.advance(SECOND);
    let last = take(&store, limit, 0).expect("room");
    assert_eq!(remaining(&store, limit, 0), 4);

    let receipt = last.statuses().next().expect("one limit").receipt;
    let debit = charge.debits().next().expect("one limit");
    store.settle(debit, &receipt, 0);
    assert_eq!(remaining(&store, limit, 0), 5);
    assert_eq!(store.turned_away(), 0);
}

/// A log that has to merge its stamps is charged with the other rows, all or none.
#[test]
fn a_log_without_room_is_charged_with_the_other_limits() {
    let (store, clock) = logs(0);
    let (log, other) = (Limit::sliding_log(12, MINUTE), Limit::per_minute(10));
    let banning = Limit::per_minute(9).ban(MINUTE);
    assert_eq!(spend(&store, &clock, log, 0, 4), 4);
    let mut all = Charge::of(other, key(0), 1);
    all.add(log, key(0), 1).expect("three limits");
    all.add(banning, key(0), 1).expect("three limits");
    let admitted = [(); 20].map(|()| {
        clock.advance(Duration::from_micros(1));
        store.take(&all).now().expect("a row").is_admitted()
    });
    assert_eq!(admitted.iter().filter(|admitted| **admitted).count(), 8);
    assert_eq!(remaining(&store, other, 0), 2);
    assert_eq!(remaining(&store, log, 0), 0);
    assert_eq!(remaining(&store, banning, 0), 1);
}

#[test]
fn a_key_whose_own_log_has_room_is_not_turned_away() {
    let (store, clock) = logs(8);
    let limit = Limit::sliding_log(4, 10 * SECOND);
    for number in [1, 2] {
        for _ in 0..4 {
            assert!(admits(&store, limit, number));
            clock.advance(SECOND);
        }
    }
    assert!(!admits(&store, limit, 1));
    clock.advance(2 * SECOND);
    assert!(admits(&store, limit, 1));
    assert!(!admits(&store, limit, 1));
    assert_eq!(store.turned_away(), 0);
}

#[test]
fn hammering_does_not_make_a_log_longer_than_its_limit() {
    let (store, _clock) = logs(1_000);
    let limit = Limit::sliding_log(12, MINUTE);
    for _ in 0..100 {
        let _ = take(&store, limit, 1);
    }
    assert!(entries(&store) <= 5, "{}", entries(&store));
}

/// A limit that does not fit is reported when a layer is made. A store that is asked directly still counts it.
#[test]
fn a_log_that_does_not_fit_is_refused_and_enforced() {
    let day = Duration::from_secs(86_400);
    let limit = Limit::sliding_log(3_000_000, day);
    let error = Memory::new().check(&limit).unwrap_err().to_string();
    assert!(error.contains("`resolution`"), "{error}");
    assert!("log 3000000/day".parse::<Limit>().is_err());
    assert!("log 3000000/day resolution 1 minute".parse::<Limit>().is_ok());
    let made = std::panic::catch_unwind(|| {
        crate::admission::enforcer::Enforcer::in_memory(&limit.by(crate::key::Global))
    });
    assert!(made.is_err(), "a layer that would not keep it");

    let (store, clock) = logs(2_000_000);
    let limit = Limit::sliding_log(100_000, day);
    assert_eq!(spend(&store, &clock, limit, 1, 100_100), 100_000);
}

/// The reference: each stamp is kept for ever.
#[derive(Default)]
struct Exact(Vec<(u64, u64)>);

impl Exact {
    fn admits(&self, limit: Limit, now: u64, cost: u64) -> bool {
        let period = limit.period().expect("a log").as_micros() as u64;
        let recent = self.0.iter().filter(|(stamp, _)| stamp + period > now);
        recent.map(|(_, cost)| cost).sum::<u64>() + cost <= limit.count()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// With any room: a log admits nothing that an exact log would refuse.
    #[test]
    fn a_log_without_room_admits_no_more_than_an_exact_one(
        room in prop_oneof![Just(0), Just(40), Just(400)],
        resolution in prop_oneof![Just(1), Just(50_000)],
        count in 9_u64..120,
        steps in prop::collection::vec((0_u64..30_000, 0_u64..4, 1_u64..4, 0_u64..8), 1..600),
    ) {
        let (store, clock) = logs(room);
        let limit = Limit::sliding_log(count, SECOND).resolution(Duration::from_micros(resolution));
        let mut exact: [Exact; 4] = Default::default();
        for (wait, number, cost, settled) in steps {
            clock.advance(Duration::from_micros(wait));
            let now = clock.now();
            let charge = Charge::of(limit, key(number), cost);
            let outcome = store.take(&charge).now().expect("a row");
            if !outcome.is_admitted() {
                continue;
            }
            let exact = &mut exact[number as usize];
            prop_assert!(exact.admits(limit, now, cost));
            exact.0.push((now, cost));
            if settled == 0 {
                let receipt = outcome.receipts().next().expect("one limit");
                store.settle(charge.debits().next().expect("one limit"), &receipt, 0);
                exact.0.pop();
            }
        }
        prop_assert_eq!(store.turned_away(), 0);
    }

    /// With enough room, a log is exact.
    #[test]
    fn a_log_with_room_beside_a_flood_is_exact(
        count in 9_u64..120,
        waits in prop::collection::vec(0_u64..30_000, 1..600),
    ) {
        let (store, clock) = logs(2_000);
        let flood = Limit::sliding_log(500, MINUTE).named("flood");
        for number in 1_000..1_010 {
            prop_assert_eq!(spend(&store, &clock, flood, number, 400), 400);
        }
        let limit = Limit::sliding_log(count, SECOND);
        let mut state = State::default();
        for wait in waits {
            clock.advance(Duration::from_micros(wait));
            let admitted = admits(&store, limit, 0);
            let mut attempt = [Attempt { limit: &limit, state: &mut state, cost: 1 }];
            let keys = crate::limit::Keys::One;
            let decision = decide(&mut attempt, clock.now(), None, keys);
            prop_assert_eq!(admitted, decision.is_admitted());
        }
    }
}

/// A coarse log is not much stricter: in a steady stream of twice its limit it admits most of what an exact one does.
#[test]
fn a_coarse_log_admits_most_of_what_an_exact_one_does() {
    let (store, clock) = logs(0);
    let limit = Limit::sliding_log(1_000, SECOND);
    let admitted: u64 = (0..40_000)
        .map(|_| {
            clock.advance(Duration::from_micros(500));
            u64::from(admits(&store, limit, 0))
        })
        .sum();
    assert!((12_000..=20_000).contains(&admitted), "{admitted} of 20,000");
}
