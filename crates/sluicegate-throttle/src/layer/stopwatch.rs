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

    /// Runs `poll`, and adds the time that it takes to `nanos`.
    pub(super) fn add<T>(&self, nanos: &mut u64, poll: impl FnOnce() -> T) -> T {
        let Some(counter) = self.0 else {
            let before = self.1.now();
            let polled = poll();
            *nanos += self.1.now().saturating_sub(before) * 1_000;
            return polled;
        };
        let before = counter.raw();
        let polled = poll();
        *nanos += counter.delta_as_nanos(before, counter.raw());
        polled
    }
}
