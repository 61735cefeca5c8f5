//! The machine's clock, read cheaply: the processor's counter fills the gaps between readings of the
//! system's monotonic clock.
//!
//! Measured on an AMD EPYC under KVM: `Instant` takes 22 ns, the counter 9, and the system's coarse clock 5. But the
//! coarse clock stands still for up to 4 ms, so a client that waits exactly `retry_after` would be refused.
//!
//! The counter is followed for only 10 ms after each reading of `Instant`. So a counter that runs a little fast or
//! slow, or that leaps, is off by microseconds and never for long. The clock is read before a row, so another thread
//! may have written a later time into the row, or this thread before the last correction. The decision then uses the
//! time in the row.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime};

#[cfg(miri)]
use self::interpreted as quanta;

/// The number of microseconds for which the counter is followed before the system's clock is read again. The counter
/// is assumed to be fast by one part in 4,096, so that it ends up 2.5 µs behind rather than ahead.
const FOLLOWED: u64 = 10_000;

/// How often both clocks are read to find a pair of readings that is close together.
const READINGS: usize = 4;

/// There is one for the whole process. It can show some microseconds less than it showed before, on another thread or
/// after a correction by the system's clock. A thread that writes a time down handles that.
#[derive(Debug)]
pub(super) struct Machine {
    /// When it started, in microseconds since the Unix epoch.
    epoch: u64,
    started: Instant,
    counter: quanta::Clock,
    /// The counter when it started.
    first: u64,
    /// Microseconds in a count, in units of 2^-64.
    scale: u64,
    /// What the system's clock is ahead of the counter; wraps around where it is behind.
    ahead: AtomicU64,
    /// What the counter showed when the system's clock was last read.
    read: AtomicU64,
    /// The latest that was shown in order.
    latest: AtomicU64,
}

impl Machine {
    /// Starts the clock, if it has not started: measuring the speed of the counter takes up to 200 ms.
    pub(super) fn start() -> &'static Self {
        static MACHINE: OnceLock<Machine> = OnceLock::new();
        MACHINE.get_or_init(Self::new)
    }

    fn new() -> Self {
        let counter = quanta::Clock::new();
        // A count of 2^40 is minutes; as nanoseconds that is precise to more than the digits needed.
        let nanos = u128::from(counter.delta_as_nanos(0, 1 << 40));
        let scale = (nanos << (64 - 40)) / 1_000 * 4_095 / 4_096;
        Self {
            epoch: wall(),
            started: Instant::now(),
            first: counter.raw(),
            scale: u64::try_from(scale).unwrap_or(u64::MAX),
            counter,
            ahead: AtomicU64::new(0),
            read: AtomicU64::new(0),
            latest: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(super) fn now(&self) -> u64 {
        let counted = self.counted();
        if counted.wrapping_sub(self.read.load(Ordering::Acquire)) > FOLLOWED {
            return self.read_system();
        }
        self.epoch + counted.wrapping_add(self.ahead.load(Ordering::Relaxed))
    }

    #[inline]
    fn counted(&self) -> u64 {
        let counts = self.counter.raw().wrapping_sub(self.first);
        ((u128::from(counts) * u128::from(self.scale)) >> 64) as u64
    }

    /// Like [`now`](Self::now), but never earlier than a time that another thread was shown in order.
    pub(super) fn now_in_order(&self) -> u64 {
        let now = self.now();
        self.latest.fetch_max(now, Ordering::AcqRel).max(now)
    }

    #[cold]
    fn read_system(&self) -> u64 {
        // A thread can be held up between one reading and the next: the closest together count.
        let readings = (0..READINGS).map(|_| {
            let (passed, counted) = (self.passed(), self.counted());
            (self.passed() - passed, passed, counted)
        });
        let (_, passed, counted) = readings.min().unwrap_or_default();
        self.follow_from(passed, counted);
        self.epoch + passed
    }

    fn follow_from(&self, passed: u64, counted: u64) {
        self.ahead.store(passed.wrapping_sub(counted), Ordering::Relaxed);
        // A thread that sees that it has been read also sees how far it is ahead.
        self.read.store(counted, Ordering::Release);
    }

    /// Microseconds since it started, by the system's clock.
    fn passed(&self) -> u64 {
        self.started.elapsed().as_micros() as u64
    }
}

/// The system's time, in microseconds since the Unix epoch.
pub(super) fn wall() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_micros() as u64
}

/// Miri knows no instruction that reads the processor's counter.
#[cfg(miri)]
mod interpreted {
    use std::time::Instant;

    #[derive(Debug)]
    pub(super) struct Clock(Instant);

    impl Clock {
        pub(super) fn new() -> Self {
            Self(Instant::now())
        }

        pub(super) fn raw(&self) -> u64 {
            self.0.elapsed().as_nanos() as u64
        }

        pub(super) fn delta_as_nanos(&self, start: u64, end: u64) -> u64 {
            end - start
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often it is read; Miri takes a thousand times as long.
    const TIMES: u32 = if cfg!(miri) { 30 } else { 100_000 };

    #[test]
    fn it_shows_what_the_system_shows() {
        let machine = Machine::start();
        for _ in 0..2 * TIMES {
            let before = machine.started.elapsed().as_micros() as u64;
            let now = machine.now() - machine.epoch;
            let after = machine.started.elapsed().as_micros() as u64;
            // Microseconds, but for a thread that was held up between its readings each time.
            assert!(now <= after + 1_000, "ahead by {} µs", now - after);
            assert!(now + 1_000 >= before, "behind by {} µs", before - now);
        }
    }

    #[test]
    fn in_order_it_never_steps_back_at_all() {
        let latest = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..TIMES {
                        let before = latest.load(Ordering::SeqCst);
                        let now = Machine::start().now_in_order();
                        assert!(now >= before, "{now} came after {before}");
                        latest.fetch_max(now, Ordering::SeqCst);
                    }
                });
            }
        });
    }

    #[test]
    fn a_counter_that_has_leapt_is_followed_from_where_it_is() {
        let machine = Machine::new();
        let (passed, counted) = (machine.passed(), machine.counted());
        machine.follow_from(passed, counted.wrapping_sub(3_600_000_000));
        let now = machine.now() - machine.epoch;
        assert!(now >= passed && now < machine.passed() + 1_000, "{now} for {passed}");
    }
}
