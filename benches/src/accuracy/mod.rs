//! How often a limiter decides wrongly: its decisions compared with an exact log, on traffic with a manual clock.
//!
//! All of them are judged as sliding logs: no more than `count` in *any* interval of one period, and no refusal of a
//! request that fits. Each limiter is judged against its own admissions, so one wrong decision does not make the next
//! one wrong.
//!
//! No other algorithm promises exactly that. A token bucket promises `burst + rate × t` in every interval `t`, and a
//! fixed window `count` in each of its windows. So each limiter is also held to its own [`Promise`], which it has no
//! excuse to break.

mod contestant;
mod judge;
mod model;
mod promise;
mod rivals;
mod sluicegate;
mod traffic;

#[cfg(test)]
mod tests;

pub use self::contestant::Contestant;
pub use self::judge::{Findings, judge};
pub use self::model::Weighing;
pub use self::promise::Promise;
pub use self::rivals::{buckets as rival_buckets, rivals};
pub use self::sluicegate::{bucket as our_bucket, ours};
pub use self::traffic::{Request, Traffic};

use std::time::Duration;

/// The limit that all contestants are asked to keep: `count` in every `period`.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    /// How many.
    pub count: u64,
    /// In how many microseconds.
    pub period: u64,
}

impl Rate {
    /// `count` in every second.
    pub const fn per_second(count: u64) -> Self {
        Self { count, period: 1_000_000 }
    }

    /// `count` in every minute.
    pub const fn per_minute(count: u64) -> Self {
        Self { count, period: 60_000_000 }
    }

    /// `count` in every hour.
    pub const fn per_hour(count: u64) -> Self {
        Self { count, period: 3_600_000_000 }
    }

    pub(crate) fn every(self) -> Duration {
        Duration::from_micros(self.period)
    }
}
