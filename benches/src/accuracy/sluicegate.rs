use std::time::Duration;

use sluicegate_axum::Limit;

use super::{Contestant, Promise, Rate, Weighing};

/// 2026-09-21 01:33:00 UTC: a border of windows.
const START: u64 = 1_789_954_380_000_000;

/// Every algorithm of sluicegate that knows time, asked to keep to `rate`, in requests that cost `cost`
/// each.
pub fn ours(rate: Rate, cost: u64) -> Vec<Contestant> {
    let Rate { count, .. } = rate;
    let period = rate.every();
    let (amount, every) = rate.steps();
    let small = (count / 10).max(cost);
    let resolution = rate.period / 100;

    vec![
        bucket(rate, count),
        at_once(
            "sluicegate, token bucket, burst of a tenth",
            Promise::bucket(rate, small),
            Limit::per(count, period).burst(small),
        ),
        at_once(
            "sluicegate, token bucket in steps",
            Promise::stepped(rate, count, amount),
            Limit::per(count, period).refill(amount, Duration::from_micros(every)),
        ),
        Contestant {
            name: "sluicegate, leaky bucket",
            promise: Promise::leaky(rate, count - 1, cost),
            take: Box::new(steps(Limit::leaky_bucket(count, period).queue(count - 1))),
        },
        at_once(
            "sluicegate, fixed window",
            Promise::windows(rate, false),
            Limit::fixed_window(count, period),
        ),
        at_once(
            "sluicegate, fixed window from first use",
            Promise::windows(rate, true),
            Limit::fixed_window(count, period).from_first(),
        ),
        at_once(
            "sluicegate, sliding window",
            Promise::counter(rate, Weighing { rounded_down: true, from_first: false }),
            Limit::sliding_window(count, period),
        ),
        at_once("sluicegate, sliding log", Promise::log(rate), Limit::sliding_log(count, period)),
        at_once(
            "sluicegate, sliding log in sub-windows",
            Promise::sub_windows(rate, resolution),
            Limit::sliding_log(count, period).resolution(Duration::from_micros(resolution)),
        ),
    ]
}

/// The token bucket that holds `burst`.
pub fn bucket(rate: Rate, burst: u64) -> Contestant {
    let limit = Limit::per(rate.count, rate.every()).burst(burst);
    at_once("sluicegate, token bucket", Promise::bucket(rate, burst), limit)
}

fn at_once(name: &'static str, promise: Promise, limit: Limit) -> Contestant {
    let mut step = steps(limit);
    Contestant::at_once(name, promise, move |at, cost| step(at, cost) == Some(at))
}

/// The bare step of `limit`, on the state of one key.
fn steps(limit: Limit) -> impl FnMut(u64, u64) -> Option<u64> {
    let mut state = limit.fresh();
    move |at, cost| {
        let decision = limit.take(&mut state, START + at, cost);
        let wait = decision.wait().as_micros() as u64;
        decision.is_admitted().then_some(at + wait)
    }
}
