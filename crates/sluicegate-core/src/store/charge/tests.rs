use super::*;
use crate::clock::ManualClock;
use crate::cost::account::Due;
use crate::store::{Memory, Store};

fn key(name: &[u8]) -> KeyBuf {
    let mut key = KeyBuf::new();
    key.push(name);
    key
}

struct Response(u16);

impl Reply for Response {
    fn status(&self) -> u16 {
        self.0
    }

    fn header(&self, _: &str) -> Option<&[u8]> {
        None
    }

    fn cost(&self) -> Option<u64> {
        None
    }

    fn running(&self) -> Option<crate::cost::RunningCost> {
        None
    }

    fn is_refusal(&self) -> bool {
        false
    }
}

#[test]
fn one_row_is_owed_once_with_all_that_it_costs() {
    let limit = Limit::per_minute(10);
    let mut charge = Charge::new();
    assert!(charge.is_empty());
    charge.add(limit, key(b"a"), 1).expect("room");
    charge.add(limit, key(b"b"), 2).expect("room");
    charge.add(limit, key(b"a"), 3).expect("room");
    charge.add(limit, key(b"b"), u64::MAX).expect("room");
    let costs: Vec<_> = charge.debits().map(|debit| debit.cost).collect();
    assert_eq!(costs, [4, u64::MAX]);
    assert_eq!(charge.len(), 2);
}

/// One rule counts failures only, the other everything. Giving back what the first does not count must not give back
/// what the second counts.
#[test]
fn two_rules_that_owe_to_one_row_are_settled_each_its_own_way() {
    let limit = Limit::per_minute(10);
    let failures = || {
        Some(Account::new(
            Due::Head,
            |reply, charged| if reply.status() == 401 { charged } else { 0 },
        ))
    };
    for (first, second) in [(None, failures()), (failures(), None)] {
        let mut charge = Charge::new();
        charge.add_on_account(limit, key(b"a"), 2, first).expect("room");
        charge.add_on_account(limit, key(b"a"), 2, second).expect("room");
        let debit = charge.debits().next().expect("one row");
        assert_eq!(debit.cost, 4);
        assert_eq!(debit.spent(&Response(401)), 4);
        assert_eq!(debit.spent(&Response(200)), 2);
    }
}

#[test]
fn no_request_owes_to_more_limits_than_the_bound() {
    let mut charge = Charge::new();
    for i in 1..=MAX_LIMITS as u64 {
        charge.add(Limit::per_minute(i), key(b"a"), 1).expect("room");
    }
    let error = charge.add(Limit::per_hour(1), key(b"a"), 1).expect_err("one too many");
    assert!(error.is_server());
    assert_eq!(
        error.to_string(),
        "the server lacks room for another limit: charge no request to more than 16 limits"
    );
    // A row that is already charged may still be charged more.
    charge.add(Limit::per_minute(1), key(b"a"), 1).expect("the same row");
    assert_eq!(charge.len(), MAX_LIMITS);
}

#[test]
fn two_limits_that_would_share_a_row_are_told_apart_by_name() {
    let one = Limit::per_minute(10).named("api");
    let other = one.burst(5);
    let mut charge = Charge::of(one, key(b"a"), 1);
    let error = charge.add(other, key(b"a"), 1).expect_err("they share a row");
    assert!(error.is_server());
    assert_eq!(
        error.to_string(),
        "the server lacks a name that tells `10/minute named \"api\"` from `10/minute burst 5 named \"api\"`: \
         give each limit of a rule its own `.named(..)`"
    );
    charge.add(other.named("burst"), key(b"a"), 1).expect("another name");
    charge.add(other, key(b"b"), 1).expect("another key");
}

#[test]
fn a_shadow_on_another_key_changes_no_verdict_and_no_wait() {
    let second = Duration::from_secs(1);
    let verdicts = |has_shadow: bool| {
        let memory = Memory::builder().capacity(100).clock(ManualClock::new()).build();
        let mut charge = Charge::new();
        for limit in [Limit::leaky_bucket(1, second).queue(5), Limit::per_second(10).burst(4)] {
            charge.add(limit, key(b"a"), 1).expect("room");
        }
        if has_shadow {
            charge.add(Limit::per_minute(100).shadow(), key(b"all"), 1).expect("room");
        }
        [(); 8].map(|()| memory.take(&charge).now().expect("room").verdict())
    };
    assert!(verdicts(false).iter().any(|verdict| !verdict.wait().is_zero()));
    assert_eq!(verdicts(true), verdicts(false));
}
