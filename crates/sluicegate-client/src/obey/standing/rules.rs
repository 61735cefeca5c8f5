use std::time::Duration;

use sluicegate::adapter::ConfigError;

/// How much of what a server asks for is believed, and how long to wait where it does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::obey) struct Rules {
    /// The longest wait that a server may demand.
    longest: u64,
    /// How long the others wait for the response of a probe.
    probe: u64,
}

/// The first wait after a refusal that does not say how long, and what is added to it by each further one: at most, and at
/// least where the pace is known.
const UNTOLD: u64 = 1_000_000;
const LEAST_UNTOLD: u64 = 100_000;

/// Where the pace is known, that wait lasts for this many requests. Each further refusal makes it half as long again.
const GAPS: u64 = 10;

/// Refusals in a row that make that wait longer: a server that is back has a request within seconds.
const MOST_UNTOLD: u32 = 6;

/// What is added after a second refusal in a row, whatever the server says: one that says 0 is not hammered.
const SHORTEST: u64 = 25_000;

/// The most that is added to what a server says: one that is back has a request within seconds.
const MORE: u64 = 3_000_000;

impl Default for Rules {
    /// At most an hour, which is the window of GitHub; ten seconds for a probe.
    fn default() -> Self {
        Self { longest: 3_600_000_000, probe: 10_000_000 }
    }
}

impl Rules {
    /// The longest wait that a server may demand, and how long the others wait for the response of a probe.
    ///
    /// # Errors
    ///
    /// If one of them is zero, or the longest wait is above a day.
    pub(in crate::obey) fn try_new(
        longest: Duration,
        probe: Duration,
    ) -> Result<Self, ConfigError> {
        let day = Duration::from_secs(86_400);
        if longest.is_zero() || longest > day {
            return Err(ConfigError::new(format!(
                "the longest wait that a server may demand is above zero and at most a day; {longest:?} was given"
            )));
        }
        if probe.is_zero() || probe > day {
            return Err(ConfigError::new(format!(
                "the wait for a probe is above zero and at most a day; {probe:?} was given"
            )));
        }
        Ok(Self { longest: longest.as_micros() as u64, probe: probe.as_micros() as u64 })
    }

    pub(super) const fn probe(&self) -> u64 {
        self.probe
    }

    pub(super) fn capped(&self, time: Duration) -> u64 {
        self.bounded(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
    }

    /// Microseconds, but no more than a server may demand.
    pub(super) fn bounded(&self, micros: u64) -> u64 {
        micros.min(self.longest)
    }

    /// A tenth of `micros` at most, never less than nothing: clients that wait for the reset of a quota return apart.
    pub(super) fn jitter(micros: u64, random: u32) -> u64 {
        part(micros / 10, random)
    }

    /// Microseconds to wait after the given number of refusals in a row, jitter included, where requests go `gap` apart;
    /// 0 if that is not known. Clients that keep to shares of windows come back together: they leave room for each other.
    pub(super) fn wait_after(
        &self,
        asked: Option<Duration>,
        refusals: u32,
        gap: u64,
        by_windows: bool,
        random: u32,
    ) -> u64 {
        let before = refusals.saturating_sub(1).min(8);
        let Some(asked) = asked else {
            let slowest = UNTOLD * u64::from(refusals.clamp(1, MOST_UNTOLD));
            let most = match gap {
                0 => slowest,
                gap => (0..before)
                    .fold((GAPS * gap).max(LEAST_UNTOLD), |wait, _| wait + wait / 2)
                    .min(slowest),
            };
            let most = most.min(self.longest);
            return most / 2 + part(most / 2, random);
        };
        let asked = self.capped(asked);
        if by_windows {
            return asked + part(asked / 256, random);
        }
        // A thirty-second of the wait: a longer one would let the windows of a server pass that nobody has used.
        let wait = asked + part(asked / 32, random);
        if refusals < 2 {
            return wait;
        }
        // Others are served when this client is not: it leaves them more room each time.
        let times = u64::from(refusals - 1);
        let spread =
            (asked.saturating_mul(times).saturating_mul(3) / 2).max(SHORTEST << before).min(MORE);
        wait + spread / 2 + part(spread / 2, random.rotate_left(16))
    }
}

/// From nothing up to `micros`, by a random number.
fn part(micros: u64, random: u32) -> u64 {
    // At most a day, by a number of 24 bits: below 2^64.
    (micros.min(86_400_000_000) * u64::from(random >> 8)) >> 24
}
