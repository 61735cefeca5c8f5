//! The step never allocates on a state that was made by `Limit::fresh`.

use std::time::Duration;

use allocation_counter::measure;
use sluicegate_core::Limit;

const SECOND: u64 = 1_000_000;
const MINUTE: Duration = Duration::from_secs(60);
const NOW: u64 = 1_767_225_600 * SECOND;

fn limits() -> Vec<Limit> {
    let shapes = [
        Limit::per_minute(5),
        Limit::per_minute(5).refill(2, Duration::from_secs(20)),
        Limit::leaky_bucket(5, MINUTE).queue(3),
        Limit::fixed_window(5, MINUTE),
        Limit::fixed_window(5, MINUTE).from_first(),
        Limit::sliding_log(5, MINUTE),
        Limit::sliding_log(500, MINUTE),
        Limit::sliding_log(500, MINUTE).resolution(Duration::from_secs(5)),
        Limit::sliding_window(5, MINUTE),
    ];
    let with_options = |limit: Limit| {
        let counted = limit.try_count_refused().unwrap_or(limit);
        let gap = Duration::from_millis(100);
        [limit, limit.min_gap(gap), limit.ban(MINUTE), counted, counted.min_gap(gap).ban(gap)]
    };
    shapes.into_iter().flat_map(with_options).chain([Limit::concurrent(3)]).collect()
}

#[test]
fn a_step_never_allocates() {
    for limit in limits() {
        let mut state = limit.fresh();
        let allocated = measure(|| {
            let mut now = NOW;
            for turn in 0..5_000_u64 {
                // Bursts and pauses, and sometimes a clock that steps back.
                now += [0, 1, 3, 70_000, 130_000, 2 * SECOND][(turn * turn % 6) as usize];
                now -= if turn % 97 == 0 { 90 * SECOND } else { 0 };
                let decision = limit.take(&mut state, now, [1, 1, 2, 0][(turn % 4) as usize]);
                if turn % 7 == 0 && decision.is_admitted() {
                    let receipt = decision.statuses().next().map(|status| status.receipt);
                    limit.settle(&mut state, now, &receipt.unwrap_or_default(), 1, 0);
                }
            }
        });
        assert_eq!(allocated.count_total, 0, "{limit}");
    }
}

/// Checks that an allocation would be noticed.
#[test]
fn what_allocates_is_counted() {
    assert_eq!(measure(|| drop(Limit::sliding_log(5, MINUTE).fresh())).count_total, 2);
}
