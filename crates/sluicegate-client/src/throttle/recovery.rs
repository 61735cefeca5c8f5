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
