//! How often a limiter decides wrongly: its decisions beside an exact log, on traffic whose clock is
//! turned by hand.
//!
//! The question that is put to all of them is that of a sliding log: no more than `count` in *any*
//! interval of one period, and nobody refused who would keep to that. Each limiter is judged against
//! its own admissions, so one wrong decision does not make the next one wrong.
//!
//! No other algorithm answers exactly that, nor means to. A token bucket promises `burst + rate × t` in
//! every interval `t`, a fixed window `count` in each of its windows. So each is also held to its own
//! [`Promise`], which a limiter has no excuse to break.

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

/// What all contestants are asked to keep to: `count` in every `period`.
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
