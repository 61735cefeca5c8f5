/// The pace that a client finds for itself where the server does not say what is left.
///
/// A refusal makes the gap between requests longer by a half, and each request that is served makes it shorter: by more,
/// the longer the gap and the more have been served since. So many clients of one server come to send about as much as it
/// allows, each about the same, and fewer than one request in ten is refused. That is how TCP shares a line: additive
/// increase, multiplicative decrease, and a growth that gets quicker the longer nothing is lost.
///
/// What was not sent during a wait is made up for, twice as fast as usual: a server that counts by windows would be
/// idle otherwise.
///
/// The numbers are from a simulation of 16 clients with 1 and 8 callers each that share 100 requests a second
/// (`tests/contention.rs`): of those that keep the server busy, they are refused the least.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pace {
    /// Microseconds between requests; 0 if they are sent as they come.
    gap: u64,
    /// When the next request would be sent if each had been sent at its time.
    due: u64,
    /// Requests that were served in the measured time.
    served: u64,
    /// When that began.
    since: Option<u64>,
}

const SECOND: u64 = 1_000_000;

/// What was served longer ago does not tell how fast requests come now, in microseconds.
const MEASURED: u64 = 10 * SECOND;

/// Fewer requests that were served tell nothing.
const ENOUGH: u64 = 5;

/// The longest gap, in microseconds.
const LONGEST: u64 = 10 * SECOND;

/// How far requests may be behind their time, to make up for it, in microseconds.
const BEHIND: u64 = 2 * SECOND;

/// Shorter gaps are none, in microseconds.
const SHORTEST: u64 = 1_000;

impl Pace {
    pub(super) const fn gap(&self) -> u64 {
        self.gap
    }

    /// Notes a request that is sent. Returns when the next one may be.
    pub(super) fn sent(&mut self, now: u64) -> u64 {
        self.due = self.due.max(now.saturating_sub(BEHIND)).saturating_add(self.gap);
        self.due.max(now.saturating_add(self.gap / 2))
    }

    /// Notes a request that was served.
    pub(super) fn served(&mut self, now: u64) {
        let since = *self.since.get_or_insert(now);
        if self.gap == 0 && now.saturating_sub(since) > MEASURED {
            (self.served, self.since) = (0, Some(now));
        }
        self.served += 1;
        if self.gap == 0 {
            return;
        }
        // In millionths: six tenths of the seconds of the gap, from a hundredth to a fifth.
        let first = (self.gap.saturating_mul(6) / 10).clamp(SECOND / 100, SECOND / 5);
        // It doubles in twelve requests, or in a second, and goes on to grow by the square.
        let (served, usual) = (self.served.min(1 << 16), (SECOND / self.gap).max(12));
        let growth = (first + first * served * served / (usual * usual)).min(3 * SECOND / 10);
        self.gap = (u128::from(self.gap) * u128::from(SECOND) / u128::from(SECOND + growth)) as u64;
        if self.gap < SHORTEST {
            *self = Self { since: Some(now), ..Self::default() };
        }
    }

    /// Notes a refusal after which the client waits for so long. One that follows another one says nothing of the pace.
    pub(super) fn refused(&mut self, now: u64, wait: u64, is_first: bool) {
        let since = self.since.unwrap_or(now);
        match self.gap {
            // Too few say nothing: the next refusal may tell.
            0 if self.served < ENOUGH => return,
            0 => {
                let passed = now.saturating_sub(since) + wait.min(SECOND);
                self.gap = (passed / self.served).clamp(SHORTEST, SECOND);
            }
            gap if is_first => self.gap = (gap + gap / 2).min(LONGEST),
            _ => {}
        }
        (self.served, self.since) = (0, None);
    }

    /// The server says what is left.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}
