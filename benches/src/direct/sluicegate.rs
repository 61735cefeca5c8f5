use sluicegate_axum::adapter::{Charge, Outcome};
use sluicegate_axum::key::KeyBuf;
use sluicegate_axum::limit::WhenFull;
use sluicegate_axum::store::{Store, StoreError};
use sluicegate_axum::{Limit, Limiter, Memory};

use super::{Bucket, Direct, Verdict};
use crate::keys::Key;

/// sluicegate as code without HTTP uses it: a `Limiter` with a [`Memory`] made for exactly this many keys.
#[derive(Debug)]
pub struct Sluicegate(Limiter);

/// sluicegate as its layers use it: a charge is written, and the store asked.
#[derive(Debug)]
pub struct SluicegateStore {
    limit: Limit,
    store: Memory,
}

impl Sluicegate {
    /// For `keys` keys, all of them at once.
    pub fn new(bucket: Bucket, keys: u64) -> Self {
        Self::over(bucket, Memory::with_capacity(keys as usize))
    }

    /// Over a store that is there already.
    pub fn over(bucket: Bucket, store: Memory) -> Self {
        Self(Limiter::new(limit(bucket)).store(store))
    }
}

impl SluicegateStore {
    /// Over a store that is there already.
    pub fn over(bucket: Bucket, store: Memory) -> Self {
        Self { limit: limit(bucket), store }
    }
}

impl<K: Key> Direct<K> for Sluicegate {
    #[inline]
    fn take(&self, key: &K, _: &mut String) -> Verdict {
        verdict(self.0.spend(key, 1))
    }
}

impl<K: Key> Direct<K> for SluicegateStore {
    #[inline]
    fn take(&self, key: &K, _: &mut String) -> Verdict {
        let charge = Charge::of(self.limit, KeyBuf::of(key), 1);
        verdict(self.store.take(&charge).now())
    }
}

fn limit(bucket: Bucket) -> Limit {
    // A key without room gets an error, as in the other limiters.
    let limit = Limit::per(1, bucket.interval).burst(bucket.burst.into());
    limit.when_full(WhenFull::Admit)
}

#[inline(always)]
fn verdict(answer: Result<Outcome, StoreError>) -> Verdict {
    match answer {
        Ok(outcome) => Verdict::of(outcome.is_admitted()),
        Err(error) if error.is_full() => Verdict::Full,
        Err(error) => panic!("{error}"),
    }
}
