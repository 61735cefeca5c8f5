//! Limits of work in flight that follow what the server can do.
//!
//! [`Bandwidth`] was made for this crate. The benchmark `overload` compares it with AIMD, Vegas and Gradient2 of Netflix'
//! concurrency-limits. For another algorithm, implement [`Algorithm`].
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

mod bandwidth;
#[cfg(test)]
mod tests;

use std::fmt;

pub use self::bandwidth::Bandwidth;

/// Learns from ended requests how many may run at once.
pub trait Algorithm: fmt::Debug + Send {
    /// How many requests may run at once: at least 1.
    fn limit(&self) -> usize;

    /// Called when a request has ended that was served, or that met an overload.
    fn update(&mut self, sample: Sample);

    /// Called for all other requests: their clients have left, or they failed for reasons that have nothing to do with
    /// load. Their time says nothing about the server. If nearly all clients leave unanswered, it does.
    fn update_unmeasured(&mut self, sample: Sample) {
        let _ = sample;
    }

    /// The limit that it has learnt. An algorithm that moves its limit up and down to measure returns the limit without
    /// that movement.
    fn learnt(&self) -> usize {
        self.limit()
    }

    /// Its estimate of a request's time in an unloaded server, in microseconds. `None` while it is unknown, and for
    /// algorithms that do not measure time.
    fn baseline(&self) -> Option<u64> {
        None
    }

    /// Continues from a limit that was learnt by another algorithm, or by this one with other settings. The limit is
    /// kept within the bounds of this algorithm.
    fn start_at(&mut self, limit: usize) {
        let _ = limit;
    }
}

/// A request that has ended.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// When it ended, in microseconds.
    pub now: u64,
    /// Microseconds from the moment it left the queue to its end.
    pub time: u64,
    /// Microseconds from that moment to the beginning of its response. `None` if its client has left before.
    pub answered: Option<u64>,
    /// How many requests ran when it was started, itself included.
    pub in_flight: usize,
    /// Whether the server was overloaded.
    pub is_overload: bool,
}
