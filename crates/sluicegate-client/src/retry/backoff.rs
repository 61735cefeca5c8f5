use std::time::Duration;

use crate::error::ConfigError;

/// Exponential back-off with full jitter: a random time up to `base`, then up to twice that, and so on.
///
/// The whole wait is random, so that clients that failed together do not return together (Brooker, "Exponential Backoff
/// And Jitter", 2015).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    base: u64,
    most: u64,
}

impl Default for Backoff {
    /// Up to 100 ms first, up to 10 s at most.
    fn default() -> Self {
        Self { base: 100_000, most: 10_000_000 }
    }
}

impl Backoff {
    /// Random waits up to `base` at first, and never above `most`.
    ///
    /// # Errors
    ///
    /// If `base` is zero or above `most`, or `most` is above a day.
    pub fn try_new(base: Duration, most: Duration) -> Result<Self, ConfigError> {
        if base.is_zero() || base > most || most > Duration::from_secs(86_400) {
            return Err(ConfigError::new(format!(
                "a back-off begins above zero and at or below its longest wait, which is at most a day; {base:?} and {most:?} were given"
            )));
        }
        Ok(Self { base: (base.as_micros() as u64).max(1), most: most.as_micros() as u64 })
    }

    /// Microseconds to wait after this number of attempts, which is at least 1. The wait depends on a random number.
    pub(super) fn wait(&self, attempts: u32, random: u32) -> u64 {
        let doubled = self.base.saturating_mul(1 << attempts.saturating_sub(1).min(40));
        // At most a day by a number of 32 bits: below 2^69, so in two steps.
        let most = doubled.min(self.most);
        ((u128::from(most) * u128::from(random)) >> 32) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wait_is_random_up_to_twice_the_last_and_never_above_the_most() {
        let backoff = Backoff::default();
        for (attempts, most) in
            [(1, 100_000), (2, 200_000), (3, 400_000), (8, 10_000_000), (500, 10_000_000)]
        {
            assert_eq!(backoff.wait(attempts, 0), 0);
            assert_eq!(backoff.wait(attempts, u32::MAX), most - 1, "{attempts}");
            assert_eq!(backoff.wait(attempts, u32::MAX / 2 + 1), most / 2);
        }
    }

    #[test]
    fn waits_that_make_no_sense_are_errors() {
        let millis = Duration::from_millis;
        for (base, most) in
            [(millis(0), millis(1)), (millis(2), millis(1)), (millis(1), Duration::MAX)]
        {
            assert!(Backoff::try_new(base, most).is_err(), "{base:?} {most:?}");
        }
    }
}
