//! Random operations on a store, compared with a plain map of all states.

use sluicegate_core::ManualClock;
use sluicegate_redis::RedisBuilder;
use sluicegate_tests::operations::{drawn, run_on};

use super::store::{by_hand, open, settled, shared};

/// Some 80 operations for each seed, on limits of every algorithm.
fn answers_as_a_map(seeds: std::ops::Range<u64>, at: impl Fn(RedisBuilder) -> RedisBuilder) {
    for seed in seeds {
        let clock = ManualClock::new();
        let store = open(at(by_hand(&clock)));
        run_on(&drawn(seed, 600), &clock, &store, settled);
    }
}

#[test]
fn a_server_answers_as_a_map_of_all_states() {
    answers_as_a_map(0..150, |builder| builder.url(&shared().url()));
}

#[test]
fn a_server_with_remembered_refusals_answers_as_a_map_of_all_states() {
    let longest = std::time::Duration::from_secs(60);
    answers_as_a_map(400..500, |builder| {
        builder.url(&shared().url()).remember_refusals(1_000, longest)
    });
}
