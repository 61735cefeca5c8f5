//! The server's own clock, as it runs.

use std::time::{Duration, Instant};

use sluicegate_core::Limit;
use sluicegate_core::adapter::Charge;
use sluicegate_tests::key;

use super::load::attempts;
use super::store::{on, shared};

const PERIOD: Duration = Duration::from_millis(10);

/// Under full load, and although rows expire in whole milliseconds. A slow server admits less, so there is no exact
/// lower bound.
#[test]
fn never_more_than_the_rate_by_the_servers_clock() {
    let store = on(shared());
    // Each limit with what it may admit at most beside its rate.
    let limits = [
        (Limit::per(5, PERIOD), 5),
        (Limit::per(5, PERIOD).refill(5, PERIOD), 5),
        (Limit::per(5, PERIOD).burst(1), 1),
        // Two windows around a border.
        (Limit::fixed_window(5, PERIOD), 10),
        (Limit::fixed_window(5, PERIOD).from_first(), 10),
        (Limit::sliding_log(5, PERIOD), 5),
        // Its overlap is estimated, not known.
        (Limit::sliding_window(5, PERIOD), 10),
        (Limit::per_second(1_000_000).min_gap(PERIOD / 5), 1),
    ];
    for (limit, burst) in limits {
        let began = Instant::now();
        let tally = attempts(&store, &Charge::of(limit, key("alice"), 1), 4, 200);
        let passed = began.elapsed();
        let most = burst + 5 * (passed.as_micros() / PERIOD.as_micros() + 1) as u64;
        assert_eq!(tally.failed, 0);
        assert!(tally.admitted <= most, "{limit}: {} in {passed:?}", tally.admitted);
        assert!(tally.admitted > burst, "{limit}: nothing comes back in {passed:?}");
    }
}
