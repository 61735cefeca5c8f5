//! Spending by one limit, which is what most requests do: no charge is made unless the row has to be looked for under
//! the lock.
//!
//! A key of one value stays in registers where the caller is compiled together with this, and is written into a buffer
//! only if it has to be handed on. A decision ends in a compare-and-swap, which waits for everything that was written
//! to memory before it.

use super::Memory;
use super::locked::FindMode;
use super::operation::Operation;
use super::spend::SpendFailure;
use crate::key::{self, KeyBuf};
use crate::limit::{Limit, LimitInternals as _, Outcome, Part, Step};
use crate::store::StoreError;
use crate::store::charge::{Charge, Debit};

impl Memory {
    /// Spends `cost` of `limit` on `key`, if the limit admits it. Like [`take`](crate::store::Store::take) for one limit, but needs
    /// no charge.
    ///
    /// ```
    /// use sluicegate::{Limit, Memory};
    /// use sluicegate::key::KeyBuf;
    ///
    /// let store = Memory::with_capacity(10_000);
    /// let limit = Limit::per_minute(2);
    /// let key = KeyBuf::of("alice");
    ///
    /// assert!(store.spend(&limit, &key, 1)?.is_admitted());
    /// assert!(store.spend(&limit, &key, 1)?.is_admitted());
    /// let refused = store.spend(&limit, &key, 1)?;
    /// assert!(refused.retry_after().is_some());
    /// # Ok::<(), sluicegate::store::StoreError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If there is no room for the key, and the limit does not [count it together](crate::limit::WhenFull) with
    /// others.
    #[inline(always)]
    pub fn spend(&self, limit: &Limit, key: &KeyBuf, cost: u64) -> Result<Outcome, StoreError> {
        self.spend_fingerprint(limit, self.0.fingerprint(limit.id(), key), cost, || *key)
    }

    /// [`spend`](Self::spend) on the key of one value, which is written down only if that is needed.
    ///
    /// # Errors
    ///
    /// Those of [`spend`](Self::spend).
    #[doc(hidden)]
    #[inline(always)]
    pub fn spend_on(
        &self,
        limit: &Limit,
        part: &impl key::Part,
        cost: u64,
    ) -> Result<Outcome, StoreError> {
        let fingerprint = self.0.fingerprint_of(limit.id(), part);
        self.spend_fingerprint(limit, fingerprint, cost, || KeyBuf::of(part))
    }

    /// Takes the part `part` of one bucket, where that needs no lock but the row's own, and says when that was by the clock,
    /// which the time of the store may be ahead of. `None`, and nothing is charged, everywhere else.
    #[inline(always)]
    pub(crate) fn take_part(&self, charge: &Charge, part: Part) -> Option<(Step, u64)> {
        let Debit { limit, key, cost, .. } =
            charge.only().filter(|_| charge.patience().is_none())?;
        let fingerprint = self.0.fingerprint(limit.id(), key);
        let spent = match limit.one_word_bucket() {
            Some(bucket) => {
                self.0.one_word.spend(&self.0, &bucket.in_part(part)?, fingerprint, *cost)
            }
            None => {
                let bucket = limit.plain_bucket()?.in_part(part)?;
                self.0.two_words.spend(&self.0, &bucket, fingerprint, *cost)
            }
        };
        let spent = spent.ok().filter(|spent| !spent.never_fits())?.by_part(part);
        Some((spent, spent.decided_at().wrapping_sub(self.0.clock.ahead)))
    }

    #[inline(always)]
    fn spend_fingerprint(
        &self,
        limit: &Limit,
        fingerprint: u64,
        cost: u64,
        key: impl Fn() -> KeyBuf,
    ) -> Result<Outcome, StoreError> {
        let Some(bucket) = limit.one_word_bucket() else {
            return self.spend_more_words(limit, fingerprint, cost, key);
        };
        match self.0.one_word.spend(&self.0, bucket, fingerprint, cost) {
            Ok(spent) => Ok(spent.into()),
            Err(failure) => self.spend_again(failure, limit, fingerprint, cost, key),
        }
    }

    #[inline(never)]
    fn spend_more_words(
        &self,
        limit: &Limit,
        fingerprint: u64,
        cost: u64,
        key: impl Fn() -> KeyBuf,
    ) -> Result<Outcome, StoreError> {
        match self.0.spend_more_words(limit, fingerprint, cost) {
            Ok(spent) => Ok(spent.into()),
            Err(failure) => self.spend_again(failure, limit, fingerprint, cost, key),
        }
    }

    #[inline(never)]
    fn spend_again(
        &self,
        failure: SpendFailure,
        limit: &Limit,
        fingerprint: u64,
        cost: u64,
        key: impl Fn() -> KeyBuf,
    ) -> Result<Outcome, StoreError> {
        match self.0.spend_again(failure, limit, fingerprint, cost) {
            Some(spent) => Ok(spent.into()),
            None => {
                let charge = Charge::of(*limit, key(), cost);
                self.decided(&charge, FindMode::OrInsert, Operation::Take)
            }
        }
    }

    /// Like [`spend_again`](Self::spend_again), for a charge that is already made.
    #[inline(never)]
    pub(super) fn take_otherwise(
        &self,
        failure: SpendFailure,
        charge: &Charge,
        debit: &Debit,
        fingerprint: u64,
    ) -> Result<Outcome, StoreError> {
        match self.0.spend_again(failure, &debit.limit, fingerprint, debit.cost) {
            Some(spent) => Ok(spent.into()),
            None => self.decided(charge, FindMode::OrInsert, Operation::Take),
        }
    }
}
