use std::time::Duration;

/// Parts that the window is counted in. With 24, it slides in steps of 5 seconds.
const PARTS: usize = 24;

/// How many requests a program wanted to send to a server in the last two minutes, how many of them were accepted, and
/// whether the server is back.
///
/// No clock: the time is passed in, in microseconds.
#[derive(Debug, Clone)]
pub(super) struct History {
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
    pub(super) fn new(window: Duration) -> Self {
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
    pub(super) fn request(&mut self, now: u64) {
        let part = self.part(now);
        part.requests = part.requests.saturating_add(1);
        self.total.requests = self.total.requests.saturating_add(1);
    }

    /// Notes that the server accepted a request.
    pub(super) fn accept(&mut self, now: u64) {
        self.note(now, true);
        let part = self.part(now);
        part.accepts = part.accepts.saturating_add(1);
        self.total.accepts = self.total.accepts.saturating_add(1);
    }

    /// Notes that the server rejected a request, or did not answer it.
    pub(super) fn reject(&mut self, now: u64) {
        self.note(now, false);
        let part = self.part(now);
        part.rejects = part.rejects.saturating_add(1);
        self.total.rejects = self.total.rejects.saturating_add(1);
    }

    /// The share of requests to reject: `max(0, (requests − k · accepts) / (requests + 1))`, or less while requests are
    /// accepted again.
    pub(super) fn rejection(&mut self, now: u64, k: f64) -> f64 {
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
    pub(super) fn is_empty(&self, now: u64) -> bool {
        now / self.length >= self.latest + PARTS as u64 || self.total.requests == 0
    }

    /// Requests in the window.
    pub(super) const fn requests(&self) -> u32 {
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

/// Whether a server that has rejected much is back, by what becomes of the requests that are sent to it.
///
/// Accepted requests are evidence: each one counts for as much as it would have been unlikely for the server of the last
/// minutes, of which the share of accepted requests is known. A rejected one takes evidence away. Once there is enough,
/// and it has lasted for [`PROOF`], the share that is sent doubles with each step. Evidence that is gone ends that at
/// once.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Recovery {
    /// The logarithm of how much likelier the last requests are from a server that is back.
    evidence: f64,
    /// Since when there is any.
    since: u64,
    step: Step,
    /// Steps in which the server has accepted nearly everything.
    steps: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Step {
    began: u64,
    accepts: u32,
    rejects: u32,
}

/// The share that a server accepts that is back.
const BACK: f64 = 0.9;

/// Evidence that is enough: 64 to 1.
const ENOUGH: f64 = 4.2;

/// The most that one request counts for, so that none is enough alone.
const MOST: f64 = ENOUGH / 2.0;

/// How long a server accepts before more is sent, in microseconds. One that counts by the second accepts at the beginning
/// of each.
const PROOF: u64 = 2_000_000;

/// Microseconds of a step.
const STEP: u64 = 500_000;

/// Doublings from [`LEAST`] to everything; then the failures are forgotten. With [`PROOF`], that takes four and a half
/// seconds, or nine at a request a second.
const STEPS: u32 = 5;

/// The share that a doubling begins at, if less is sent.
const LEAST: f64 = 0.05;

impl Recovery {
    /// Notes what became of a request to a server that has accepted this share. True if the server is back.
    pub(super) fn note(&mut self, now: u64, is_accepted: bool, share: f64) -> bool {
        // A server that has accepted nothing yet must not make one success certain, nor one that accepts most of them make
        // successes worthless.
        let share = share.clamp(0.001, 0.8);
        if self.evidence == 0.0 {
            *self = Self {
                since: now,
                step: Step { began: now, ..Step::default() },
                ..Self::default()
            };
        }
        let count = match is_accepted {
            true => &mut self.step.accepts,
            false => &mut self.step.rejects,
        };
        *count = count.saturating_add(1);
        let counts = match is_accepted {
            true => (BACK / share).ln().min(MOST),
            false => ((1.0 - BACK) / (1.0 - share)).ln(),
        };
        self.evidence = (self.evidence + counts).clamp(0.0, 2.0 * ENOUGH);
        if self.evidence == 0.0 {
            self.steps = 0;
        }
        let is_proven = self.evidence >= ENOUGH && now.saturating_sub(self.since) >= PROOF;
        if is_proven && now.saturating_sub(self.step.began) >= STEP {
            let Step { accepts, rejects, .. } = self.step;
            // A step that went badly halves the speed instead of ending it: a server that warms up rejects some.
            self.steps = if rejects <= accepts / 4 { self.steps + 1 } else { self.steps / 2 };
            self.step = Step { began: now, ..Step::default() };
        }
        let is_back = self.steps >= STEPS;
        if is_back {
            *self = Self::default();
        }
        is_back
    }

    /// The share to reject, where it would be `rejection` otherwise.
    pub(super) fn relieve(&self, rejection: f64) -> f64 {
        match self.steps {
            0 => rejection,
            steps => (1.0 - (1.0 - rejection).max(LEAST) * f64::from(1_u32 << steps)).max(0.0),
        }
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
