use std::time::Duration;

use super::recovery::Recovery;

/// Parts that the window is counted in. With 24, it slides in steps of 5 seconds.
const PARTS: usize = 24;

/// How many requests a program wanted to send to a server in the last two minutes, how many of them were accepted, and
/// whether the server is back.
///
/// No clock: the time is passed in, in microseconds.
///
/// ```
/// use std::time::Duration;
/// use sluicegate_client::throttle::History;
///
/// let mut history = History::new(Duration::from_secs(120));
/// for _ in 0..99 {
///     history.request(0);
/// }
/// // Nothing was accepted: 99 of 100 are not sent.
/// assert_eq!(history.rejection(0, 2.0), 0.99);
/// for _ in 0..50 {
///     history.accept(0);
/// }
/// assert_eq!(history.rejection(0, 2.0), 0.0);
/// ```
#[derive(Debug, Clone)]
pub struct History {
    parts: [Part; PARTS],
    /// Microseconds of a part.
    length: u64,
    /// The number of the latest part since the clock began.
    latest: u64,
    total: Part,
    recovery: Recovery,
}

#[derive(Debug, Clone, Copy, Default)]
struct Part {
    requests: u32,
    accepts: u32,
    rejects: u32,
}

impl History {
    /// An empty history that goes back by `window`.
    pub fn new(window: Duration) -> Self {
        let length = (window.as_micros() as u64 / PARTS as u64).max(1);
        Self {
            parts: [Part::default(); PARTS],
            length,
            latest: 0,
            total: Part::default(),
            recovery: Recovery::default(),
        }
    }

    /// Notes that a request was wanted, whether or not it is sent.
    pub fn request(&mut self, now: u64) {
        let part = self.part(now);
        part.requests = part.requests.saturating_add(1);
        self.total.requests = self.total.requests.saturating_add(1);
    }

    /// Notes that the server accepted a request.
    pub fn accept(&mut self, now: u64) {
        self.note(now, true);
        let part = self.part(now);
        part.accepts = part.accepts.saturating_add(1);
        self.total.accepts = self.total.accepts.saturating_add(1);
    }

    /// Notes that the server rejected a request, or did not answer it.
    pub fn reject(&mut self, now: u64) {
        self.note(now, false);
        let part = self.part(now);
        part.rejects = part.rejects.saturating_add(1);
        self.total.rejects = self.total.rejects.saturating_add(1);
    }

    /// The share of requests to reject: `max(0, (requests − k · accepts) / (requests + 1))`, or less while requests are
    /// accepted again.
    pub fn rejection(&mut self, now: u64, k: f64) -> f64 {
        self.part(now);
        let (requests, accepts) = (f64::from(self.total.requests), f64::from(self.total.accepts));
        let rejection = ((requests - k * accepts) / (requests + 1.0)).max(0.0);
        self.recovery.relieve(rejection)
    }

    fn note(&mut self, now: u64, is_accepted: bool) {
        self.part(now);
        if self.recovery.note(now, is_accepted, self.accepted_share()) {
            self.forget_failures();
        }
    }

    /// The share of the requests that were sent that was accepted, as far as it is known.
    fn accepted_share(&self) -> f64 {
        let (accepts, rejects) = (f64::from(self.total.accepts), f64::from(self.total.rejects));
        (accepts + 0.5) / (accepts + rejects + 1.0)
    }

    /// Goes on as if only those requests had been wanted that were accepted.
    fn forget_failures(&mut self) {
        for part in self.parts.iter_mut().chain([&mut self.total]) {
            *part = Part { requests: part.accepts, accepts: part.accepts, rejects: 0 };
        }
    }

    /// Whether nothing is known.
    pub fn is_empty(&self, now: u64) -> bool {
        now / self.length >= self.latest + PARTS as u64 || self.total.requests == 0
    }

    /// Requests in the window.
    pub const fn requests(&self) -> u32 {
        self.total.requests
    }

    /// The part of `now`, after those that are too old are emptied. Where the clock went back, the latest part.
    fn part(&mut self, now: u64) -> &mut Part {
        let number = now / self.length;
        let passed = number.saturating_sub(self.latest);
        if passed > 0 {
            for step in 1..=passed.min(PARTS as u64) {
                let at = ((self.latest + step) % PARTS as u64) as usize;
                let old = std::mem::take(&mut self.parts[at]);
                self.total.requests = self.total.requests.saturating_sub(old.requests);
                self.total.accepts = self.total.accepts.saturating_sub(old.accepts);
                self.total.rejects = self.total.rejects.saturating_sub(old.rejects);
            }
            self.latest = number;
        }
        &mut self.parts[(self.latest % PARTS as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    fn history() -> History {
        History::new(Duration::from_secs(120))
    }

    /// Wants `rate` requests a second for `seconds` from a server that accepts `capacity`, and rejects `most` of them at
    /// most; those sent in the last second.
    fn sent_at_most(
        history: &mut History,
        (from, seconds): (u64, u64),
        rate: u64,
        capacity: u64,
        most: f64,
    ) -> u64 {
        let mut random = fastrand::Rng::with_seed(3);
        let mut sent = 0;
        for second in from..from + seconds {
            sent = 0;
            for number in 0..rate {
                let now = second * SECOND + number * SECOND / rate;
                let rejection = history.rejection(now, 2.0).min(most);
                history.request(now);
                if random.f64() >= rejection {
                    sent += 1;
                    match sent <= capacity {
                        true => history.accept(now),
                        false => history.reject(now),
                    }
                }
            }
        }
        sent
    }

    fn sent(history: &mut History, from: u64, seconds: u64, rate: u64, capacity: u64) -> u64 {
        sent_at_most(history, (from, seconds), rate, capacity, 1.0)
    }

    #[test]
    fn a_server_that_accepts_everything_gets_everything() {
        assert_eq!(sent(&mut history(), 0, 300, 100, 100), 100);
        assert_eq!(sent(&mut history(), 0, 300, 100, 50), 100);
    }

    #[test]
    fn an_overloaded_server_gets_about_twice_what_it_accepts() {
        let sent = sent(&mut history(), 0, 300, 1_000, 50);
        assert!((80..=130).contains(&sent), "{sent}");
    }

    #[test]
    fn a_server_that_is_down_gets_next_to_nothing() {
        assert!(sent(&mut history(), 0, 300, 1_000, 0) <= 5);
    }

    #[test]
    fn a_server_that_is_back_gets_everything_within_seconds() {
        for outage in [10, 120, 600] {
            for (rate, accepts) in [(1_000, 0), (100, 0), (20, 0), (100, 10), (100, 40)] {
                let mut history = history();
                sent_at_most(&mut history, (0, outage), rate, accepts, 0.95);
                let sent = sent_at_most(&mut history, (outage, 10), rate, rate, 0.95);
                assert_eq!(
                    sent, rate,
                    "{rate} a second, {accepts} of them accepted for {outage} s"
                );
            }
        }
    }

    #[test]
    fn a_server_that_counts_by_the_second_is_not_taken_for_one_that_is_back() {
        // It accepts the first 50 of each second. Twice as many are sent, and few more.
        let mut history = history();
        let sent: u64 = (0..300)
            .map(|second| sent_at_most(&mut history, (second, 1), 1_000, 50, 0.95))
            .skip(60)
            .sum();
        assert!((240 * 80..240 * 140).contains(&sent), "{}", sent / 240);
    }

    #[test]
    fn what_is_older_than_two_minutes_is_forgotten() {
        let mut history = history();
        for second in 0..60 {
            history.request(second * SECOND);
        }
        assert!(history.rejection(100 * SECOND, 2.0) > 0.9);
        assert!(!history.is_empty(120 * SECOND));
        assert_eq!(history.rejection(185 * SECOND, 2.0), 0.0);
        assert!(history.is_empty(185 * SECOND));
        assert_eq!(history.rejection(u64::MAX, 2.0), 0.0);
    }

    #[test]
    fn a_clock_that_goes_back_is_no_harm() {
        let mut history = history();
        history.request(500 * SECOND);
        history.accept(10 * SECOND);
        assert_eq!(history.rejection(0, 2.0), 0.0);
        assert_eq!(history.requests(), 1);
    }
}
