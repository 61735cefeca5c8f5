//! The bare step of each limit: no key, no table, no clock.

use std::hint::black_box;
use std::time::Duration;

use sluicegate_axum::Limit;
use sluicegate_benches::{Contender, Table, Turns};

const MINUTE: Duration = Duration::from_secs(60);

/// Some time in 2026, in microseconds.
const NOW: u64 = 1_790_000_000_000_000;

/// 100 a minute each, except for the last limit, which does not depend on time.
const LIMITS: [(&str, Limit); 10] = [
    ("token bucket", Limit::per_minute(100)),
    ("token bucket, stepped", Limit::per_minute(100).refill(10, Duration::from_secs(6))),
    ("leaky bucket", Limit::leaky_bucket(100, MINUTE).queue(10)),
    ("fixed window", Limit::fixed_window(100, MINUTE)),
    ("sliding window", Limit::sliding_window(100, MINUTE)),
    ("sliding log, 50 to 100 entries", Limit::sliding_log(100, MINUTE)),
    ("sliding log, sub-windows of 1 s", Limit::sliding_log(100, MINUTE).resolution(SECOND)),
    ("token bucket, gap of 1 ms", Limit::per_minute(100).min_gap(Duration::from_millis(1))),
    ("token bucket, ban of 1 s", Limit::per_minute(100).ban(SECOND)),
    ("concurrency", Limit::concurrent(1 << 50)),
];

const SECOND: Duration = Duration::from_secs(1);

fn main() {
    let turns = Turns::from_args();
    Table::print(&turns, "The step, ns", ["limit", "admitted", "refused"], |table| {
        for (name, limit) in &LIMITS {
            table.row(name, &turns.take([admitted(limit), refused(limit)]));
        }
    });
}

/// One request every 1.2 s, half of what the limit allows.
fn admitted(limit: &Limit) -> Contender<'_> {
    let mut state = limit.fresh();
    let mut now = NOW;
    Contender::new(move || {
        now += 1_200_000;
        let decision = limit.take(&mut state, black_box(now), 1);
        assert!(black_box(&decision).is_admitted());
    })
}

/// No time passes, and everything is spent.
fn refused(limit: &Limit) -> Contender<'_> {
    let mut state = limit.fresh();
    // One after the other if a log records each request, otherwise all at once.
    let (each, rest) = (limit.capacity() / 100, limit.capacity() % 100);
    for _ in 0..100 {
        let _ = limit.take(&mut state, NOW, each);
    }
    let _ = limit.take(&mut state, NOW, rest);
    Contender::new(move || {
        let decision = limit.take(&mut state, black_box(NOW), 1);
        assert!(!black_box(&decision).is_admitted());
    })
}
