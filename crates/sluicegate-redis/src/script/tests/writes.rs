//! What is written when, and how much work it takes.

use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::Charge;

use super::compare::charge;
use super::model::Pair;
use super::pick::{DAY, SECOND};

const NOW: u64 = 20_454 * DAY;

fn pair() -> Pair {
    let mut pair = Pair::new();
    pair.turn_to(NOW);
    pair
}

fn admits(pair: &mut Pair, charge: &Charge) -> bool {
    pair.take(charge).is_admitted()
}

fn plain() -> [Limit; 6] {
    let second = Duration::from_secs(1);
    [
        Limit::per_second(2),
        Limit::per_second(2).refill(2, second),
        Limit::fixed_window(2, second),
        Limit::sliding_window(2, second),
        Limit::sliding_log(2, second),
        Limit::concurrent(2),
    ]
}

#[test]
fn a_refusal_writes_nothing() {
    for limit in
        plain().into_iter().chain([Limit::leaky_bucket(2, Duration::from_secs(1)).queue(1)])
    {
        let mut pair = pair();
        let charge = charge(limit, "alice", 1);
        assert!(admits(&mut pair, &charge) && admits(&mut pair, &charge), "{limit}");
        assert!(!admits(&mut pair, &charge), "{limit}");
        assert!(!pair.redis.has_written_any(), "{limit}");
    }
}

#[test]
fn a_refusal_is_written_if_the_limit_records_it() {
    let [_, _, fixed, sliding, log, _] = plain();
    for limit in [fixed.ban(Duration::from_secs(9)), sliding.count_refused(), log.count_refused()] {
        let mut pair = pair();
        let charge = charge(limit, "alice", 2);
        assert!(admits(&mut pair, &charge), "{limit}");
        assert!(!admits(&mut pair, &charge), "{limit}");
        assert!(pair.redis.has_written_any(), "{limit}");
    }
}

#[test]
fn a_refusal_follows_a_clock_that_stepped_back_and_then_writes_nothing_again() {
    for limit in plain().into_iter().filter(|limit| !limit.is_held()) {
        let mut pair = pair();
        let charge = charge(limit, "alice", 2);
        assert!(admits(&mut pair, &charge), "{limit}");
        pair.turn_to(NOW - 3_600 * SECOND);
        assert!(!admits(&mut pair, &charge), "{limit}");
        assert!(pair.redis.has_written_any(), "{limit}");
        pair.turn_to(NOW - 3_600 * SECOND + 1);
        assert!(!admits(&mut pair, &charge), "{limit}");
        assert!(!pair.redis.has_written_any(), "{limit}");
    }
}

#[test]
fn a_cost_of_zero_leaves_no_row_behind() {
    for limit in plain() {
        let mut pair = pair();
        assert!(admits(&mut pair, &charge(limit, "alice", 0)), "{limit}");
        assert!(pair.redis.is_empty(), "{limit}");
    }
}

#[test]
fn a_charge_that_is_given_back_leaves_no_row_behind() {
    for limit in plain() {
        let mut pair = pair();
        let charge = charge(limit, "alice", 2);
        let outcome = pair.take(&charge);
        assert!(!pair.redis.is_empty(), "{limit}");
        let (debit, receipt) =
            (charge.debits().next().unwrap(), outcome.receipts().next().unwrap());
        pair.settle(debit, &receipt, 0);
        assert!(pair.redis.is_empty(), "{limit}");
    }
}

/// Nor much longer than twice as long as it matters; a test of random sequences checks that.
#[test]
fn a_row_whose_expiry_is_right_is_written_without_it() {
    let second = Duration::from_secs(1);
    let limits = [
        Limit::per_second(1).burst(1_000),
        Limit::per_second(1).burst(1_000).refill(1, second),
        Limit::fixed_window(1_000, second),
        Limit::sliding_window(1_000, second),
    ];
    for limit in limits {
        let mut pair = pair();
        let timed = (0..256).filter(|_| {
            assert!(admits(&mut pair, &charge(limit, "alice", 1)), "{limit}");
            assert!(pair.redis.has_written_any(), "{limit}");
            pair.redis.has_timed_any()
        });
        let timed = timed.count();
        assert!(timed <= 24, "{limit}: {timed} times");
    }
}

#[test]
fn the_bytes_of_dropped_stamps_are_reclaimed() {
    let mut pair = pair();
    let charge = charge(Limit::sliding_log(100, Duration::from_micros(100)), "alice", 1);
    for now in NOW..NOW + 5_000 {
        pair.turn_to(now);
        assert!(admits(&mut pair, &charge));
        // A head, the stamps that count, and at most the same number of dropped ones.
        assert!(pair.redis.bytes() <= 72 + 16 * 202, "{}", pair.redis.bytes());
    }
}

#[test]
fn refusals_do_not_walk_over_many_dropped_stamps_again_and_again() {
    let mut pair = pair();
    let log = Limit::sliding_log(1_000, Duration::from_micros(1_000));
    for now in NOW..NOW + 1_000 {
        pair.turn_to(now);
        assert!(admits(&mut pair, &charge(log, "alice", 1)));
    }
    let too_much = charge(log, "alice", 1_001);
    pair.turn_to(NOW + 1_000 + 63);
    assert!(!admits(&mut pair, &too_much));
    assert!(!pair.redis.has_written_any());
    pair.turn_to(NOW + 1_000 + 64);
    assert!(!admits(&mut pair, &too_much));
    assert!(pair.redis.has_written_any());
    assert!(!admits(&mut pair, &too_much));
    assert!(!pair.redis.has_written_any());
}

#[test]
fn a_long_log_costs_no_more_commands_and_bytes_than_a_short_one() {
    let work = |len: u64| {
        let mut pair = pair();
        let limit = Limit::sliding_log(len, Duration::from_micros(len));
        let charge = charge(limit, "alice", 1);
        let mut last = (0, 0);
        for now in NOW..NOW + 3 * len / 2 {
            pair.turn_to(now);
            assert!(admits(&mut pair, &charge));
            last = (pair.redis.commands(), pair.redis.moved());
        }
        last
    };
    let (commands, moved) = work(1_000);
    assert!(commands <= 8, "{commands} commands");
    assert!(moved <= 2_000, "{moved} bytes");
    assert_eq!(work(100).0, commands);
}
