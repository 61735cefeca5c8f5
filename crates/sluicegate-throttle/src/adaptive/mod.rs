//! Limits of work in flight that follow what the server can do.
//!
//! [`Bandwidth`] is ours; [`Aimd`], [`Vegas`] and [`Gradient2`] are those of Netflix' concurrency-limits, with its
//! constants. The limit of Vegas and Gradient2 is known to drift upwards
//! under an overload that lasts, because the time that they take for unloaded follows the load.
//!
//! ```
//! use std::time::Duration;
//! use sluicegate_throttle::adaptive::Bandwidth;
//! use sluicegate_throttle::scheduler::Scheduler;
//!
//! let scheduler = Scheduler::builder().adaptive(Bandwidth::default()).queue(1_000).build()?;
//! # let _ = scheduler;
//! # Ok::<(), sluicegate_throttle::ConfigError>(())
//! ```

mod aimd;
mod bandwidth;
mod gradient2;
#[cfg(test)]
mod tests;
mod vegas;

use std::fmt;

pub use self::aimd::Aimd;
pub use self::bandwidth::Bandwidth;
pub use self::gradient2::Gradient2;
pub use self::vegas::Vegas;

/// Learns from requests that have ended how many may run at once.
pub trait Algorithm: fmt::Debug + Send {
    /// How many requests may run at once: at least 1.
    fn limit(&self) -> usize;

    /// A request has ended. Requests that failed for other reasons than overload, or were cancelled, are not shown.
    fn update(&mut self, sample: Sample);

    /// The limit that it has learnt: that of the moment, but where it moves up and down to measure.
    fn learnt(&self) -> usize {
        self.limit()
    }

    /// The time that it takes for that of an unloaded server, in microseconds; `None` where it is unknown, or where
    /// the algorithm does not go by times.
    fn baseline(&self) -> Option<u64> {
        None
    }

    /// Goes on from a limit that another algorithm, or the same with other settings, has learnt, as far as its own
    /// bounds allow.
    fn start_at(&mut self, limit: usize) {
        let _ = limit;
    }
}

/// A request that has ended.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// When it ended, in microseconds.
    pub now: u64,
    /// Microseconds from leaving the queue to its end.
    pub time: u64,
    /// How many requests ran when it was started, itself included.
    pub in_flight: usize,
    /// Whether what served it was overloaded.
    pub is_overload: bool,
}
