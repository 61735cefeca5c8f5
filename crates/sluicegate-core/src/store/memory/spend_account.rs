//! Spending from the row of a limit that is carried over, where it has only the account of the limit's own numbers.
//!
//! That is nearly every row: numbers change when a file is reloaded or a customer moves to another tier. The decision is
//! then the step of a plain limit. It is made where the state is kept, under the lock of the bucket. Nothing is moved and
//! nothing is allocated, and what there is to tell of the row is worked out when somebody asks.

use super::Inner;
use super::bucket::{Bucket as _, Guard};
use super::moment::Moment;
use super::row::{FourRows, FullState};
use super::table::{CHOICES, Table};
use crate::limit::{Limit, LimitInternals as _, Step};

/// A decision, with the tick at which the row has then recovered, if something was spent.
type Spent = (Step, Option<u32>);

impl Table<FourRows<FullState>> {
    /// Spends from the row of a key; `None` where there is none, or more to look at.
    #[inline(never)]
    pub(super) fn spend(
        &self,
        inner: &Inner,
        limit: &Limit,
        fingerprint: u64,
        cost: u64,
    ) -> Option<Step> {
        if !limit.is_plain_account() {
            return None;
        }
        // A state of more than two words cannot be read without the lock.
        let first = self.lock(self.choice(fingerprint, 0));
        // A state of a later time, as another thread may have written it, is not decided about here.
        let Moment { now, .. } = inner.moment();
        let tick = self.tick(now);
        let spend = |bucket: &Guard<'_, _>, row| self.spend_from(limit, bucket, row, now, cost);
        // Many clients come back when their row has recovered. It is as good as new, and still theirs.
        let (outcome, _) = match first.find_own(fingerprint, tick) {
            Some(row) => spend(&first, row)?,
            None if first.has_displaced(tick) => {
                self.spend_displaced(&first, fingerprint, tick, spend)?
            }
            None => return None,
        };
        Some(outcome)
    }

    /// Spends from a live row in another of its choices. As long as its first bucket is locked, no other row is made
    /// for the key.
    #[cold]
    fn spend_displaced(
        &self,
        first: &Guard<'_, FourRows<FullState>>,
        fingerprint: u64,
        tick: u32,
        spend: impl Fn(&Guard<'_, FourRows<FullState>>, usize) -> Option<Spent>,
    ) -> Option<Spent> {
        // A guess, as long as the bucket is not locked. The first bucket is not among them: the row is not there.
        let holds = |number: &usize| self.bucket(*number).find_live(fingerprint, tick).is_some();
        let number = (1..CHOICES).map(|choice| self.choice(fingerprint, choice)).find(holds)?;
        // A thread that holds that bucket may wait for the first one, so this one must not wait for it.
        let other = self.try_lock(number)?;
        let (outcome, expiry) = spend(&other, other.find_live(fingerprint, tick)?)?;
        // Until then nobody begins the row anew in the first bucket.
        if let Some(expiry) = expiry {
            first.note_displaced_until(expiry);
        }
        Some((outcome, expiry))
    }

    #[inline]
    fn spend_from(
        &self,
        limit: &Limit,
        bucket: &Guard<'_, FourRows<FullState>>,
        row: usize,
        now: u64,
        cost: u64,
    ) -> Option<Spent> {
        bucket.change(row, |state| {
            let (step, fresh_in) = limit.step_account(state, now, cost)?;
            let expiry = step.is_admitted().then(|| self.expiry(fresh_in, now));
            Some((step, expiry))
        })
    }
}
