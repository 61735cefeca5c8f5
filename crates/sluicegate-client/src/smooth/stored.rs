//! Guava's `RateLimiter`: permits that were not used are stored, and who comes pays for who came before.
//!
//! The first caller goes at once, however many permits it takes, and the next one waits for them. So a large request on
//! an idle limiter need not wait, and the rate is kept all the same.
//!
//! While warming up, a stored permit costs time. It costs most when all are stored, `cold factor` times the interval, and
//! less and less until half of the warm-up's time is over; from then on it costs the interval. The area under that line
//! is the time to take permits: the trapezium above the threshold takes the warm-up, and so does the rectangle below it
//! for a cold factor of 3.

use std::time::Duration;

use sluicegate::adapter::ConfigError;

use super::gate::Reserve;

/// A steady rate in which unused permits are stored.
///
/// ```
/// use std::time::Duration;
/// use sluicegate_client::smooth::{Reserve, Stored};
///
/// // Two a second, after a warm-up of four seconds.
/// let mut limiter = Stored::warming_up(2.0, Duration::from_secs(4), 3.0)?;
/// let mut now = Duration::ZERO;
/// let waits = [(); 6].map(|()| {
///     let wait = limiter.reserve(now, 1, None).unwrap();
///     now += wait;
///     wait.as_millis()
/// });
/// assert_eq!(waits, [0, 1375, 1125, 875, 625, 500]);
/// # Ok::<(), sluicegate_client::ConfigError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Stored {
    method: Method,
    /// Microseconds between two permits.
    interval: f64,
    stored: f64,
    most: f64,
    /// Microseconds; when the next caller may go.
    next_free: f64,
}

#[derive(Debug, Clone, Copy)]
enum Method {
    /// Stores the permits of this many seconds.
    Bursty {
        seconds: f64,
    },
    WarmingUp {
        micros: f64,
        cold_factor: f64,
        slope: f64,
        threshold: f64,
    },
}

impl Stored {
    /// `rate` permits a second. Unused permits are stored for up to `stores`. Guava stores those of one second.
    ///
    /// # Errors
    ///
    /// When the rate is not a number above zero, or `stores` is longer than a day.
    pub fn bursty(rate: f64, stores: Duration) -> Result<Self, ConfigError> {
        check_time("the time for which permits are stored", stores)?;
        Self::new(Method::Bursty { seconds: stores.as_secs_f64() }, rate)
    }

    /// `rate` permits a second once it is warm. It is cold at first, and gets cold in `warm_up` without requests; then a
    /// permit costs up to `cold_factor` times as much, and it takes `warm_up` to get warm. Guava's cold factor is 3.
    ///
    /// # Errors
    ///
    /// When the rate is not a number above zero, the cold factor not one from 1 to 1,000, or the warm-up is longer
    /// than a day or less than a microsecond.
    pub fn warming_up(rate: f64, warm_up: Duration, cold_factor: f64) -> Result<Self, ConfigError> {
        check_time("the warm-up", warm_up)?;
        if warm_up < Duration::from_micros(1) {
            return Err(ConfigError::new(
                "the warm-up is shorter than a microsecond: use `bursty`",
            ));
        }
        if !(1.0..=1_000.0).contains(&cold_factor) {
            let text = format!("the cold factor is {cold_factor:?}, but must be from 1 to 1,000");
            return Err(ConfigError::new(text));
        }
        let micros = warm_up.as_micros() as f64;
        Self::new(Method::WarmingUp { micros, cold_factor, slope: 0.0, threshold: 0.0 }, rate)
    }

    fn new(method: Method, rate: f64) -> Result<Self, ConfigError> {
        let mut limiter =
            Self { method, interval: interval(rate)?, stored: 0.0, most: 0.0, next_free: 0.0 };
        limiter.resize();
        if matches!(method, Method::WarmingUp { .. }) {
            // Cold.
            limiter.stored = limiter.most;
        }
        Ok(limiter)
    }

    /// Changes the rate. The next request still waits for the last one at the old rate.
    ///
    /// # Errors
    ///
    /// When the rate is not a number above zero.
    pub fn set_rate(&mut self, now: Duration, rate: f64) -> Result<(), ConfigError> {
        let interval = interval(rate)?;
        self.store_until(now.as_micros() as f64);
        let (stored, most) = (self.stored, self.most);
        self.interval = interval;
        self.resize();
        self.stored = if most > 0.0 { stored * self.most / most } else { 0.0 };
        Ok(())
    }

    /// Permits a second.
    pub fn rate(&self) -> f64 {
        1e6 / self.interval
    }

    fn resize(&mut self) {
        let interval = self.interval;
        match &mut self.method {
            Method::Bursty { seconds } => self.most = *seconds * 1e6 / interval,
            Method::WarmingUp { micros, cold_factor, slope, threshold } => {
                let cold = interval * *cold_factor;
                *threshold = 0.5 * *micros / interval;
                self.most = *threshold + 2.0 * *micros / (interval + cold);
                *slope = (cold - interval) / (self.most - *threshold);
            }
        }
    }

    /// Stores unused permits.
    fn store_until(&mut self, now: f64) {
        if now > self.next_free {
            let each = match self.method {
                Method::Bursty { .. } => self.interval,
                Method::WarmingUp { micros, .. } => micros / self.most,
            };
            self.stored = self.most.min(self.stored + (now - self.next_free) / each);
            self.next_free = now;
        }
    }

    /// Microseconds that `permits` of the stored ones cost.
    fn cost_of_stored(&self, permits: f64) -> f64 {
        let Method::WarmingUp { slope, threshold, .. } = self.method else { return 0.0 };
        let above = (self.stored - threshold).max(0.0);
        let from_above = above.min(permits);
        let at = |above: f64| self.interval + above * slope;
        // The area of a trapezium.
        let costs = from_above * (at(above) + at(above - from_above)) / 2.0;
        costs + (permits - from_above) * self.interval
    }
}

impl Reserve for Stored {
    fn reserve(
        &mut self,
        now: Duration,
        permits: u32,
        patience: Option<Duration>,
    ) -> Result<Duration, Duration> {
        let now = now.as_micros() as f64;
        let wait = Duration::from_micros((self.next_free - now).max(0.0).round() as u64);
        if patience.is_some_and(|patience| wait > patience) {
            return Err(wait);
        }
        self.store_until(now);
        let permits = f64::from(permits);
        let from_stored = permits.min(self.stored);
        let costs = self.cost_of_stored(from_stored) + (permits - from_stored) * self.interval;
        self.stored -= from_stored;
        self.next_free += costs;
        Ok(wait)
    }
}

fn interval(rate: f64) -> Result<f64, ConfigError> {
    // The lowest is one in a thousand years.
    if !(3e-11..=1e15).contains(&rate) {
        return Err(ConfigError::new(format!(
            "the rate is {rate:?}, but must be above zero and finite"
        )));
    }
    Ok(1e6 / rate)
}

fn check_time(name: &str, time: Duration) -> Result<(), ConfigError> {
    match time <= Duration::from_secs(86_400) {
        true => Ok(()),
        false => Err(ConfigError::new(format!("{name} is {time:?}, which is longer than a day"))),
    }
}

#[cfg(test)]
mod tests {
    //! The events that Guava publishes in `RateLimiterTest`: `R` for a caller that waited, `U` for time without one.

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    struct Stopwatch {
        limiter: Stored,
        now: Duration,
        events: Vec<String>,
    }

    impl Stopwatch {
        fn new(limiter: Result<Stored, ConfigError>) -> Self {
            let limiter = limiter.expect("it makes sense");
            Self { limiter, now: Duration::ZERO, events: Vec::new() }
        }

        fn bursty(rate: f64) -> Self {
            Self::new(Stored::bursty(rate, SECOND))
        }

        fn acquire(&mut self, permits: u32) {
            let wait = self.limiter.reserve(self.now, permits, None).expect("it waits");
            self.now += wait;
            // Java rounds a half up.
            let hundredths = (wait.as_micros() + 5_000) / 10_000;
            self.events.push(format!("R{}.{:02}", hundredths / 100, hundredths % 100));
        }

        fn each(&mut self, permits: &[u32]) {
            permits.iter().for_each(|permits| self.acquire(*permits));
        }

        fn times(&mut self, count: u32) {
            (0..count).for_each(|_| self.acquire(1));
        }

        fn sleep(&mut self, millis: u64) {
            self.now += Duration::from_millis(millis);
            self.events.push(format!("U{}.{:02}", millis / 1_000, millis % 1_000 / 10));
        }

        fn may(&mut self, permits: u32, millis: u64) -> bool {
            let patience = Duration::from_millis(millis);
            match self.limiter.reserve(self.now, permits, Some(patience)) {
                Ok(wait) => {
                    self.now += wait;
                    true
                }
                Err(_) => false,
            }
        }

        fn saw(&self, events: &[&str]) {
            assert_eq!(self.events.join(", "), events.join(", "));
        }
    }

    #[test]
    fn simple() {
        let mut watch = Stopwatch::bursty(5.0);
        watch.times(3);
        watch.saw(&["R0.00", "R0.20", "R0.20"]);
    }

    #[test]
    fn simple_with_wait() {
        let mut watch = Stopwatch::bursty(5.0);
        watch.acquire(1);
        watch.sleep(200);
        watch.times(2);
        watch.saw(&["R0.00", "U0.20", "R0.00", "R0.20"]);
    }

    #[test]
    fn one_second_burst() {
        let mut watch = Stopwatch::bursty(5.0);
        watch.sleep(1_000);
        watch.sleep(1_000);
        watch.each(&[1, 1, 3, 1, 1]);
        watch.saw(&["U1.00", "U1.00", "R0.00", "R0.00", "R0.00", "R0.00", "R0.20"]);
    }

    #[test]
    fn simple_weights() {
        let mut watch = Stopwatch::bursty(1.0);
        watch.each(&[1, 1, 2, 4, 8, 1]);
        watch.saw(&["R0.00", "R1.00", "R1.00", "R2.00", "R4.00", "R8.00"]);
    }

    #[test]
    fn bursty_and_update() {
        let mut watch = Stopwatch::bursty(1.0);
        watch.each(&[1, 1]);
        watch.limiter.set_rate(watch.now, 2.0).expect("a rate");
        watch.each(&[1, 2, 4, 1]);
        watch.saw(&["R0.00", "R1.00", "R1.00", "R0.50", "R1.00", "R2.00"]);
    }

    #[test]
    fn who_does_not_wait_or_waits_for_some_time() {
        let mut watch = Stopwatch::bursty(5.0);
        assert_eq!([watch.may(1, 0), watch.may(1, 0), watch.may(1, 0)], [true, false, false]);
        watch.sleep(100);
        assert!(!watch.may(1, 0));
        let mut watch = Stopwatch::bursty(5.0);
        assert_eq!([watch.may(1, 0), watch.may(1, 200), watch.may(1, 100)], [true, true, false]);
        watch.sleep(100);
        assert!(watch.may(1, 100));
        let mut watch = Stopwatch::bursty(5.0);
        assert!(watch.may(5, 0));
        watch.sleep(900);
        assert!(!watch.may(1, 0));
        watch.sleep(100);
        assert!(watch.may(1, 0));
    }

    #[test]
    fn warm_up() {
        let mut watch = Stopwatch::new(Stored::warming_up(2.0, 4 * SECOND, 3.0));
        watch.times(8);
        watch.sleep(500);
        watch.sleep(4_000);
        watch.times(8);
        watch.sleep(500);
        watch.sleep(2_000);
        watch.times(8);
        watch.saw(&[
            "R0.00, R1.38, R1.13, R0.88, R0.63, R0.50, R0.50, R0.50",
            "U0.50",
            "U4.00",
            "R0.00, R1.38, R1.13, R0.88, R0.63, R0.50, R0.50, R0.50",
            "U0.50",
            "U2.00",
            "R0.00, R0.50, R0.50, R0.50, R0.50, R0.50, R0.50, R0.50",
        ]);
    }

    #[test]
    fn warm_up_with_cold_factor() {
        let mut watch = Stopwatch::new(Stored::warming_up(5.0, 4 * SECOND, 10.0));
        watch.times(8);
        watch.sleep(200);
        watch.sleep(4_000);
        watch.times(8);
        watch.sleep(200);
        watch.sleep(1_000);
        watch.times(8);
        watch.saw(&[
            "R0.00, R1.75, R1.26, R0.76, R0.30, R0.20, R0.20, R0.20",
            "U0.20",
            "U4.00",
            "R0.00, R1.75, R1.26, R0.76, R0.30, R0.20, R0.20, R0.20",
            "U0.20",
            "U1.00",
            "R0.00, R0.20, R0.20, R0.20, R0.20, R0.20, R0.20, R0.20",
        ]);
    }

    #[test]
    fn warm_up_with_cold_factor_1() {
        let mut watch = Stopwatch::new(Stored::warming_up(5.0, 4 * SECOND, 1.0));
        watch.times(8);
        watch.sleep(340);
        watch.times(8);
        watch.saw(&[
            "R0.00, R0.20, R0.20, R0.20, R0.20, R0.20, R0.20, R0.20",
            "U0.34",
            "R0.00, R0.20, R0.20, R0.20, R0.20, R0.20, R0.20, R0.20",
        ]);
    }

    #[test]
    fn warm_up_and_update() {
        let mut watch = Stopwatch::new(Stored::warming_up(2.0, 4 * SECOND, 3.0));
        watch.times(8);
        watch.sleep(4_500);
        watch.times(3);
        watch.limiter.set_rate(watch.now, 4.0).expect("a rate");
        watch.times(5);
        watch.sleep(4_250);
        watch.times(11);
        watch.saw(&[
            "R0.00, R1.38, R1.13, R0.88, R0.63, R0.50, R0.50, R0.50",
            "U4.50",
            "R0.00, R1.38, R1.13",
            "R0.88",
            "R0.34, R0.28, R0.25, R0.25",
            "U4.25",
            "R0.00, R0.72, R0.66, R0.59, R0.53, R0.47, R0.41",
            "R0.34, R0.28, R0.25, R0.25",
        ]);
    }

    #[test]
    fn warm_up_and_update_with_cold_factor() {
        let mut watch = Stopwatch::new(Stored::warming_up(5.0, 4 * SECOND, 10.0));
        watch.times(8);
        watch.sleep(4_200);
        watch.times(3);
        watch.limiter.set_rate(watch.now, 10.0).expect("a rate");
        watch.times(5);
        watch.sleep(4_100);
        watch.times(11);
        watch.saw(&[
            "R0.00, R1.75, R1.26, R0.76, R0.30, R0.20, R0.20, R0.20",
            "U4.20",
            "R0.00, R1.75, R1.26",
            "R0.76",
            "R0.20, R0.10, R0.10, R0.10",
            "U4.10",
            "R0.00, R0.94, R0.81, R0.69, R0.57, R0.44, R0.32",
            "R0.20, R0.10, R0.10, R0.10",
        ]);
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        for rate in [0.0, -10.0, f64::NAN, f64::INFINITY, 1e-320, f64::MAX] {
            let error = Stored::bursty(rate, SECOND).unwrap_err().to_string();
            assert!(error.contains(&format!("the rate is {rate:?}, but")), "{error}");
            assert!(Stopwatch::bursty(1.0).limiter.set_rate(SECOND, rate).is_err(), "{rate}");
        }
        let long = Duration::from_secs(90_000);
        assert!(Stored::bursty(1.0, long).is_err() && Stored::warming_up(1.0, long, 3.0).is_err());
        assert!(Stored::warming_up(1.0, Duration::ZERO, 3.0).is_err());
        for cold in [0.9, f64::NAN, 1e9, 1e-320, f64::MAX] {
            let error = Stored::warming_up(1.0, SECOND, cold).unwrap_err().to_string();
            assert!(error.contains(&format!("the cold factor is {cold:?}, but")), "{error}");
        }
    }
}
