//! Decides charges out of leases.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use sluicegate_core::adapter::{Answer, Charge, Debit};
use sluicegate_core::store::Store;
use tokio::sync::oneshot;

use super::future::LeasedFuture;
use super::inner::Inner;
use super::share::{Step, Waiter};
use super::validity::Validity;
use crate::observe::report;

impl Inner {
    /// The debit and how long its tokens are valid, if it can be leased.
    #[inline]
    fn leasable<'c>(&self, charge: &'c Charge) -> Option<(&'c Debit, Validity)> {
        if charge.len() != 1 || charge.patience().is_some() {
            return None;
        }
        let debit = charge.debits().next()?;
        let validity = Validity::of(&debit.limit)?;
        let fits = debit.cost > 0 && debit.cost <= validity.most().min(*self.batch.end());
        fits.then_some((debit, validity))
    }

    fn pass_on(&self, charge: &Charge) -> Answer<LeasedFuture> {
        self.passed_on.fetch_add(1, Ordering::Relaxed);
        report::passed_on();
        LeasedFuture::pass_on(self.redis.take(charge))
    }

    pub(super) fn take(self: &Arc<Self>, charge: &Charge) -> Answer<LeasedFuture> {
        let Some((debit, validity)) = self.leasable(charge) else { return self.pass_on(charge) };
        let (at, mut shard) = (self.moment(), self.table.lock(debit));
        for (debit, tokens) in shard.hand_over_others(debit, at) {
            // Under the lock, so that it reaches the server before the lease of any thread, and the new numbers do not take
            // it over as spent.
            self.settle_unspent(&debit, &tokens);
            shard.totals.given_back += tokens.unspent;
        }
        let found = shard.find_or_make(debit, validity, &self.batch, at);
        let Some((share, totals)) = found else {
            drop(shard);
            return self.pass_on(charge);
        };
        share.expire(at, totals);
        match share.step(at.now, debit.cost, totals) {
            Step::Decide(outcome, false) => Answer::Now(Ok(outcome)),
            // If a test turned the clock meanwhile, it would step back when the request arrives.
            Step::Decide(outcome, true) if at.is_manual => Answer::Now(Ok(outcome)),
            Step::Decide(outcome, true) => {
                let wanted =
                    if self.can_request() { share.request(at.now, &self.batch) } else { None };
                if wanted.is_some() {
                    shard.report();
                }
                drop(shard);
                if let Some(wanted) = wanted {
                    self.fetch(debit.clone(), wanted);
                }
                Answer::Now(Ok(outcome))
            }
            Step::Wait if self.can_request() => {
                let (sender, receiver) = oneshot::channel();
                share.wait(Waiter { cost: debit.cost, answer: sender });
                let wanted = share.request(at.now, &self.batch);
                if wanted.is_some() {
                    shard.report();
                }
                drop(shard);
                if let Some(wanted) = wanted {
                    self.fetch(debit.clone(), wanted);
                }
                Answer::Later(LeasedFuture::waiting(receiver, self, debit))
            }
            Step::Wait | Step::PassOn => {
                drop(shard);
                self.pass_on(charge)
            }
        }
    }

    /// Whether a request can be sent. If not, the store below reports why.
    fn can_request(&self) -> bool {
        let shared = self.shared();
        shared.runtime.handle().is_some() && !shared.route.is_shut()
    }
}
