//! The highest count of each key in a window: the distribution that says whom a limit would touch.

pub(crate) mod by_limit;

use std::time::Duration;

use crate::key::hash::ByHash;

/// The number of [levels](level_of).
pub const LEVELS: usize = SMALL + STEPS * DECADES;

/// Each count up to here is a level of its own.
const SMALL: usize = 100;

/// Levels for each power of ten beyond: 100, 105, 110 and so on. They include all numbers that people choose as limits.
const STEPS: usize = 180;

/// Up to 10¹².
const DECADES: usize = 10;

/// The place of the lowest level that is at least `count`. Counts beyond the last level have its place.
pub const fn level_of(count: u64) -> usize {
    if count <= SMALL as u64 {
        return (count as usize).saturating_sub(1);
    }
    let decade = count.ilog10();
    let power = 10_u64.pow(decade);
    let beyond = (count - power).div_ceil(power / 20) as usize;
    let place = SMALL - 1 + (decade as usize - 2) * STEPS + beyond;
    if place < LEVELS { place } else { LEVELS - 1 }
}

/// The level at a place.
pub const fn level(place: usize) -> u64 {
    if place < SMALL {
        return place as u64 + 1;
    }
    let beyond = place - SMALL;
    let power = 10_u64.pow(2 + (beyond / STEPS) as u32);
    power + (beyond % STEPS + 1) as u64 * (power / 20)
}

/// The keys and the requests between one level and the one below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeakStep {
    /// The level.
    pub level: u64,
    /// Keys whose highest count in a window is at most this level, and above the one below.
    pub keys: u64,
    /// Requests whose number in their window is so. A limit refuses those whose number is above it.
    pub requests: u64,
}

/// The highest count of each key in a window of the clock, in bounded memory.
///
/// Keys are counted all while they fit. Then a sample of them is kept, chosen by their hashes, and each stands for several.
#[derive(Debug, Clone)]
pub struct Peaks {
    /// In microseconds.
    window: u64,
    most: usize,
    keys: ByHash<Peak>,
    /// A key is followed if this many of the last bits of its hash are 0.
    halvings: u32,
    /// By level.
    requests: Vec<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Peak {
    /// When its window begins.
    begins: u64,
    count: u64,
    highest: u64,
    /// The level of the count, and its place: most requests change neither, and finding them divides.
    level: u64,
    place: usize,
}

impl Peak {
    const fn new(begins: u64) -> Self {
        Self { begins, count: 0, highest: 0, level: 0, place: 0 }
    }
}

impl Peaks {
    /// Follows at most as many keys, of about 100 bytes each.
    pub fn new(window: Duration, most: usize) -> Self {
        let window = u64::try_from(window.as_micros()).unwrap_or(u64::MAX).max(1);
        let most = most.max(1);
        Self { window, most, keys: ByHash::default(), halvings: 0, requests: Vec::new() }
    }

    /// The key with this hash, which no client may know, spends `cost` at a time in microseconds.
    pub fn add(&mut self, hash: u64, at: u64, cost: u64) {
        if hash.trailing_zeros() < self.halvings || cost == 0 {
            return;
        }
        let window = self.window;
        let begin = |at: u64| at - at % window;
        let peak = match self.keys.get_mut(&hash) {
            Some(peak) => peak,
            None => {
                while self.keys.len() >= self.most {
                    self.halve();
                }
                if hash.trailing_zeros() < self.halvings {
                    return;
                }
                self.keys.entry(hash).or_insert(Peak::new(begin(at)))
            }
        };
        // Also after a clock that went back.
        if at.wrapping_sub(peak.begins) >= window {
            *peak = Peak { highest: peak.highest, ..Peak::new(begin(at)) };
        }
        let before = peak.count;
        let after = before.saturating_add(cost);
        peak.count = after;
        peak.highest = peak.highest.max(after);
        let weight = 1 << self.halvings.min(63);
        if after <= peak.level {
            let requests = &mut self.requests[peak.place];
            *requests = requests.saturating_add(cost.saturating_mul(weight));
        } else {
            peak.place = spend(&mut self.requests, before, after, weight);
            peak.level = level(peak.place);
        }
    }

    /// Lets go of half of the keys.
    fn halve(&mut self) {
        self.halvings += 1;
        let halvings = self.halvings;
        self.keys.retain(|hash, _| hash.trailing_zeros() >= halvings);
    }

    /// How many keys a key stands for.
    pub fn one_in(&self) -> u64 {
        1 << self.halvings.min(63)
    }

    /// How many keys are followed.
    pub fn followed(&self) -> usize {
        self.keys.len()
    }

    /// The levels where there is something, in order.
    pub fn steps(&self) -> Vec<PeakStep> {
        let mut keys = vec![0; self.requests.len()];
        for peak in self.keys.values() {
            keys[level_of(peak.highest)] += self.one_in();
        }
        let steps = keys.into_iter().zip(&self.requests).enumerate();
        steps
            .map(|(place, (keys, requests))| PeakStep {
                level: level(place),
                keys,
                requests: *requests,
            })
            .filter(|step| step.keys > 0 || step.requests > 0)
            .collect()
    }
}

/// Counts what is between both counts at its levels. Returns the place of the last one.
fn spend(requests: &mut Vec<u64>, before: u64, after: u64, weight: u64) -> usize {
    let (first, last) = (level_of(before.saturating_add(1)), level_of(after));
    if requests.len() <= last {
        requests.resize(last + 1, 0);
    }
    let mut from = before;
    for (place, requests) in (first..).zip(&mut requests[first..=last]) {
        let until = if place == last { after } else { level(place) };
        let part = (until - from).saturating_mul(weight);
        *requests = requests.saturating_add(part);
        from = until;
    }
    last
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    /// Spreads numbers over all bits.
    fn hash(number: u64) -> u64 {
        let hash = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    /// What a limit of a fixed window touches: keys, and what it refuses.
    fn touched(peaks: &Peaks, limit: u64) -> (u64, u64) {
        let over = peaks.steps().into_iter().filter(|step| step.level > limit);
        over.fold((0, 0), |(keys, requests): (u64, u64), step| {
            (keys + step.keys, requests.saturating_add(step.requests))
        })
    }

    #[test]
    fn levels_rise_and_have_the_numbers_that_people_choose() {
        let levels: Vec<_> = (0..LEVELS).map(level).collect();
        assert!(levels.windows(2).all(|pair| pair[0] < pair[1]));
        for (place, level) in levels.iter().enumerate() {
            assert_eq!(level_of(*level), place, "{level}");
            assert_eq!(level_of(level + 1), (place + 1).min(LEVELS - 1), "{level}");
        }
        for power in 0..12 {
            for step in [1, 2, 3, 5, 6, 15, 25] {
                let number = step * 10_u64.pow(power);
                assert!(number > 10_u64.pow(12) || levels.contains(&number), "{number}");
            }
        }
        assert_eq!((level_of(0), level_of(u64::MAX)), (0, LEVELS - 1));
    }

    #[test]
    fn a_limit_touches_what_a_fixed_window_of_it_refuses() {
        let mut peaks = Peaks::new(MINUTE, 1_000);
        let mut counts: HashMap<(u64, u64), u64> = HashMap::new();
        for number in 0..20_000_u64 {
            // Key k comes about k times as often as the first.
            let (key, at) = ((number * number + number / 7) % 97 % 31, number * 37_000);
            peaks.add(hash(key), at, 1);
            *counts.entry((key, at / 60_000_000)).or_default() += 1;
        }
        for limit in [1, 7, 20, 60, 100, 110, 500] {
            let over = counts.iter().filter(|(_, count)| **count > limit);
            let refused = over.clone().map(|(_, count)| count - limit).sum::<u64>();
            let keys: std::collections::HashSet<_> = over.map(|((key, _), _)| *key).collect();
            assert_eq!(touched(&peaks, limit), (keys.len() as u64, refused), "{limit}");
        }
        assert_eq!(touched(&peaks, 0).1, 20_000);
    }

    #[test]
    fn a_cost_is_spent_level_by_level() {
        let mut peaks = Peaks::new(MINUTE, 10);
        peaks.add(1, 0, 1_000);
        peaks.add(1, 1, 0);
        peaks.add(1, 1, 500);
        assert_eq!(touched(&peaks, 0), (1, 1_500));
        assert_eq!(touched(&peaks, 1_200), (1, 300));
        peaks.add(1, 2, u64::MAX);
        peaks.add(1, u64::MAX, u64::MAX);
        assert_eq!(touched(&peaks, 1), (1, u64::MAX));
    }

    #[test]
    fn memory_is_bounded_and_a_sample_stands_for_all() {
        let mut peaks = Peaks::new(MINUTE, 2_000);
        for number in 0..100_000 {
            (0..=number % 10).for_each(|_| peaks.add(hash(number), 0, 1));
        }
        assert!(peaks.followed() <= 2_000 && peaks.one_in() >= 64, "{}", peaks.one_in());
        let (keys, requests) = touched(&peaks, 0);
        assert!(
            keys.abs_diff(100_000) < 10_000 && requests.abs_diff(550_000) < 55_000,
            "{keys} {requests}"
        );
        // Half of the keys come more than five times.
        assert!(touched(&peaks, 5).0.abs_diff(50_000) < 6_000);
        let mut none = Peaks::new(MINUTE, 0);
        (0..100).for_each(|number| none.add(hash(number), 0, 1));
        assert!(none.followed() <= 1);
    }
}
