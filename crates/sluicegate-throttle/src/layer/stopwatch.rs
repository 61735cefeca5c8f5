use std::sync::OnceLock;

use sluicegate_core::clock::Clock;

/// Measures how long polls take, in nanoseconds: by the processor's counter, about 10 ns a reading, or by a clock that a
/// test moves.
#[derive(Debug, Clone)]
pub(super) struct Stopwatch(Option<&'static quanta::Clock>, Clock);

impl Stopwatch {
    pub(super) fn new(clock: &Clock) -> Self {
        static COUNTER: OnceLock<quanta::Clock> = OnceLock::new();
        let counter = clock.as_manual().is_none().then(|| COUNTER.get_or_init(quanta::Clock::new));
        Self(counter, clock.clone())
    }

    /// What it shows, to be given to [`since`](Self::since).
    #[inline]
    pub(super) fn read(&self) -> u64 {
        self.0.map_or_else(|| self.1.now(), quanta::Clock::raw)
    }

    /// Nanoseconds since it showed `before`.
    #[inline]
    pub(super) fn since(&self, before: u64) -> u64 {
        match self.0 {
            Some(counter) => counter.delta_as_nanos(before, counter.raw()),
            None => self.1.now().saturating_sub(before) * 1_000,
        }
    }
}
