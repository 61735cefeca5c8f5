use std::time::Duration;

use sluicegate_core::adapter::Outcome;

use super::outcome::refusal;
use crate::lease::validity::micros;
use crate::script::lease::{Lease, LeaseRequest};

/// How long a refusal is remembered at most, in microseconds. What others give back is noticed after that.
const REMEMBERED: u64 = 1_000_000;

/// The last refusal of the server. Times are by this process's clock, unless noted otherwise.
#[derive(Debug)]
pub(super) struct Refused {
    cost: u64,
    /// When the server may have enough tokens again: at the earliest, and with certainty.
    again: [u64; 2],
    words: [u64; 2],
    asked: u64,
    /// When it refused, by its own clock.
    at: u64,
}

impl Refused {
    /// `None` if the server did not refuse, or will never admit.
    pub(super) fn by(lease: &Lease, asked: u64, wanted: LeaseRequest, now: u64) -> Option<Self> {
        let retry = lease.retry_after.filter(|_| lease.taken == 0).map(micros)?;
        let again = [asked.saturating_add(retry.min(REMEMBERED)), now.saturating_add(retry)];
        Some(Self { cost: wanted.least, again, words: lease.words, asked, at: lease.now })
    }

    pub(super) const fn is_over(&self, now: u64) -> bool {
        now >= self.again[0]
    }

    /// The answer that the server would give to a request of the same cost.
    pub(super) fn outcome(&self, now: u64, cost: u64) -> Option<Outcome> {
        let at = self.at + now.saturating_sub(self.asked);
        let retry = Duration::from_micros(self.again[1].saturating_sub(now));
        (cost == self.cost).then(|| refusal(self.words, at, Some(retry)))
    }
}
