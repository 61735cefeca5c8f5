use std::time::Duration;

use sluicegate::adapter::ConfigError;

use super::gate::Reserve;

/// A semaphore whose permits are all there again at the start of each period.
///
/// Requests that find none wait for the next period in which there are some, in the order in which they came.
///
/// ```
/// use std::time::Duration;
/// use sluicegate_client::smooth::{Refilled, Reserve};
///
/// let mut semaphore = Refilled::new(2, Duration::from_secs(1))?;
/// let now = Duration::from_millis(10_400);
/// let waits = [(); 5].map(|()| semaphore.reserve(now, 1, None).unwrap().as_millis());
/// assert_eq!(waits, [0, 0, 600, 600, 1_600]);
/// # Ok::<(), sluicegate_client::ConfigError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Refilled {
    count: u32,
    /// In microseconds.
    period: u64,
    /// The number of the period in which the next permits are.
    index: u64,
    left: u32,
}

impl Refilled {
    /// `count` permits in each period. Periods begin at multiples of their length.
    ///
    /// # Errors
    ///
    /// When the count is zero, or the period is shorter than a millisecond or longer than a day.
    pub fn new(count: u32, period: Duration) -> Result<Self, ConfigError> {
        if count == 0 {
            return Err(ConfigError::new("the semaphore has no permits: nothing would ever leave"));
        }
        if !(Duration::from_millis(1)..=Duration::from_secs(86_400)).contains(&period) {
            let text = format!("the period is {period:?}, but must be from 1 ms to a day");
            return Err(ConfigError::new(text));
        }
        Ok(Self { count, period: period.as_micros() as u64, index: 0, left: count })
    }
}

impl Reserve for Refilled {
    /// More permits than a period has are never there: the error is [`Duration::MAX`], however patient the caller is.
    fn reserve(
        &mut self,
        now: Duration,
        permits: u32,
        patience: Option<Duration>,
    ) -> Result<Duration, Duration> {
        if permits > self.count {
            return Err(Duration::MAX);
        }
        let now = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
        // A clock that steps back stays in its period.
        let mut next = match now / self.period {
            index if index > self.index => (index, self.count),
            _ => (self.index, self.left),
        };
        if permits > next.1 {
            next = (next.0 + 1, self.count);
        }
        let begins = next.0.saturating_mul(self.period);
        let wait = Duration::from_micros(begins.saturating_sub(now));
        if patience.is_some_and(|patience| wait > patience) {
            return Err(wait);
        }
        (self.index, self.left) = (next.0, next.1 - permits);
        Ok(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn no_period_has_more_than_its_permits() {
        let mut semaphore = Refilled::new(7, SECOND).unwrap();
        let mut leave = [0; 800];
        for request in 0..2_000 {
            let now = Duration::from_millis(request * 11);
            let wait = semaphore.reserve(now, 1 + request as u32 % 3, None).unwrap();
            leave[(now + wait).as_secs() as usize] += 1 + request % 3;
        }
        assert!(leave.iter().all(|permits| *permits <= 7));
        // They take 4,000 permits. At most two of a period are left because the next request takes three.
        let used: Vec<_> = leave.into_iter().take_while(|permits| *permits > 0).collect();
        assert_eq!(used.iter().sum::<u64>(), 3_999);
        assert!(used[..used.len() - 1].iter().all(|permits| *permits >= 5));
    }

    #[test]
    fn a_caller_that_does_not_wait_takes_nothing() {
        let mut semaphore = Refilled::new(1, SECOND).unwrap();
        assert_eq!(semaphore.reserve(Duration::ZERO, 1, None), Ok(Duration::ZERO));
        for _ in 0..3 {
            assert_eq!(semaphore.reserve(Duration::ZERO, 1, Some(SECOND / 2)), Err(SECOND));
        }
        assert_eq!(semaphore.reserve(Duration::ZERO, 1, Some(SECOND)), Ok(SECOND));
    }

    #[test]
    fn more_than_a_period_has_is_never_there() {
        let mut semaphore = Refilled::new(2, SECOND).unwrap();
        assert_eq!(semaphore.reserve(SECOND, 3, None), Err(Duration::MAX));
        assert_eq!(semaphore.reserve(SECOND, 2, None), Ok(Duration::ZERO));
        assert!(semaphore.reserve(Duration::MAX, 1, None).is_ok());
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        assert!(Refilled::new(0, SECOND).is_err());
        assert!(Refilled::new(1, Duration::ZERO).is_err());
        assert!(Refilled::new(1, Duration::MAX).is_err());
    }
}
