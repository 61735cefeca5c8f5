use std::sync::OnceLock;

use sluicegate_core::clock::Clock;

/// Measures how long polls take, in nanoseconds. It reads the processor's counter, which takes about 10 ns, or a clock
/// that a test moves.
#[derive(Debug, Clone)]
pub(super) struct Stopwatch(Option<&'static quanta::Clock>, Clock);

impl Stopwatch {
    pub(super) fn new(clock: &Clock) -> Self {
        static COUNTER: OnceLock<quanta::Clock> = OnceLock::new();
        let counter = clock.as_manual().is_none().then(|| COUNTER.get_or_init(quanta::Clock::new));
        Self(counter, clock.clone())
    }

    /// The present reading, for [`since`](Self::since).
    #[inline]
    pub(super) fn read(&self) -> u64 {
        self.0.map_or_else(|| self.1.now(), quanta::Clock::raw)
    }

    /// Nanoseconds since the reading `before`.
    #[inline]
    pub(super) fn since(&self, before: u64) -> u64 {
        match self.0 {
            Some(counter) => counter.delta_as_nanos(before, counter.raw()),
            None => self.1.now().saturating_sub(before) * 1_000,
        }
    }
}
