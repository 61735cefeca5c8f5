use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Microseconds in a tick. An interval of 1,000 ticks is measured to a thousandth. A count of 32 bits wraps after
/// five days; after so long a pause, the first share may be wrong.
const TICK: u64 = 100;

/// Ticks in the shortest interval that is measured.
const INTERVAL: u32 = 1_000;

/// The number of ticks by which a clock may be behind the one of another thread.
const BEHIND: u32 = 1_000;

/// The share of processor time used in the last interval, from growing sums.
#[derive(Debug)]
pub(super) struct Meter {
    /// The time of the last measurement, and the time used by then for each processor, both in ticks. They are in one
    /// word, so that threads cannot mix them.
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

    /// The share at `now`: the last one measured, or a new measurement if that is too old.
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
        // If several threads measure at once, the first one's result counts for all.
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
