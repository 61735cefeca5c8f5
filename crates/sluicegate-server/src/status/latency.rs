//! How long decisions take, measured for one in 64.
//!
//! A request that is not measured costs one addition to a number of its thread. Times are counted in log-linear
//! buckets with four parts for each power of two, as HdrHistogram has them, so a quantile is at most a quarter too
//! large.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Each thread measures one decision of this many.
const ONE_IN: u32 = 64;

/// Parts of each power of two.
const PARTS: usize = 4;

/// Up to 67 seconds, in microseconds. What takes longer is counted in the last bucket.
pub(super) const BUCKETS: usize = 26 * PARTS;

/// How long decisions took in the last minute, in microseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[non_exhaustive]
pub struct LatencyStatus {
    /// How many decisions were measured: one in 64.
    pub measured: u64,
    /// Half of the decisions took no longer. Absent if nothing was measured.
    pub p50_us: Option<u64>,
    /// Nine in ten took no longer.
    pub p90_us: Option<u64>,
    /// 99 in 100 took no longer.
    pub p99_us: Option<u64>,
    /// The longest one that was measured.
    pub max_us: Option<u64>,
}

/// Measures decisions, and counts the requests that they are about: each once, however many limits it was charged to.
/// Clones share what they measure.
#[derive(Clone)]
pub(crate) struct Latency(Arc<Counts>);

struct Counts {
    buckets: [AtomicU64; BUCKETS],
    requests: [AtomicU64; REQUESTS.len()],
}

/// What became of requests, in the order of [`RequestOutcome`].
pub(super) const REQUESTS: [&str; 3] = ["served", "refused", "failed"];

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestOutcome {
    /// It goes ahead.
    Served,
    /// It does not, because of a limit or because it lacks something.
    Refused,
    /// It could not be decided about.
    Failed,
}

impl RequestOutcome {
    /// What became of a request whose decision has this status of HTTP.
    pub(crate) const fn of(status: u16) -> Self {
        match status {
            200..300 => Self::Served,
            500.. => Self::Failed,
            _ => Self::Refused,
        }
    }
}

/// A decision that has begun, if it is measured.
#[derive(Debug, Clone, Copy, Default)]
#[must_use = "`Latency::end` counts it"]
pub(crate) struct Timing(Option<Instant>);

impl Latency {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Counts {
            buckets: [const { AtomicU64::new(0) }; BUCKETS],
            requests: [const { AtomicU64::new(0) }; REQUESTS.len()],
        }))
    }

    /// A decision begins.
    #[inline]
    pub(crate) fn begin(&self) -> Timing {
        thread_local! {
            static COUNT: Cell<u32> = const { Cell::new(0) };
        }
        let count = COUNT.get();
        COUNT.set(count.wrapping_add(1));
        Timing(count.is_multiple_of(ONE_IN).then(Instant::now))
    }

    /// The decision has been made.
    #[inline]
    pub(crate) fn end(&self, begun: Timing, ended: RequestOutcome) {
        self.0.requests[ended as usize].fetch_add(1, Ordering::Relaxed);
        if let Some(begun) = begun.0 {
            self.record(begun.elapsed());
        }
    }

    fn record(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.0.buckets[bucket(micros)].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn counts(&self) -> [u64; BUCKETS] {
        std::array::from_fn(|at| self.0.buckets[at].load(Ordering::Relaxed))
    }

    /// How many requests were served, refused and not decided about.
    pub(super) fn requests(&self) -> [u64; REQUESTS.len()] {
        std::array::from_fn(|at| self.0.requests[at].load(Ordering::Relaxed))
    }
}

impl LatencyStatus {
    /// What was measured between two readings of the counts.
    pub(super) fn between(before: &[u64; BUCKETS], after: &[u64; BUCKETS]) -> Self {
        let counts: Vec<u64> =
            after.iter().zip(before).map(|(after, before)| after.saturating_sub(*before)).collect();
        let measured = counts.iter().sum();
        // In thousandths, so that there is no rounding.
        let quantile = |thousandths: u64| {
            let wanted = (u128::from(measured) * u128::from(thousandths)).div_ceil(1000).max(1);
            let mut seen = 0_u128;
            let at = counts.iter().position(|count| {
                seen += u128::from(*count);
                seen >= wanted
            })?;
            Some(end(at))
        };
        Self {
            measured,
            p50_us: quantile(500),
            p90_us: quantile(900),
            p99_us: quantile(990),
            max_us: quantile(1000),
        }
    }
}

/// The bucket of a time in microseconds.
fn bucket(micros: u64) -> usize {
    if micros < PARTS as u64 {
        return usize::try_from(micros).unwrap_or_default();
    }
    let power = micros.ilog2();
    let part = usize::try_from(micros >> (power - 2)).unwrap_or_default() % PARTS;
    let at = (power as usize - 1) * PARTS + part;
    at.min(BUCKETS - 1)
}

/// The longest time of a bucket, in microseconds.
fn end(at: usize) -> u64 {
    if at < PARTS {
        return at as u64;
    }
    let (power, part) = (at / PARTS + 1, at % PARTS);
    ((PARTS + part + 1) as u64) * (1 << (power - 2)) - 1
}

impl fmt::Debug for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Latency")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_in_a_bucket_that_ends_at_most_a_quarter_later() {
        for micros in (0..5_000).chain([9_999, 123_456, 5_000_000, 60_000_000]) {
            let end = end(bucket(micros));
            assert!(end >= micros && end <= micros + micros / 4, "{micros} ends at {end}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_of_what_was_measured_between_two_readings() {
        let latency = Latency::new();
        latency.record(Duration::from_secs(1));
        let before = latency.counts();
        (0..90).for_each(|_| latency.record(Duration::from_micros(3)));
        (0..9).for_each(|_| latency.record(Duration::from_micros(100)));
        latency.record(Duration::from_micros(1_000));
        let status = LatencyStatus::between(&before, &latency.counts());
        assert_eq!(status.measured, 100);
        assert_eq!((status.p50_us, status.p90_us), (Some(3), Some(3)));
        assert_eq!((status.p99_us, status.max_us), (Some(111), Some(1_023)));
        let nothing = LatencyStatus::between(&before, &before);
        assert_eq!(nothing, LatencyStatus::default());
    }

    #[test]
    fn one_decision_in_64_is_measured() {
        std::thread::spawn(|| {
            let latency = Latency::new();
            (0..640).for_each(|_| latency.end(latency.begin(), RequestOutcome::Served));
            assert_eq!(latency.counts().iter().sum::<u64>(), 10);
        })
        .join()
        .expect("no panic");
    }
}
