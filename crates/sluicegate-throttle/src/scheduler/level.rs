use super::Counts;
use crate::error::MAX_CLASSES;

/// A window ends after a second, or after this many requests: the constants of DAGOR (Zhou et al., "Overload Control
/// for Scaling WeChat Microservices", 2018).
const WINDOW: u64 = 1_000_000;
const REQUESTS: u64 = 2_000;

/// A window with fewer requests of a class says nothing about that class.
const FEWEST: u64 = 4;

/// How many classes are admitted, the most critical first. A class is admitted if less than half of its requests were
/// shed in the last window.
#[derive(Debug)]
pub(super) struct Level {
    since: u64,
    offers: u64,
    /// Offered and shed requests of each class when the window began.
    before: [(u64, u64); MAX_CLASSES],
    admitted: usize,
}

impl Level {
    pub(super) const fn new(classes: usize) -> Self {
        Self { since: 0, offers: 0, before: [(0, 0); MAX_CLASSES], admitted: classes }
    }

    /// A request is about to be offered.
    pub(super) fn observe(&mut self, now: u64, classes: &[Counts]) {
        self.offers += 1;
        // After a step of the clock back, a new window begins.
        let is_past = now.checked_sub(self.since).is_none_or(|time| time >= WINDOW);
        let is_over = is_past || self.offers > REQUESTS;
        if !is_over {
            return;
        }
        // Counts from before a quiet time say nothing about the present.
        let is_recent = now.saturating_sub(self.since) < 2 * WINDOW;
        let mut admitted = classes.len();
        for (rank, class) in classes.iter().enumerate().rev() {
            let (offered, shed) = self.before[rank];
            let (offered, shed) = (class.offered - offered, class.shed_by_load() - shed);
            self.before[rank] = (class.offered, class.shed_by_load());
            if offered >= FEWEST && shed * 2 > offered && is_recent {
                admitted = rank;
            }
        }
        (self.admitted, self.since, self.offers) = (admitted, now, 1);
    }

    /// How many classes are admitted. After a time without requests, all of them are.
    pub(super) const fn admitted(&self, now: u64, classes: usize) -> usize {
        if now.saturating_sub(self.since) < 2 * WINDOW { self.admitted } else { classes }
    }
}
