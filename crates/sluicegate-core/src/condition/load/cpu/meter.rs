use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Microseconds in a tick. An interval of 1,000 ticks is measured to a thousandth, and a count of 32
/// bits goes round in five days: after so long a silence, the first share may be any.
const TICK: u64 = 100;

/// Ticks in the shortest interval that is measured.
const INTERVAL: u32 = 1_000;

/// Ticks that a clock may be behind what it showed another thread.
const BEHIND: u32 = 1_000;

/// How much of all processor time was used in the last interval, by sums that go up.
#[derive(Debug)]
pub(super) struct Meter {
    /// When it was measured and how much had been used by then, in ticks, the latter for each
    /// processor: in one word, so that nobody takes the one with another's other.
    measured: AtomicU64,
    share: AtomicU32,
    processors: u128,
}

impl Meter {
    /// Starts at `now`, in microseconds, when `used` has been used already.
    pub(super) fn new(now: u64, used: Duration, processors: usize) -> Self {
        let meter = Self {
            measured: AtomicU64::new(0),
            share: AtomicU32::new(0),
            processors: processors.max(1) as u128,
        };
        let first = word(ticks(now), meter.ticks_used(used));
        meter.measured.store(first, Ordering::Relaxed);
        meter
    }

    /// The share at `now`: what was measured last, or, if that is too old, what this one measures.
    #[inline]
    pub(super) fn share(&self, now: u64, used: impl FnOnce() -> Duration) -> Share {
        let measured = self.measured.load(Ordering::Relaxed);
        let passed = ticks(now).wrapping_sub((measured >> 32) as u32);
        if (INTERVAL..=u32::MAX - BEHIND).contains(&passed) {
            return self.measure(measured, ticks(now), passed, used());
        }
        Share(self.share.load(Ordering::Relaxed))
    }

    #[cold]
    fn measure(&self, before: u64, now: u32, passed: u32, used: Duration) -> Share {
        let used = self.ticks_used(used);
        let share = Share::of(used.wrapping_sub(before as u32), passed);
        let after = word(now, used);
        let written =
            self.measured.compare_exchange(before, after, Ordering::Relaxed, Ordering::Relaxed);
        // Where several measure at once, the first has measured for all.
        if written.is_ok() {
            self.share.store(share.0, Ordering::Relaxed);
        }
        share
    }

    fn ticks_used(&self, used: Duration) -> u32 {
        (used.as_micros() / self.processors / u128::from(TICK)) as u32
    }
}

fn ticks(micros: u64) -> u32 {
    (micros / TICK) as u32
}

fn word(when: u32, used: u32) -> u64 {
    u64::from(when) << 32 | u64::from(used)
}

/// Parts in ten thousand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Share(u32);

impl Share {
    const WHOLE: u32 = 10_000;

    /// More than 0 and at most 1.
    pub(super) fn new(share: f64) -> Option<Self> {
        let sound = share > 0.0 && share <= 1.0;
        sound.then(|| Self((share * f64::from(Self::WHOLE)).round().max(1.0) as u32))
    }

    fn of(used: u32, passed: u32) -> Self {
        let share = u64::from(used) * u64::from(Self::WHOLE) / u64::from(passed);
        Self(share.min(Self::WHOLE.into()) as u32)
    }
}

impl From<Share> for f64 {
    fn from(share: Share) -> Self {
        Self::from(share.0) / Self::from(Share::WHOLE)
    }
}
