//! Real token buckets whose numbers follow a lease, beside the fluid model: a client with a lease of `l` requests a
//! second that wants `w` sends the smaller one of both.

use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::State;
use sluicegate_lease::Amount;

use super::random::Random;

/// A client's token bucket, and what it lets through.
pub(crate) struct Bucket {
    random: Random,
    state: Option<State>,
    limit: Option<(Amount, Limit)>,
    /// When the next request comes, in microseconds.
    next: f64,
    /// Up to which millisecond it has run.
    upto: u64,
    pub(crate) admitted: u64,
    pub(crate) fluid: f64,
}

impl Bucket {
    pub(crate) fn new(now: u64, seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            state: None,
            limit: None,
            next: now as f64 * 1_000.0,
            upto: now,
            admitted: 0,
            fluid: 0.0,
        }
    }

    /// Requests come at random, `wants` a second on average, until `now`. `leased` gives what is leased at a moment.
    pub(crate) fn run(&mut self, now: u64, wants: Amount, leased: impl Fn(u64) -> Amount) {
        for millis in self.upto..now {
            let lease = leased(millis);
            self.fluid += lease.min(wants).as_f64() / 1_000.0;
            while self.next < (millis as f64 + 1.0) * 1_000.0 {
                self.admitted += u64::from(self.admits(lease));
                let gap = -(1.0 - self.random.fraction()).ln() * 1e6 / wants.as_f64();
                self.next += gap;
            }
        }
        self.upto = self.upto.max(now);
    }

    fn admits(&mut self, lease: Amount) -> bool {
        if self.limit.as_ref().is_none_or(|(of, _)| *of != lease) {
            self.limit = limit(lease).map(|limit| (lease, limit));
        }
        let Some((_, limit)) = &self.limit else { return false };
        let state = self.state.get_or_insert_with(|| limit.fresh());
        limit.take(state, self.next as u64, 1).is_admitted()
    }
}

/// The lease to a thousandth, and a burst of a tenth of a second.
fn limit(lease: Amount) -> Option<Limit> {
    let per_thousand_seconds = lease.millionths() / 1_000;
    if per_thousand_seconds == 0 {
        return None;
    }
    let burst = (lease.as_f64() / 10.0).max(1.0) as u64;
    let limit = Limit::per(per_thousand_seconds, Duration::from_secs(1_000));
    Some(limit.burst(burst).named("lease").carried())
}
