//! Calls that are sent together in one script.

use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::{Debit, Keys};

use super::super::{Call, Row};
use super::compare::charge;
use super::pick::{DAY, SECOND};
use super::redis::{Content, Redis};

fn plain() -> [Limit; 5] {
    let second = Duration::from_secs(1);
    [
        Limit::per_second(3),
        Limit::per_second(3).refill(2, second),
        Limit::fixed_window(3, second),
        Limit::sliding_window(3, second),
        Limit::concurrent(3),
    ]
}

fn debit(limit: Limit, cost: u64) -> Debit {
    charge(limit, "alice", cost).debits().next().unwrap().clone()
}

fn take<'a>(rows: &'a [Row<'a>]) -> Call<'a> {
    Call::take(rows, None, Keys::One, None)
}

#[test]
fn calls_are_decided_one_after_the_other() {
    let (mut apart, mut together) = (Redis::new(), Redis::new());
    let mut state = 7_u64;
    let mut pick = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    };
    for _ in 0..4_000 {
        let now = 20_454 * DAY + pick(6) * SECOND / 2;
        apart.turn_to(now);
        together.turn_to(now);
        let debit: Vec<_> = (0..2 + pick(6))
            .map(|_| (format!("row {}", pick(2)), debit(plain()[pick(5) as usize], pick(3))))
            // A row belongs to one limit.
            .map(|(key, debit)| (format!("{key} {}", debit.limit), debit))
            .collect();
        let rows: Vec<_> =
            debit.iter().map(|(key, debit)| [Row { key: key.as_bytes(), debit }]).collect();
        let calls: Vec<_> = rows.iter().map(|rows| take(rows)).collect();
        let answers: Vec<_> = calls.iter().map(|call| apart.run(call)).collect();
        assert_eq!(together.run_together(&calls), answers);
        for row in rows.as_flattened() {
            assert_eq!(together.row(row.key), apart.row(row.key));
            assert_eq!(together.expiry(row.key), apart.expiry(row.key));
        }
    }
}

/// All rows are read by one command, or a single row by GET. A row that is missing is read again, in case it is not a
/// string.
#[test]
fn calls_together_take_few_commands() {
    let mut redis = Redis::new();
    redis.turn_to(20_454 * DAY);
    let debit = debit(Limit::per_second(9), 1);
    let mut commands = |keys: [&str; 4]| {
        let rows = keys.map(|key| [Row { key: key.as_bytes(), debit: &debit }]);
        let answers = redis.run_together(&rows.each_ref().map(|rows| take(rows)));
        assert!(answers.iter().all(Result::is_ok));
        redis.commands()
    };
    // TIME, MGET, four times GET, four times SET.
    assert_eq!(commands(["a", "b", "c", "d"]), 10);
    assert_eq!(commands(["d", "c", "b", "a"]), 6);
    // TIME, MGET, twice SET.
    assert_eq!(commands(["a", "b", "a", "b"]), 4);
    // TIME, GET, SET.
    assert_eq!(commands(["a", "a", "a", "a"]), 3);
}

#[test]
fn a_malformed_row_fails_only_its_own_call() {
    let mut redis = Redis::new();
    redis.turn_to(20_454 * DAY);
    redis.put(b"list", Content::List);
    redis.put(b"long", Content::Bytes(vec![0; 17]));
    let debit = debit(Limit::per_second(3), 1);
    let rows =
        ["good", "list", "long", "other"].map(|key| [Row { key: key.as_bytes(), debit: &debit }]);
    let calls = rows.each_ref().map(|rows| take(rows));
    let answers = redis.run_together(&calls);
    assert_eq!(answers.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, false, true]);
    assert!(redis.row(b"good").is_some() && redis.row(b"other").is_some());
}
