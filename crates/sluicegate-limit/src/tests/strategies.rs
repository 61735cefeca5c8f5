//! Limits of every algorithm and option, with awkward numbers among them.

use std::time::Duration;

use proptest::prelude::*;

use super::super::Limit;
use super::{DAY, HOUR, MINUTE, SECOND, micros};

fn count() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 1_u64..12,
        2 => prop::sample::select(vec![13, 97, 101, 1_000_003, 999_999_937, 700_000_000]),
        1 => prop::sample::select(vec![100, 5_000, 1 << 20, u64::from(u32::MAX)]),
        1 => 1_u64..2_000_000,
    ]
}

pub(super) fn period() -> impl Strategy<Value = Duration> {
    prop_oneof![
        4 => prop::sample::select(vec![SECOND, MINUTE, HOUR, DAY, 7 * DAY, 100_000, 1_000]),
        1 => 1_u64..40,
        2 => 1_u64..3 * DAY,
        1 => (1_u64..100_000).prop_map(|seconds| seconds * SECOND),
    ]
    .prop_map(micros)
}

/// An algorithm without options. Numbers that do not stay exact are left out.
pub(super) fn shape() -> impl Strategy<Value = Limit> {
    shape_of(0..KINDS, count(), period())
}

/// Counts and periods small enough to reach every border in a short run.
pub(super) fn small_shape() -> impl Strategy<Value = Limit> {
    shape_of(0..KINDS, 1_u64..9, small_period())
}

/// Versions of one limit under one name, one after the other: with one algorithm, and carried over.
pub(super) fn changes() -> impl Strategy<Value = Vec<Limit>> {
    let carried = |limit: Limit| limit.named("a").carried();
    let of = move |spec| {
        let shape = shape_of(Just(spec), 1_u64..9, small_period());
        prop::collection::vec(with_options(shape).prop_map(carried), 2..5).prop_map(of_one_row)
    };
    // Windows from first use differ from the others only by a number.
    (0..KINDS).prop_flat_map(of)
}

/// The versions that share the row of the first; at least two.
fn of_one_row(mut limits: Vec<Limit>) -> Vec<Limit> {
    let first = limits[0];
    limits.retain(|limit| limit.id() == first.id());
    if limits.len() == 1 {
        limits.push(first);
    }
    limits
}

fn small_period() -> impl Strategy<Value = Duration> {
    let periods = vec![1, 2, 3, 7, 10, 60, 100, 1_000, SECOND, 86_400 * SECOND];
    prop::sample::select(periods).prop_map(micros)
}

/// The text form allows no log with more than 65,536 stamps, and options may add some.
const LONGEST_LOG: u64 = 20_000;

/// Algorithms that these tests distinguish.
const KINDS: i32 = 10;

fn shape_of(
    spec: impl Strategy<Value = i32>,
    count: impl Strategy<Value = u64>,
    period: impl Strategy<Value = Duration>,
) -> impl Strategy<Value = Limit> {
    (spec, count, period, 1_u64..30, 0_u64..8, 0_u64..8).prop_filter_map(
        "the numbers do not stay exact",
        |(spec, count, period, burst, queue, delay)| {
            let limit = match spec {
                0 | 1 => Limit::try_per(count, period),
                2 => Limit::try_per(count, period).and_then(|limit| limit.try_burst(burst)),
                3 => Limit::try_per(burst, period)
                    .and_then(|limit| limit.try_refill(count, period))
                    .and_then(|limit| limit.try_burst(burst)),
                4 => Limit::try_leaky_bucket(count, period)
                    .and_then(|limit| limit.try_queue(queue))
                    .and_then(|limit| limit.try_delay_after(delay.min(queue))),
                5 => Limit::try_fixed_window(count, period),
                6 => Limit::try_fixed_window(count, period).and_then(Limit::try_from_first),
                7 => Limit::try_sliding_log(count.min(LONGEST_LOG), period),
                8 => Limit::try_sliding_log(count, period)
                    .and_then(|limit| limit.try_resolution(divisor(period, burst))),
                _ => Limit::try_sliding_window(count, period),
            };
            limit.ok()
        },
    )
}

/// The largest divisor of `period` that is at most a `parts`-th of it; the period itself if there is none.
fn divisor(period: Duration, parts: u64) -> Duration {
    let period = period.as_micros() as u64;
    micros((parts..parts + 60).find(|parts| period % parts == 0).map_or(period, |by| period / by))
}

/// An algorithm with some options.
pub(super) fn limit() -> impl Strategy<Value = Limit> {
    with_options(shape())
}

pub(super) fn small_limit() -> impl Strategy<Value = Limit> {
    with_options(small_shape())
}

fn with_options(shape: impl Strategy<Value = Limit>) -> impl Strategy<Value = Limit> {
    let part = || prop::option::weighted(0.2, 1_u64..300);
    let after = prop::option::of((1_u64..4, 1_u64..600));
    (shape, part(), (part(), after), part(), prop::bool::weighted(0.3)).prop_map(
        |(limit, gap, (ban, after), soft, count_refused)| {
            // Hundredths of the period in which one token is added.
            let one = limit.period / limit.count;
            let share = |hundredths: u64| micros((one * hundredths / 100).max(1));
            let mut limit = limit;
            if let Some(gap) = gap {
                limit = limit.min_gap(share(gap));
            }
            if let Some(ban) = ban {
                limit = limit.ban(share(ban));
                if let Some((refusals, within)) = after {
                    limit = limit.ban_after(refusals, share(within));
                }
            }
            if let Some(soft) = soft {
                limit = limit.soft(soft % limit.capacity());
            }
            if count_refused {
                limit = limit.try_count_refused().unwrap_or(limit);
            }
            limit
        },
    )
}

/// How far the clock is moved before the next request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Turn {
    Micros(u64),
    /// Thousandths of a period.
    Period(u64),
    /// Thousandths of the time in which one token is added.
    Token(u64),
    /// The wait of the last refusal, one microsecond less, and more.
    Retry,
    AlmostRetry,
}

impl Turn {
    pub(super) fn micros(self, limit: &Limit, retry: Option<Duration>) -> u64 {
        let retry = || retry.map_or(0, |retry| retry.as_micros() as u64);
        match self {
            Self::Micros(micros) => micros,
            Self::Period(thousandths) => limit.period * thousandths / 1_000,
            Self::Token(thousandths) => limit.period * thousandths / limit.count / 1_000,
            Self::Retry => retry(),
            Self::AlmostRetry => retry().saturating_sub(1),
        }
    }
}

pub(super) fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![
        3 => (0_u64..3).prop_map(Turn::Micros),
        2 => (0_u64..2_500).prop_map(Turn::Token),
        1 => (0_u64..2_500).prop_map(Turn::Period),
        1 => (0_u64..5).prop_map(|periods| Turn::Period(periods * 500)),
        2 => Just(Turn::Retry),
        1 => Just(Turn::AlmostRetry),
    ]
}
