//! The circuit breaker: a server that keeps failing is not asked for a while, then by one at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::backoff::Backoff;

/// What a breaker opens by, and for how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// Consecutive failures that open it; none ever do if zero.
    pub(crate) failures: u32,
    pub(crate) backoff: Backoff,
}

/// Whether a server is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BreakerState {
    /// The server is asked.
    #[default]
    Closed,
    /// Nobody asks, or one does to find out whether it answers again.
    Open,
}

/// The state in one word: zero while closed; else when the next may find out whether the server answers, and
/// whether one does.
#[derive(Debug)]
pub(crate) struct Breaker {
    settings: Settings,
    until: AtomicU64,
    /// Failures since the last success.
    failed: AtomicU32,
    /// Times that it opened, or stayed open after a probe, since the server was last trusted.
    opened: AtomicU32,
    /// Answers in time since it was closed, counted until the server is trusted again.
    answered: AtomicU32,
}

const CLOSED: u64 = 0;

/// Set while one is finding out: until when no other does.
const CLAIMED: u64 = 1 << 63;

/// For each failure that opens it, the answers in time after which a server that was shut out is trusted
/// again. Until then its pauses go on growing, so that a server which answers now and then does not cost a
/// handful of slow requests every time that its shortest pause ends.
const TRUST: u32 = 10;

/// The leave to ask. Dropped without a report, it says nothing about the server.
#[derive(Debug)]
pub(crate) struct Permit {
    breaker: Arc<Breaker>,
    asked: u64,
    /// Of one that is to find out: the state that it made of the breaker's. [`CLOSED`] of any other.
    claimed: u64,
    reported: bool,
}

/// What a report changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    Opened(Duration),
    Closed,
    Stayed,
}

impl Breaker {
    pub(crate) const fn new(settings: Settings) -> Self {
        Self {
            settings,
            until: AtomicU64::new(CLOSED),
            failed: AtomicU32::new(0),
            opened: AtomicU32::new(0),
            answered: AtomicU32::new(0),
        }
    }

    /// Leave to ask at `now`, unless it is open, or another is finding out already.
    pub(crate) fn enter(self: &Arc<Self>, now: u64) -> Option<Permit> {
        let until = self.until.load(Ordering::Relaxed);
        let mut claimed = CLOSED;
        if until != CLOSED {
            if now < until & !CLAIMED {
                return None;
            }
            // One that never comes back must not keep the others out for ever.
            claimed = later(now, self.settings.backoff.longest) | CLAIMED;
            self.turn(until, claimed).then_some(())?;
        }
        Some(Permit { breaker: Arc::clone(self), asked: now, claimed, reported: false })
    }

    pub(crate) fn state(&self) -> BreakerState {
        match self.until.load(Ordering::Relaxed) {
            CLOSED => BreakerState::Closed,
            _ => BreakerState::Open,
        }
    }

    /// How long nobody needs a connection, from `now` on; the one that finds out does need it.
    pub(crate) fn pause(&self, now: u64) -> Option<Duration> {
        let until = self.until.load(Ordering::Relaxed);
        let waits = until & CLAIMED == 0 && now < until;
        waits.then(|| Duration::from_micros(until - now))
    }

    /// Nobody needs to find out for `wait`: it is known that there is no connection until then.
    pub(crate) fn put_off(&self, now: u64, wait: Duration) {
        let until = self.until.load(Ordering::Relaxed);
        if until != CLOSED && (until & CLAIMED != 0 || until < later(now, wait)) {
            self.turn(until, later(now, wait));
        }
    }

    /// Whether nobody may ask at `now`.
    pub(crate) fn is_shut(&self, now: u64) -> bool {
        let until = self.until.load(Ordering::Relaxed);
        now < until & !CLAIMED
    }

    /// The server answered in time. While it is open, only the one that finds out is believed: any other was
    /// asked before, when the server was well.
    fn succeed(&self, claimed: u64) -> Turn {
        if self.until.load(Ordering::Relaxed) == CLOSED {
            if self.failed.load(Ordering::Relaxed) != 0 {
                self.failed.store(0, Ordering::Relaxed);
            }
            self.trust();
            return Turn::Stayed;
        }
        if claimed == CLOSED {
            return Turn::Stayed;
        }
        self.failed.store(0, Ordering::Relaxed);
        self.answered.store(0, Ordering::Relaxed);
        match self.turn(claimed, CLOSED) {
            true => Turn::Closed,
            false => Turn::Stayed,
        }
    }

    fn trust(&self) {
        if self.opened.load(Ordering::Relaxed) == 0 {
            return;
        }
        let answered = self.answered.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if answered >= self.settings.failures.saturating_mul(TRUST) {
            self.opened.store(0, Ordering::Relaxed);
        }
    }

    fn fail(&self, now: u64, claimed: u64) -> Turn {
        let failed = self.failed.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let enough = self.settings.failures != 0 && failed >= self.settings.failures;
        if claimed == CLOSED && !enough || self.until.load(Ordering::Relaxed) != claimed {
            return Turn::Stayed;
        }
        let opened = self.opened.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let wait = self.settings.backoff.after(opened);
        match self.turn(claimed, later(now, wait)) && claimed == CLOSED {
            true => Turn::Opened(wait),
            false => Turn::Stayed,
        }
    }

    /// Whether it was as `seen` until now.
    fn turn(&self, seen: u64, to: u64) -> bool {
        self.until.compare_exchange(seen, to, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// Any time but that of a closed one.
const AT_ONCE: u64 = 1;

fn later(now: u64, wait: Duration) -> u64 {
    let micros = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
    now.saturating_add(micros).clamp(AT_ONCE, CLAIMED - 1)
}

impl Permit {
    /// Whether this one is to find out if the server answers again.
    pub(crate) const fn is_probe(&self) -> bool {
        self.claimed != CLOSED
    }

    /// The server answered in time, whatever it said.
    pub(crate) fn succeed(&mut self) -> Turn {
        if std::mem::replace(&mut self.reported, true) {
            return Turn::Stayed;
        }
        self.breaker.succeed(self.claimed)
    }

    /// The server failed.
    pub(crate) fn fail(&mut self, now: u64) -> Turn {
        if std::mem::replace(&mut self.reported, true) {
            return Turn::Stayed;
        }
        self.breaker.fail(now, self.claimed)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.is_probe() && !self.reported {
            self.breaker.turn(self.claimed, self.asked.max(AT_ONCE));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;
    const NOW: u64 = 1_000 * SECOND;

    fn breaker(failures: u32) -> Arc<Breaker> {
        let backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(8) };
        Arc::new(Breaker::new(Settings { failures, backoff }))
    }

    fn fail(breaker: &Arc<Breaker>, now: u64) -> Turn {
        breaker.enter(now).expect("closed, or time to try").fail(now)
    }

    fn opened() -> Arc<Breaker> {
        let breaker = breaker(3);
        assert_eq!(fail(&breaker, NOW), Turn::Stayed);
        assert_eq!(fail(&breaker, NOW), Turn::Stayed);
        assert!(matches!(fail(&breaker, NOW), Turn::Opened(_)));
        breaker
    }

    #[test]
    fn consecutive_failures_open_it() {
        let breaker = opened();
        assert_eq!(breaker.state(), BreakerState::Open);
        assert!(breaker.enter(NOW).is_none());
        assert!(breaker.enter(NOW + SECOND / 2 - 1).is_none());
        assert!(breaker.enter(NOW + SECOND).is_some());
    }

    #[test]
    fn a_success_in_between_starts_the_count_again() {
        let breaker = breaker(3);
        for _ in 0..10 {
            fail(&breaker, NOW);
            fail(&breaker, NOW);
            breaker.enter(NOW).expect("closed").succeed();
        }
        assert_eq!(breaker.state(), BreakerState::Closed);
    }

    #[test]
    fn one_at_a_time_finds_out() {
        let breaker = opened();
        let now = NOW + SECOND;
        let probe = breaker.enter(now).expect("time to try");
        assert!(breaker.enter(now + 8 * SECOND - 1).is_none());
        drop(probe);
        assert!(breaker.enter(now).is_some(), "one that found out nothing leaves it to the next");
    }

    #[test]
    fn one_that_never_comes_back_leaves_it_to_another() {
        let breaker = opened();
        let now = NOW + SECOND;
        let mut lost = breaker.enter(now).expect("time to try");
        let mut next = breaker.enter(now + 8 * SECOND).expect("time to try again");
        assert_eq!(next.succeed(), Turn::Closed);
        assert_eq!(lost.fail(now + 9 * SECOND), Turn::Stayed);
        assert_eq!(breaker.state(), BreakerState::Closed);
    }

    #[test]
    fn a_probe_that_succeeds_closes_it() {
        let breaker = opened();
        let mut probe = breaker.enter(NOW + SECOND).expect("time to try");
        assert_eq!(probe.succeed(), Turn::Closed);
        drop(probe);
        assert_eq!(breaker.state(), BreakerState::Closed);
        assert_eq!(fail(&breaker, NOW), Turn::Stayed, "the count starts again");
    }

    #[test]
    fn a_probe_that_fails_keeps_it_open_for_longer() {
        let breaker = opened();
        let mut now = NOW;
        for longest in [1, 2, 4, 8, 8] {
            assert!(breaker.enter(now + longest * SECOND / 2 - 1).is_none());
            now += longest * SECOND;
            assert_eq!(fail(&breaker, now), Turn::Stayed);
        }
    }

    #[test]
    fn who_was_on_the_way_when_it_opened_does_not_open_it_again() {
        let breaker = breaker(1);
        let mut late: Vec<_> = (0..5).map(|_| breaker.enter(NOW).expect("closed")).collect();
        let opened =
            late.iter_mut().map(|late| late.fail(NOW)).filter(|turn| *turn != Turn::Stayed).count();
        assert_eq!(opened, 1);
        assert!(breaker.enter(NOW + SECOND).is_some(), "its time has not been put off");
    }

    #[test]
    fn an_answer_to_a_question_from_before_it_opened_does_not_close_it() {
        let breaker = breaker(1);
        let mut slow = breaker.enter(NOW).expect("closed");
        let mut late = breaker.enter(NOW).expect("closed");
        slow.fail(NOW);
        assert_eq!(late.succeed(), Turn::Stayed);
        assert_eq!(breaker.state(), BreakerState::Open);
        assert!(breaker.enter(NOW).is_none());
    }

    #[test]
    fn a_probe_whose_turn_has_passed_to_another_does_not_close_it() {
        let breaker = opened();
        let now = NOW + SECOND;
        let mut lost = breaker.enter(now).expect("time to try");
        let mut next = breaker.enter(now + 8 * SECOND).expect("time to try again");
        assert_eq!(lost.succeed(), Turn::Stayed);
        assert_eq!(next.succeed(), Turn::Closed);
    }

    /// Closed by a lucky answer, and opened by the next ones: its pauses go on growing.
    #[test]
    fn a_server_that_answers_now_and_then_is_asked_less_and_less() {
        let breaker = opened();
        let mut now = NOW;
        for longest in [1, 2, 4, 8, 8] {
            assert!(breaker.enter(now + longest * SECOND / 2 - 1).is_none());
            now += longest * SECOND;
            assert_eq!(breaker.enter(now).expect("time to try").succeed(), Turn::Closed);
            for _ in 0..3 {
                fail(&breaker, now);
            }
        }
    }

    #[test]
    fn a_server_that_has_answered_for_long_enough_is_trusted_again() {
        let breaker = opened();
        assert_eq!(fail(&breaker, NOW + SECOND), Turn::Stayed);
        let now = NOW + 4 * SECOND;
        for _ in 0..=3 * TRUST {
            breaker.enter(now).expect("it answers").succeed();
        }
        for _ in 0..3 {
            fail(&breaker, now);
        }
        assert!(breaker.enter(now + SECOND).is_some(), "the shortest pause");
    }

    #[test]
    fn who_finds_out_needs_a_connection_and_nobody_else_does() {
        let breaker = opened();
        assert!(breaker.pause(NOW).is_some());
        assert_eq!(breaker.pause(NOW + SECOND), None);
        let mut probe = breaker.enter(NOW + SECOND).expect("time to try");
        assert_eq!(breaker.pause(NOW + SECOND), None);
        probe.fail(NOW + SECOND);
        assert!(breaker.pause(NOW + SECOND).is_some());
    }

    #[test]
    fn while_there_is_no_connection_nobody_finds_out() {
        let breaker = opened();
        breaker.put_off(NOW + SECOND, Duration::from_secs(1));
        assert!(breaker.enter(NOW + 2 * SECOND - 1).is_none());
        breaker.put_off(NOW + SECOND, Duration::from_millis(1));
        assert!(breaker.enter(NOW + 2 * SECOND - 1).is_none(), "it is not put forward");
        assert!(breaker.enter(NOW + 2 * SECOND).is_some());
    }

    #[test]
    fn without_a_number_of_failures_it_never_opens() {
        let breaker = breaker(0);
        for _ in 0..100 {
            assert_eq!(fail(&breaker, NOW), Turn::Stayed);
        }
        assert!(breaker.enter(NOW).is_some());
    }
}
