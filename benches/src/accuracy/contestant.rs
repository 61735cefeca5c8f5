use std::fmt;

use super::model::{Log, Model};
use super::{Promise, Rate};

/// A limiter with one key and a clock that only moves when it is told.
pub struct Contestant {
    /// The library and the algorithm.
    pub name: &'static str,
    /// The promise of its algorithm.
    pub promise: Promise,
    pub(super) take: Box<dyn FnMut(u64, u64) -> Option<u64>>,
}

impl Contestant {
    /// The log that all are compared with.
    pub fn exact(rate: Rate) -> Self {
        let mut log = Model::Log(Log::new(rate));
        Self::at_once("an exact log", Promise::log(rate), move |at, cost| {
            let fits = log.fits(at, cost);
            if fits {
                log.spend(at, cost);
            }
            fits
        })
    }

    /// Asks for `cost` at `at`, in microseconds since the limiter was made, which never goes back. Returns when the
    /// request goes ahead, or `None` if it is refused.
    pub fn take(&mut self, at: u64, cost: u64) -> Option<u64> {
        (self.take)(at, cost)
    }

    /// A limiter whose requests go ahead at once or not at all.
    pub(super) fn at_once(
        name: &'static str,
        promise: Promise,
        mut admits: impl FnMut(u64, u64) -> bool + 'static,
    ) -> Self {
        Self { name, promise, take: Box::new(move |at, cost| admits(at, cost).then_some(at)) }
    }
}

impl fmt::Debug for Contestant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contestant")
            .field("name", &self.name)
            .field("promise", &self.promise)
            .finish_non_exhaustive()
    }
}

impl Rate {
    /// The amount and the interval, in microseconds, of a refill in steps at this rate. Ten steps if they are even,
    /// otherwise fewer.
    pub(super) fn steps(self) -> (u64, u64) {
        let even =
            |steps: &u64| self.count.is_multiple_of(*steps) && self.period.is_multiple_of(*steps);
        let steps = (1..=10).rev().find(even).unwrap_or(1);
        (self.count / steps, self.period / steps)
    }
}
