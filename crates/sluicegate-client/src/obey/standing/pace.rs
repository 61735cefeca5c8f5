use super::window::Window;

/// The pace that a client finds for itself where the server does not say what is left.
///
/// A refusal makes the gap between requests longer, and each request that is served makes it shorter: by more, the longer
/// the gap and the more have been served since. In this way, many clients of one server come to send about as much as it
/// allows, each about the same. That is how TCP shares a line: additive increase, multiplicative decrease, and a growth that gets
/// quicker the longer nothing is lost.
///
/// What was not sent during a wait is made up for: a server that counts by windows would be idle otherwise. After a wait
/// that the server demanded it goes four times as fast as usual. A server that then refuses before half of that is served
/// takes few requests at once: from then on it goes twice as fast.
///
/// A server that counts by windows of about a second is another matter; see [`Window`].
///
/// The numbers are from simulations of 1 to 64 clients with 1 to 32 callers each that share 100 requests a second of
/// buckets and windows (`contention_tests.rs`, and `tests/all/contention.rs`).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pace {
    /// Microseconds between requests; 0 if they are sent as they come.
    gap: u64,
    /// When the next request would be sent if each had been sent at its time.
    due: u64,
    /// Requests that were served in the measured time.
    served: u64,
    /// When that began: with the last refusal, where there is a gap.
    since: Option<u64>,
    /// The last refusal did not say when to come back.
    is_untold: bool,
    /// Requests that were not sent during the last wait; 0 if the server did not demand it.
    owed: u64,
    /// The server takes few requests at once.
    takes_few: bool,
    /// When the next request may be sent.
    next: u64,
    window: Window,
}

const SECOND: u64 = 1_000_000;

/// Where refusals do not say when to come back, this time without one, in milliseconds, makes the growth larger by its first
/// step, and twice the time by four of them: other clients seem to have gone.
const UNREFUSED: u64 = 2_000;

/// What was served longer ago does not tell how fast requests come now, in microseconds.
const MEASURED: u64 = 10 * SECOND;

/// Fewer requests that were served tell nothing.
const ENOUGH: u64 = 3;

/// The longest gap, in microseconds.
const LONGEST: u64 = 10 * SECOND;

/// How far requests may be behind their time, to make up for it, in microseconds.
const BEHIND: u64 = 3 * SECOND;

/// Shorter gaps are none, in microseconds.
const SHORTEST: u64 = 1_000;

/// Where fewer requests wait to be made up for, it does not tell how many the server takes at once.
const TELLING: u64 = 4;

impl Pace {
    pub(super) const fn gap(&self) -> u64 {
        self.gap
    }

    /// Whether the client keeps to its share of windows.
    pub(super) const fn is_by_windows(&self) -> bool {
        self.window.applies()
    }

    /// When the next request may be sent, while this many are under way.
    pub(super) fn next(&mut self, now: u64, in_flight: u32) -> u64 {
        match () {
            () if self.window.applies() => self.window.next(now, in_flight),
            () if self.gap == 0 => now,
            () => self.next,
        }
    }

    /// Notes a request that is sent.
    pub(super) fn sent(&mut self, now: u64) {
        if self.window.applies() {
            return self.window.sent(now);
        }
        if self.gap == 0 {
            return;
        }
        self.due = self.due.max(now.saturating_sub(BEHIND)).saturating_add(self.gap);
        let times = if self.takes_few || self.owed == 0 { 2 } else { 4 };
        // A request that is behind its time goes sooner than the gap, but not together with the one before.
        self.next = self.due.max(now.saturating_add(self.gap / times));
    }

    /// Notes a request that was served.
    pub(super) fn served(&mut self, now: u64) {
        self.window.served(now);
        let since = *self.since.get_or_insert(now);
        if self.gap == 0 && now.saturating_sub(since) > MEASURED {
            (self.served, self.since) = (0, Some(now));
        }
        self.served += 1;
        if self.gap == 0 {
            return;
        }
        // In millionths: a bit more than a third of the seconds of the gap, from a thousandth to three tenths.
        let first = (7 * self.gap.min(SECOND) / 20).clamp(SECOND / 1_000, 3 * SECOND / 10);
        // It doubles in four requests, or in a second, and goes on to grow by the square.
        let (served, usual) = (self.served.min(1 << 16), (SECOND / self.gap).max(4));
        let mut growth = first + first * served * served / (usual * usual);
        if self.is_untold {
            let unrefused = now.saturating_sub(since).min(60 * SECOND) / 1_000;
            growth += first * unrefused * unrefused / (UNREFUSED * UNREFUSED);
        }
        let growth = growth.min(3 * SECOND / 10);
        self.gap = (u128::from(self.gap) * u128::from(SECOND) / u128::from(SECOND + growth)) as u64;
        if self.gap < SHORTEST {
            *self = Self { since: Some(now), window: self.window, ..Self::default() };
        }
    }

    /// Notes a refusal after which the client waits for so long, which the server demanded or not.
    pub(super) fn refused(&mut self, now: u64, wait: u64, is_demanded: bool) {
        match is_demanded {
            true => self.window.refused(now, wait, self.gap == 0),
            false => self.window.forget(),
        }
        if self.gap > 0 && self.owed >= TELLING {
            self.takes_few = 2 * self.served < self.owed;
        }
        match self.gap {
            // The next refusal may tell.
            0 if self.served < ENOUGH => return,
            // One that follows another one says nothing of the pace.
            _ if self.served == 0 => {}
            0 => {
                let since = self.since.unwrap_or(now);
                // The wait counts as time in which these requests were served, because the server admits nothing during it.
                let passed = now.saturating_sub(since) + wait.min(SECOND);
                self.gap = (passed / self.served).clamp(SHORTEST, SECOND);
                self.due = now;
            }
            // Each of these is the largest part by which clients still leave little of the limit unused. A wait that the server
            // demanded slows them down already.
            gap => {
                let part = if is_demanded && !self.takes_few { 8 } else { 2 };
                self.gap = (gap + gap / part).min(LONGEST);
            }
        }
        self.is_untold = !is_demanded;
        self.owed = if is_demanded { wait.checked_div(self.gap).unwrap_or(0) } else { 0 };
        (self.served, self.since) = (0, Some(now));
    }

    /// The server says what is left.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}
