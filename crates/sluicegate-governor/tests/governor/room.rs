//! The answers of a full table, which stays within its bound.

use std::time::Duration;

use sluicegate_core::adapter::Charge;
use sluicegate_core::limit::{MAX_LIMITS, WhenFull};
use sluicegate_core::store::Store;
use sluicegate_core::{Limit, ManualClock};
use sluicegate_governor::Governor;

use super::key;

const NAMES: [&str; MAX_LIMITS] =
    ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"];

/// One token of each limit, on the key beside it.
fn charge<const N: usize>(debit: [(Limit, &str); N]) -> Charge {
    let mut charge = Charge::new();
    for (limit, name) in debit {
        charge.add(limit, key(name), 1).unwrap();
    }
    charge
}

#[test]
fn no_room_for_another_limit_frees_no_limited_key() {
    let store = Governor::with_clock(1, ManualClock::new());
    let (address, token) = (Limit::per_hour(1).named("address"), Limit::per_hour(9).named("token"));
    assert!(store.take(&charge([(address, "victim")])).now().unwrap().is_admitted());
    for debit in [[(address, "victim"), (token, "fresh")], [(token, "fresh"), (address, "victim")]]
    {
        let charge = charge(debit);
        let refused = store.take(&charge).now().unwrap().decision(&charge);
        assert!(!refused.is_admitted());
        assert_eq!(refused.retry_after(), Some(Duration::from_secs(3_600)));
        let refusing: Vec<_> = refused.statuses().filter(|status| status.refused).collect();
        assert_eq!(refusing.len(), 1);
        assert_eq!(refusing[0].limit, address);
    }
    assert_eq!(store.len(), 1);
}

#[test]
fn who_would_be_admitted_is_told_that_there_is_no_room_and_charged_nowhere() {
    let store = Governor::with_clock(1, ManualClock::new());
    let (address, token) = (Limit::per_hour(2).named("address"), Limit::per_hour(9).named("token"));
    assert!(store.take(&charge([(address, "known")])).now().unwrap().is_admitted());
    let both = charge([(address, "known"), (token, "fresh")]);
    assert!(store.take(&both).now().unwrap_err().is_full());
    assert!(store.take(&both.patient(Duration::from_secs(9))).now().unwrap_err().is_full());
    let known = charge([(address, "known")]);
    assert_eq!(store.peek(&known).now().unwrap().decision(&known).remaining(), Some(1));
    assert_eq!(store.len(), 1);
}

/// A limit that recovers in seconds and has no room does not affect the counts of the other limits.
#[test]
fn what_has_room_is_charged_when_another_limit_has_none() {
    let store = Governor::with_clock(1, ManualClock::new());
    let (address, token) =
        (Limit::per_hour(5).named("address"), Limit::per_second(10).named("token"));
    assert!(store.take(&charge([(address, "known")])).now().unwrap().is_admitted());
    let both = charge([(token, "fresh"), (address, "known")]);
    let admitted = [(); 20].map(|()| store.take(&both).now().unwrap());
    assert_eq!(admitted.iter().filter(|outcome| outcome.is_uncounted()).count(), 4);
    assert_eq!(admitted.iter().filter(|outcome| outcome.is_admitted()).count(), 4);
    let decision = admitted[0].decision(&both);
    let told: Vec<_> = decision.statuses().map(|it| (it.uncounted, it.charged)).collect();
    assert_eq!(told, [(true, 0), (false, 1)]);
    let strict = charge([(token.when_full(WhenFull::Refuse), "fresh"), (address, "other")]);
    assert!(store.take(&strict).now().unwrap_err().must_refuse());
    assert_eq!(store.len(), 1);
}

#[test]
fn more_to_pay_is_not_written_where_there_is_no_room() {
    let store = Governor::with_clock(1, ManualClock::new());
    let limit = Limit::per_hour(9);
    let outcome = store.take(&charge([(limit, "known")])).now().unwrap();
    let fresh = charge([(limit, "fresh")]);
    let receipt = outcome.receipts().next().unwrap();
    store.settle(fresh.debits().next().unwrap(), &receipt, 5);
    assert_eq!(store.peek(&fresh).now().unwrap().decision(&fresh).remaining(), Some(9));
    assert_eq!(store.len(), 1);
}

#[test]
fn the_limits_of_one_charge_share_the_room_that_is_left() {
    let limit = Limit::per_hour(9);
    let many = charge(NAMES.map(|name| (limit, name)));
    for capacity in 1..MAX_LIMITS {
        let store = Governor::with_clock(capacity, ManualClock::new());
        assert!(store.take(&many).now().unwrap_err().is_full());
        assert!(store.is_empty());
    }
    let store = Governor::with_clock(MAX_LIMITS, ManualClock::new());
    assert!(store.take(&many).now().unwrap().is_admitted());
    assert_eq!(store.len(), MAX_LIMITS);
}

#[test]
fn a_shard_stays_within_its_bound_whatever_one_charge_owes() {
    // 64 shards with room for 1,281 rows each.
    let store = Governor::with_clock(65_536, ManualClock::new());
    for round in 0..60_000_u64 {
        let mut pair = Charge::new();
        for name in ["a", "b"] {
            pair.add(Limit::per_hour(9), key((round, name)), 1).unwrap();
        }
        let _ = store.take(&pair).now();
    }
    assert!(store.len() <= 64 * 1_281, "{}", store.len());
}

#[test]
fn a_recovered_row_makes_no_room_for_the_charge_that_it_belongs_to() {
    let limit = Limit::per_hour(9);
    for both in [["known", "fresh"], ["fresh", "known"]] {
        let clock = ManualClock::new();
        let store = Governor::with_clock(1, &clock);
        assert!(store.take(&charge([(limit, "known")])).now().unwrap().is_admitted());
        clock.advance(Duration::from_secs(3_600));
        let both = charge(both.map(|name| (limit, name)));
        assert!(store.take(&both).now().unwrap_err().is_full());
        assert_eq!(store.len(), 1);
        assert!(store.take(&charge([(limit, "fresh")])).now().unwrap().is_admitted());
        assert_eq!(store.len(), 1);
    }
}
