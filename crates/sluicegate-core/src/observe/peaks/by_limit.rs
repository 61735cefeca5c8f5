//! The peaks of the keys of each limit, which threads note while they decide.

use std::fmt;
use std::hint;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::Duration;

use super::{LEVELS, PeakStep, Peaks, level, level_of};
use crate::key::hash::KeyHash;
use crate::limit::Limit;
use crate::store::charge::{Charge, Debit};

/// The number of limits whose keys are counted. Rules can choose a limit for each request, and files change.
const MOST_LIMITS: usize = 64;

/// Parts, each with the keys of one eighth of all hashes, so that threads seldom meet.
const PARTS: usize = 8;

/// How often a thread tries a part that another thread writes to, which takes about a hundred instructions.
const TRIES: usize = 16;

/// Peaks by limit. Noting waits for nobody, and allocates only for new keys.
pub(crate) struct PeaksByLimit {
    keys: usize,
    hash: KeyHash,
    /// Filled from the front, and found without a lock.
    limits: Box<[OnceLock<Box<PeaksOfLimit>>]>,
}

struct PeaksOfLimit {
    limit: Limit,
    window: Duration,
    parts: [Part; PARTS],
    missed: AtomicU64,
}

/// On cache lines of its own.
#[repr(align(128))]
struct Part {
    /// As in the peaks, to be read without their lock.
    halvings: AtomicU32,
    peaks: Mutex<Peaks>,
}

/// The highest counts of the keys of one limit, as [`Watch::peaks`](crate::observe::Watch::peaks) returns them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitPeaks {
    /// The limit.
    pub limit: Limit,
    /// The window of the counts, which is the period of the limit.
    pub window: Duration,
    /// How many keys a key that is followed stands for, at most.
    pub one_in: u64,
    /// How many keys are followed.
    pub followed: usize,
    /// Requests that were not counted, because another thread was writing.
    pub missed: u64,
    /// The levels where there is something, in order.
    pub steps: Vec<PeakStep>,
}

impl PeaksByLimit {
    /// Follows at most about `keys` keys of each limit.
    pub(crate) fn new(keys: usize) -> Self {
        let limits = (0..MOST_LIMITS).map(|_| OnceLock::new()).collect();
        Self { keys: keys.div_ceil(PARTS), hash: KeyHash::new(), limits }
    }

    /// Notes what a request asks for at a time in microseconds.
    pub(crate) fn note(&self, charge: &Charge, now: u64) {
        for Debit { limit, key, cost, account, .. } in charge.debits() {
            // What a response changes is not what was asked for.
            let Some(window) = limit.period().filter(|_| account.is_none()) else { continue };
            let Some(peaks) = self.of(limit, window) else { continue };
            peaks.add(self.hash.of(limit.id(), key), now, *cost);
        }
    }

    fn of(&self, limit: &Limit, window: Duration) -> Option<&PeaksOfLimit> {
        let is_same = |peaks: &&PeaksOfLimit| peaks.limit.id() == limit.id();
        self.iter().find(is_same).or_else(|| self.make(limit, window))
    }

    #[inline(never)]
    fn make(&self, limit: &Limit, window: Duration) -> Option<&PeaksOfLimit> {
        let new = || Box::new(PeaksOfLimit::new(*limit, window, self.keys));
        // Another thread may fill the slot meanwhile, with the same limit or another one.
        let mut made = self.limits.iter().map(|slot| &**slot.get_or_init(new));
        made.find(|peaks| peaks.limit.id() == limit.id())
    }

    fn iter(&self) -> impl Iterator<Item = &PeaksOfLimit> {
        self.limits.iter().map_while(|slot| slot.get().map(|peaks| &**peaks))
    }

    pub(crate) fn snapshot(&self) -> Vec<LimitPeaks> {
        self.iter().map(PeaksOfLimit::snapshot).collect()
    }

    pub(crate) fn clear(&self) {
        self.iter().for_each(PeaksOfLimit::clear);
    }
}

impl PeaksOfLimit {
    fn new(limit: Limit, window: Duration, keys: usize) -> Self {
        let part =
            |_| Part { halvings: AtomicU32::new(0), peaks: Mutex::new(Peaks::new(window, keys)) };
        Self { limit, window, parts: std::array::from_fn(part), missed: AtomicU64::new(0) }
    }

    fn add(&self, hash: u64, now: u64, cost: u64) {
        // By the first bits: samples are chosen by the last ones, and the places in a map by others.
        let part = &self.parts[(hash >> 61) as usize % PARTS];
        if hash.trailing_zeros() < part.halvings.load(Ordering::Relaxed) {
            return;
        }
        for _ in 0..TRIES {
            let mut peaks = match part.peaks.try_lock() {
                Ok(peaks) => peaks,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => {
                    hint::spin_loop();
                    continue;
                }
            };
            peaks.add(hash, now, cost);
            return part.halvings.store(peaks.halvings, Ordering::Relaxed);
        }
        self.missed.fetch_add(1, Ordering::Relaxed);
    }

    fn parts(&self) -> impl Iterator<Item = MutexGuard<'_, Peaks>> {
        self.parts.iter().map(|part| part.peaks.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn snapshot(&self) -> LimitPeaks {
        let mut sums = vec![(0, 0); LEVELS];
        let (mut one_in, mut followed) = (1, 0);
        for peaks in self.parts() {
            one_in = one_in.max(peaks.one_in());
            followed += peaks.followed();
            for step in peaks.steps() {
                let (keys, requests): &mut (u64, u64) = &mut sums[level_of(step.level)];
                *keys += step.keys;
                *requests = requests.saturating_add(step.requests);
            }
        }
        let steps = sums.into_iter().enumerate().filter(|(_, sum)| *sum != (0, 0));
        let step = |(place, (keys, requests))| PeakStep { level: level(place), keys, requests };
        LimitPeaks {
            limit: self.limit,
            window: self.window,
            one_in,
            followed,
            missed: self.missed.load(Ordering::Relaxed),
            steps: steps.map(step).collect(),
        }
    }

    fn clear(&self) {
        for part in &self.parts {
            let mut peaks = part.peaks.lock().unwrap_or_else(PoisonError::into_inner);
            *peaks = Peaks::new(self.window, peaks.most);
            part.halvings.store(0, Ordering::Relaxed);
        }
        self.missed.store(0, Ordering::Relaxed);
    }
}

impl fmt::Debug for PeaksByLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|peaks| &peaks.limit)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::KeyBuf;

    const LIMIT: Limit = Limit::per_minute(100).named("api");

    fn note(peaks: &PeaksByLimit, limit: Limit, key: u64, now: u64) {
        peaks.note(&Charge::of(limit, KeyBuf::of(key), 1), now);
    }

    fn steps(peaks: &LimitPeaks) -> Vec<(u64, u64, u64)> {
        peaks.steps.iter().map(|step| (step.level, step.keys, step.requests)).collect()
    }

    #[test]
    fn each_limit_has_the_peaks_of_its_own_keys() {
        let peaks = PeaksByLimit::new(10_000);
        let other = Limit::per_hour(7);
        for second in 0..120 {
            note(&peaks, LIMIT, 1, second * 1_000_000);
            note(&peaks, LIMIT, second, second * 1_000_000);
            note(&peaks, other, 1, second * 1_000_000);
            note(&peaks, Limit::concurrent(3), 1, 0);
        }
        let [api, hour] = &*peaks.snapshot() else { panic!("two limits") };
        assert_eq!((api.limit, api.window.as_secs(), api.missed, api.one_in), (LIMIT, 60, 0, 1));
        // 119 keys with one, and the first one with 61 in its first minute.
        assert_eq!((steps(api)[0].0, steps(api)[0].1, api.followed), (1, 119, 120));
        assert_eq!(steps(api).last(), Some(&(61, 1, 1)));
        assert_eq!((hour.limit, steps(hour).last()), (other, Some(&(120, 1, 5))));
        peaks.clear();
        assert_eq!((peaks.snapshot()[0].followed, &*peaks.snapshot()[0].steps), (0, &[][..]));
    }

    #[test]
    fn keys_and_limits_are_bounded() {
        let peaks = PeaksByLimit::new(1_000);
        (0..50_000).for_each(|key| note(&peaks, LIMIT, key, 0));
        let api = &peaks.snapshot()[0];
        assert!(api.followed <= 1_000 && api.one_in >= 32, "{} {}", api.followed, api.one_in);
        let keys: u64 = api.steps.iter().map(|step| step.keys).sum();
        assert!(keys.abs_diff(50_000) < 12_000, "{keys}");
        (0..1_000).for_each(|count| note(&peaks, Limit::per_hour(count + 1), 1, 0));
        assert_eq!(peaks.snapshot().len(), MOST_LIMITS);
    }

    #[test]
    fn what_threads_note_together_is_counted_or_said_to_be_missed() {
        let peaks = PeaksByLimit::new(1_000);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let peaks = &peaks;
                scope.spawn(move || {
                    for number in 0..2_000 {
                        note(peaks, LIMIT, 1, 0);
                        note(peaks, Limit::per_hour(1 + number % 5), 10 + thread, 0);
                    }
                });
            }
        });
        let all = peaks.snapshot();
        assert_eq!(all.len(), 6);
        let counted: u64 = all.iter().flat_map(|of| &of.steps).map(|step| step.requests).sum();
        let missed: u64 = all.iter().map(|of| of.missed).sum();
        assert_eq!(counted + missed, 16_000);
        let hot = all.iter().find(|of| of.limit == LIMIT).expect("the limit");
        assert_eq!(hot.steps.iter().map(|step| step.keys).sum::<u64>(), 1);
    }

    #[test]
    fn a_part_that_is_taken_is_missed_and_nobody_waits() {
        let peaks = PeaksByLimit::new(1_000);
        note(&peaks, LIMIT, 1, 0);
        let held: Vec<_> = peaks.iter().flat_map(PeaksOfLimit::parts).collect();
        note(&peaks, LIMIT, 1, 0);
        drop(held);
        let api = &peaks.snapshot()[0];
        assert_eq!((api.missed, steps(api)), (1, vec![(1, 1, 1)]));
    }
}
