//! What is kept of a client, in constant memory.

use super::ladder::{RATES, WINDOWS};
use crate::terminal::span;

const SECOND: i64 = 1_000_000_000;

/// One request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    /// When it came, in nanoseconds.
    pub(super) at: i64,
    /// A hash of its user agent, if the log has one.
    pub(super) agent: Option<u32>,
    /// A hash of its path group.
    pub(super) group: u32,
}

/// A client, by what the log told so far.
#[derive(Debug, Clone)]
pub(super) struct Client {
    /// The hash of its key.
    pub(super) key: u64,
    /// Whether it is followed because it came so often, and not by chance.
    pub(super) is_heavy: bool,
    pub(super) requests: u32,
    last: i64,
    windows: [Counts; WINDOWS.len()],
    /// For each rate, how far the client is ahead of it: what a token bucket of this rate would have lent.
    levels: [f32; RATES],
    /// The highest level: the least burst with which a bucket of this rate would have refused nothing.
    pub(super) bursts: [f32; RATES],
    agent: u32,
    pub(super) has_agents: bool,
    is_one_agent: bool,
    group: u32,
    is_one_group: bool,
    /// The hours of the day in which it came, a bit each.
    hours: u32,
    /// The seconds between its requests.
    gaps: Spread,
    /// The requests of its minutes in a row.
    minutes: Spread,
}

/// Counts in one window of the clock after the other.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    index: u32,
    count: u32,
    highest: u32,
}

/// Mean and variance, by Welford's method.
#[derive(Debug, Clone, Copy, Default)]
struct Spread {
    count: u32,
    mean: f32,
    squares: f32,
}

impl Spread {
    fn add(&mut self, value: f32) {
        self.count = self.count.saturating_add(1);
        let off = value - self.mean;
        self.mean += off / self.count as f32;
        self.squares += off * (value - self.mean);
    }

    fn variance(&self) -> f32 {
        if self.count < 2 { f32::INFINITY } else { self.squares / (self.count - 1) as f32 }
    }
}

impl Client {
    pub(super) fn new(key: u64, is_heavy: bool, first: Arrival) -> Self {
        Self {
            key,
            is_heavy,
            requests: 0,
            last: first.at,
            windows: [Counts::default(); WINDOWS.len()],
            levels: [0.0; RATES],
            bursts: [0.0; RATES],
            agent: first.agent.unwrap_or(0),
            has_agents: first.agent.is_some(),
            is_one_agent: true,
            group: first.group,
            is_one_group: true,
            hours: 0,
            gaps: Spread::default(),
            minutes: Spread::default(),
        }
    }

    /// Takes a request, and calls `each` with the number of the request in each window.
    #[inline]
    pub(super) fn add(
        &mut self,
        arrival: Arrival,
        rates: &[f32; RATES],
        mut each: impl FnMut(usize, u32),
    ) {
        let passed = (arrival.at - self.last).max(0) as f32 / SECOND as f32;
        self.last = self.last.max(arrival.at);
        for ((level, burst), rate) in self.levels.iter_mut().zip(&mut self.bursts).zip(rates) {
            *level = (*level - rate * passed).max(0.0) + 1.0;
            *burst = burst.max(*level);
        }
        let second = (self.last / SECOND).clamp(0, i64::from(u32::MAX)) as u32;
        let minute = self.windows[super::ladder::MINUTE];
        for (place, (counts, window)) in self.windows.iter_mut().zip(&WINDOWS).enumerate() {
            let index = second / window.seconds;
            if counts.index != index {
                *counts = Counts { index, count: 0, highest: counts.highest };
            }
            counts.count = counts.count.saturating_add(1);
            counts.highest = counts.highest.max(counts.count);
            each(place, counts.count);
        }
        let ended = self.windows[super::ladder::MINUTE].index.wrapping_sub(minute.index);
        if self.requests > 0 {
            self.gaps.add(passed);
            // The first minute, and one before a pause, may not be whole.
            if ended == 1 {
                self.minutes.add(minute.count as f32);
            }
        }
        self.hours |= 1 << (second / 3_600 % 24);
        self.is_one_agent &= arrival.agent.unwrap_or(0) == self.agent;
        self.is_one_group &= arrival.group == self.group;
        self.requests = self.requests.saturating_add(1);
    }

    /// The highest count in any window of the clock.
    pub(super) fn highest(&self, window: usize) -> u32 {
        self.windows[window].highest
    }

    /// The mean time between requests, in seconds.
    #[cfg(test)]
    pub(super) fn mean_gap(&self) -> f32 {
        self.gaps.mean
    }

    /// Whether its requests come so evenly, with one agent, that nobody is likely to sit there. People come in bursts: the
    /// times between their requests vary by more than their mean. `resolution`: of the log's times, in seconds.
    pub(super) fn looks_automatic(&self, resolution: f32) -> bool {
        /// Fewer requests prove nothing.
        const REQUESTS: u32 = 100;
        if self.requests < REQUESTS || !self.is_one_agent {
            return false;
        }
        // At random, as when many people share an address, both would be 1.
        let is_even = if self.gaps.mean >= 10.0 * resolution {
            self.gaps.variance() < 0.25 * self.gaps.mean * self.gaps.mean
        } else {
            // Times are too coarse to tell one gap from the next. Of twenty minutes at random, two in a thousand would be so even.
            self.minutes.count >= 20 && self.minutes.variance() < 0.3 * self.minutes.mean
        };
        let has_no_night = self.hours.count_ones() >= 23 && self.is_one_group && self.has_agents;
        is_even || has_no_night
    }

    /// What makes it look automatic, in words.
    pub(super) fn habits(&self) -> String {
        let mut words = format!("a request every {} on average", span(f64::from(self.gaps.mean)));
        if self.is_one_agent && self.has_agents {
            words.push_str(", one agent");
        }
        if self.is_one_group {
            words.push_str(", one group of paths");
        }
        if self.hours.count_ones() == 24 {
            words.push_str(", no pause at night");
        }
        words
    }
}
