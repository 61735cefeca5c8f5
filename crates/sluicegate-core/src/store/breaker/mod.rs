//! The circuit breaker of a server. After several failures in a row no calls are sent for a while, then one at a time.
//!
//! The state is one atomic word, and is read before anything is allocated for a request. The breaker opens after
//! consecutive failures of the server; a wrong row, a moving slot and a failed script do not count. Then one request at a
//! time probes the server, after pauses that double up to a bound. Half of each pause is random, so that processes do not
//! return together. A probe that never returns loses its turn after the longest pause. Only the answer to a probe within
//! the deadline closes the breaker; late answers and answers to earlier calls do not. Then no more calls are under way
//! than can open it again, and one more for each answer. A probe that times out, and the time-out that opens the breaker,
//! also replace the connection. No connection is made before the pause has ended, because a successful connect is no sign
//! of health.
//!
//! What breaks a connection fails every call on it. That is one failure, however many calls there are. Otherwise each
//! reconnect of a busy process would open the breaker.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Whether calls are sent to a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BreakerState {
    /// Calls are sent.
    #[default]
    Closed,
    /// The server keeps failing: no calls are sent, except one at a time to probe it.
    Open,
}

/// After how many failures a breaker opens, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct BreakerSettings {
    /// Consecutive failures after which it opens; if zero, it never does.
    pub failures: u32,
    /// How long it stays open.
    pub backoff: Backoff,
}

/// A circuit breaker. Its state is one word: `CLOSED`, or the time of the next probe, with `CLAIMED` while a probe is
/// under way.
#[derive(Debug)]
pub struct Breaker {
    settings: BreakerSettings,
    until: AtomicU64,
    /// Failures since the last success.
    failed: AtomicU32,
    /// Times that it opened, or stayed open after a probe, since the server was last healthy.
    opened: AtomicU32,
    /// Answers in time since it was closed, counted until the server is healthy again.
    answered: AtomicU32,
    /// Calls that were let through since then and have not ended.
    under_way: AtomicU32,
    /// Connections whose failure was counted, as one more than the number of the last.
    lost: AtomicU64,
}

const CLOSED: u64 = 0;

/// Set while a probe is under way. The time is then when another may be sent.
const CLAIMED: u64 = 1 << 63;

/// For each failure that opens it, the number of answers in time after which a server is healthy again. Until then its
/// pauses keep growing. Otherwise a server that answers now and then would cost several slow requests after every
/// shortest pause.
const HEALTHY_AFTER: u32 = 10;

/// Permission for one call. Dropped without a report, it says nothing about the server.
#[derive(Debug)]
pub struct Permit {
    breaker: Arc<Breaker>,
    asked: u64,
    /// For a probe, the breaker's state that it set; [`CLOSED`] for any other call.
    claimed: u64,
    /// Whether it is one of those under way while the server is not healthy yet.
    counted: bool,
    reported: bool,
}

/// What a report changed in the breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transition {
    /// It opened, for this time.
    Opened(Duration),
    /// It closed.
    Closed,
    /// It is as it was.
    Stayed,
}

impl Breaker {
    /// A closed breaker.
    pub const fn new(settings: BreakerSettings) -> Self {
        Self {
            settings,
            until: AtomicU64::new(CLOSED),
            failed: AtomicU32::new(0),
            opened: AtomicU32::new(0),
            answered: AtomicU32::new(0),
            under_way: AtomicU32::new(0),
            lost: AtomicU64::new(0),
        }
    }

    /// A permit at `now`, unless the breaker is open or a probe is under way, or it has been closed lately and too many
    /// calls are under way.
    pub fn enter(self: &Arc<Self>, now: u64) -> Option<Permit> {
        let until = self.until.load(Ordering::Relaxed);
        let mut claimed = CLOSED;
        if until != CLOSED {
            if now < until & !CLAIMED {
                return None;
            }
            // A probe that never reports must not block others for ever.
            claimed = later(now, self.settings.backoff.longest) | CLAIMED;
            self.turn(until, claimed).then_some(())?;
        }
        let counted = until == CLOSED && self.opened.load(Ordering::Relaxed) != 0;
        if counted {
            self.join().then_some(())?;
        }
        Some(Permit { breaker: Arc::clone(self), asked: now, claimed, counted, reported: false })
    }

    /// Counts one more call that is under way: at first as many as can open the breaker, and one more for each answer.
    /// Otherwise all that come in the time of a deadline would wait for a server that answered its probe and nothing else.
    fn join(&self) -> bool {
        // As many as may fail without opening it again: a server that is well shows it by answering them.
        let most = self.answered.load(Ordering::Relaxed).saturating_add(self.settings.failures);
        let more = |under_way| (under_way < most).then_some(under_way + 1);
        self.under_way.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Whether calls are sent.
    pub fn state(&self) -> BreakerState {
        match self.until.load(Ordering::Relaxed) {
            CLOSED => BreakerState::Closed,
            _ => BreakerState::Open,
        }
    }

    /// How long no connection is needed from `now`. A probe needs one.
    pub fn pause(&self, now: u64) -> Option<Duration> {
        let until = self.until.load(Ordering::Relaxed);
        let waits = until & CLAIMED == 0 && now < until;
        waits.then(|| Duration::from_micros(until - now))
    }

    /// Postpones the next probe by `wait`, because there is no connection until then.
    pub fn put_off(&self, now: u64, wait: Duration) {
        let until = self.until.load(Ordering::Relaxed);
        if until != CLOSED && (until & CLAIMED != 0 || until < later(now, wait)) {
            self.turn(until, later(now, wait));
        }
    }

    /// Whether no call may be sent at `now`.
    pub fn is_shut(&self, now: u64) -> bool {
        let until = self.until.load(Ordering::Relaxed);
        now < until & !CLAIMED
    }

    /// The server answered in time. While the breaker is open, only a probe counts: other calls were sent before it
    /// opened.
    fn succeed(&self, claimed: u64) -> Transition {
        if self.until.load(Ordering::Relaxed) == CLOSED {
            if self.failed.load(Ordering::Relaxed) != 0 {
                self.failed.store(0, Ordering::Relaxed);
            }
            self.count_answer();
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

    fn count_answer(&self) {
        if self.opened.load(Ordering::Relaxed) == 0 {
            return;
        }
        // The server counts as healthy after this number of answers. From then on calls are not counted, because all
        // threads would write to the one counter.
        let answered = self.answered.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if answered >= self.settings.failures.saturating_mul(HEALTHY_AFTER) {
            self.opened.store(0, Ordering::Relaxed);
        }
    }

    /// Whether the failure of this connection, or of a later one, was counted before.
    fn has_counted(&self, connection: Option<u64>) -> bool {
        connection.is_some_and(|number| {
            let next = number.saturating_add(1);
            // Numbers of connections grow, so one maximum remembers all that were counted before.
            self.lost.fetch_max(next, Ordering::Relaxed) >= next
        })
    }

    fn fail(&self, now: u64, claimed: u64, connection: Option<u64>) -> Transition {
        if self.has_counted(connection) && claimed == CLOSED {
            return Transition::Stayed;
        }
        let failed = self.failed.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let enough = self.settings.failures != 0 && failed >= self.settings.failures;
        // A call from before the breaker opened must not prolong its pause, and a probe that was replaced must not end it.
        if claimed == CLOSED && !enough || self.until.load(Ordering::Relaxed) != claimed {
            return Transition::Stayed;
        }
        // Counted even if another thread turns the word first: a pause that is one step too long does no harm.
        let opened = self.opened.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let wait = self.settings.backoff.after(opened);
        match self.turn(claimed, later(now, wait)) && claimed == CLOSED {
            true => Transition::Opened(wait),
            false => Transition::Stayed,
        }
    }

    /// Changes the state, if it still is `seen`.
    fn turn(&self, seen: u64, to: u64) -> bool {
        self.until.compare_exchange(seen, to, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// The earliest time that differs from [`CLOSED`].
const AT_ONCE: u64 = 1;

fn later(now: u64, wait: Duration) -> u64 {
    let micros = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
    now.saturating_add(micros).clamp(AT_ONCE, CLAIMED - 1)
}

impl Permit {
    /// Whether this call probes whether the server answers again.
    pub const fn is_probe(&self) -> bool {
        self.claimed != CLOSED
    }

    /// The server answered in time.
    pub fn succeed(&mut self) -> Transition {
        if std::mem::replace(&mut self.reported, true) {
            return Transition::Stayed;
        }
        self.breaker.succeed(self.claimed)
    }

    /// The server failed. A failure that all calls on a connection share comes with the number of that connection.
    pub fn fail(&mut self, now: u64, connection: Option<u64>) -> Transition {
        if std::mem::replace(&mut self.reported, true) {
            return Transition::Stayed;
        }
        self.breaker.fail(now, self.claimed, connection)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.counted {
            self.breaker.under_way.fetch_sub(1, Ordering::Relaxed);
        }
        if self.is_probe() && !self.reported {
            // The probe was dropped without an answer. Its turn goes to the next request at once.
            self.breaker.turn(self.claimed, self.asked.max(AT_ONCE));
        }
    }
}

/// Pauses from `first`, twice as long each time, up to `longest`.
#[derive(Debug, Clone, Copy)]
pub struct Backoff {
    /// The first pause.
    pub first: Duration,
    /// The longest pause.
    pub longest: Duration,
}

impl Backoff {
    /// The pause after `failed` attempts. Up to half of it is random, so that clients that lost their server at one moment
    /// do not all return at one moment.
    pub fn after(self, failed: u32) -> Duration {
        let half = self.whole(failed) / 2;
        // Every `RandomState` differs from all others; the upper 32 bits of its hash are a fraction.
        let random = RandomState::new().hash_one(failed) >> 32;
        half + half.mul_f64(random as f64 / (1_u64 << 32) as f64)
    }

    /// The pause after `failed` attempts without its random part, which callers subtract as they like.
    pub fn whole(self, failed: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(failed.saturating_sub(1));
        self.first.saturating_mul(doubled).min(self.longest)
    }
}

#[cfg(test)]
mod tests;
