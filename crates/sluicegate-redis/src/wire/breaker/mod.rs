//! The circuit breaker: a server that keeps failing is not asked for a while, then by one at a time.
//!
//! The breaker is one atomic word and is asked before anything is made of a request. It opens after
//! consecutive failures of the server; a wrong row, a moving slot and a failed script do not count. Then
//! one request at a time finds out, after pauses that double up to a bound, half of each random so that
//! processes do not come back together. A request that finds out and never returns loses its turn after the
//! longest pause. Only an answer to that request within the deadline closes the breaker; late answers, and
//! answers to earlier questions, do not. A failure by silence that opens the breaker, or meets it open,
//! also replaces the connection, but nobody connects before the pause has ended, because a connection is no
//! sign of health.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::observe::counts::BreakerState;
use crate::wire::backoff::Backoff;

/// What a breaker opens by, and for how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BreakerSettings {
    /// Consecutive failures that open it; none ever do if zero.
    pub(crate) failures: u32,
    pub(crate) backoff: Backoff,
}

/// The state in one word: zero while closed; else when the next may find out whether the server answers, and
/// whether one does.
#[derive(Debug)]
pub(crate) struct Breaker {
    settings: BreakerSettings,
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
pub(crate) enum Transition {
    Opened(Duration),
    Closed,
    Stayed,
}

impl Breaker {
    pub(crate) const fn new(settings: BreakerSettings) -> Self {
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
    fn succeed(&self, claimed: u64) -> Transition {
        if self.until.load(Ordering::Relaxed) == CLOSED {
            if self.failed.load(Ordering::Relaxed) != 0 {
                self.failed.store(0, Ordering::Relaxed);
            }
            self.trust();
            return Transition::Stayed;
        }
        if claimed == CLOSED {
            return Transition::Stayed;
        }
        self.failed.store(0, Ordering::Relaxed);
        self.answered.store(0, Ordering::Relaxed);
        match self.turn(claimed, CLOSED) {
            true => Transition::Closed,
            false => Transition::Stayed,
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

    fn fail(&self, now: u64, claimed: u64) -> Transition {
        let failed = self.failed.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let enough = self.settings.failures != 0 && failed >= self.settings.failures;
        if claimed == CLOSED && !enough || self.until.load(Ordering::Relaxed) != claimed {
            return Transition::Stayed;
        }
        let opened = self.opened.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let wait = self.settings.backoff.after(opened);
        match self.turn(claimed, later(now, wait)) && claimed == CLOSED {
            true => Transition::Opened(wait),
            false => Transition::Stayed,
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
    pub(crate) fn succeed(&mut self) -> Transition {
        if std::mem::replace(&mut self.reported, true) {
            return Transition::Stayed;
        }
        self.breaker.succeed(self.claimed)
    }

    /// The server failed.
    pub(crate) fn fail(&mut self, now: u64) -> Transition {
        if std::mem::replace(&mut self.reported, true) {
            return Transition::Stayed;
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
mod tests;
