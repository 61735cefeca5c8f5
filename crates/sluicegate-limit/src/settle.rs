//! Changes a charge to what the request really cost.
//!
//! Giving back asks who waits behind. Places behind a booked one were computed with it. So only the last in
//! line can give its place back to a bucket or a fixed window. A sliding log can always take a stamp out.

use super::algorithm::token_bucket::TokenBucket;
use super::definition::Limit;
use super::exact::bounded;
use super::state::{Receipt, State};

impl Limit {
    /// Changes a charge of `cost`, whose `receipt` is in the decision's
    /// [`LimitStatus`](super::LimitStatus::receipt), into one of `spent`: gives back what was too much, or
    /// charges more, beyond the limit if need be.
    ///
    /// A bucket takes back what of this charge has not drained meanwhile, and is never better than
    /// fresh; a window takes back only what was spent in that window. Where several charges that
    /// overlap in time are given back to a bucket, together they can return as much as drained while
    /// they were under way.
    ///
    /// Giving back lifts a ban that began while the charge counted, once as much is given back as has
    /// been refused since; and refusals that are counted towards a ban likewise.
    pub fn settle(&self, state: &mut State, now: u64, receipt: &Receipt, cost: u64, spent: u64) {
        let now = bounded(now);
        if receipt.void {
            return;
        }
        if spent > cost {
            self.meet(state, now);
        } else if !self.knows(state, receipt) {
            return;
        }
        self.follow_all(state, now);
        if spent > cost {
            self.algorithm.force(state, now, spent - cost);
            self.charge_others(state, now, spent - cost);
            return;
        }
        self.algorithm.give(state, receipt, now, cost - spent);
        if self.carried {
            self.give_others(state, receipt, now, cost, cost - spent);
        }
        // Held places are also given back in the ordinary way. That undoes nothing.
        if self.is_held() {
            return;
        }
        if spent == 0 && self.gap > 0 {
            TokenBucket::gap(self.gap).give(&mut state.gap, receipt.gap, now, 1);
        }
        self.pardon(state, receipt, now, cost - spent);
    }

    pub(super) fn counted(&self, receipt: &Receipt, then: u64) -> bool {
        self.algorithm.counted(receipt, then)
    }
}
