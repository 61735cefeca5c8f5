//! Tokens taken out in batches, to be spent in this process.

mod counts;
mod fetch;
mod future;
mod inner;
mod request;
mod share;
mod table;
mod take;
mod validity;

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sluicegate_core::Limit;
use sluicegate_core::adapter::{Answer, Charge, Debit, Receipt};
use sluicegate_core::clock::Clock;
use sluicegate_core::limit::LimitError;
use sluicegate_core::store::Store;

pub use self::counts::LeaseCounts;
pub use self::future::LeasedFuture;
use self::inner::Inner;
use self::share::Share;
use self::table::Table;
use crate::store::Redis;

/// Limits and keys that a store has shares of, unless told otherwise.
const CAPACITY: usize = 16_384;

/// Shares that are given back before it is waited for that they have arrived.
const AT_ONCE: usize = 256;

/// A store that takes tokens out of a [`Redis`] in batches, and spends them in this process. Clones are the
/// same store.
///
/// ```no_run
/// use sluicegate_redis::{Leased, Redis};
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let redis = Redis::connect("redis://127.0.0.1:6379")?;
/// // Up to a thousand at a time, as far as a key has use for them.
/// let store = Leased::new(redis, 1..=1_000);
/// # let _ = store;
/// # Ok(())
/// # }
/// ```
///
/// # What is leased
///
/// Charges to one limit, of no more than a batch, where the limit is a plain token bucket that refills
/// continuously or a fixed window: without a ban, a gap, or refused attempts being counted. Everything else
/// is passed on to Redis as it is: other shapes, several limits on one request, requests that may wait, larger
/// costs, keys for which there is no [room](Self::with_capacity). Both are charged to the same rows, so the
/// sum is exact, and processes with and without leases can share a limit.
///
/// # What is promised
///
/// **Never more than the limit, over all processes,** in any interval whatsoever. A token that was taken out of
/// a bucket is good until its debt has drained, and one of a fixed window until that ends; whatever the
/// processes' clocks show, as long as they run at the same rate to one part in a thousand. A machine that is
/// put to sleep while it has unspent tokens is the exception: some systems' clocks sleep too.
///
/// **Below the limit nobody is refused** that [`Redis`] itself would admit, or hardly anybody, as long as the load
/// of each process is steady for the time in which half of the burst drains: a process takes what it will need in
/// that time, by what it needed in the last. Of `per_second(1_000)` that is half a second. A process that asks for
/// 20 tokens or more in it decides 95 of 100 requests without a round trip; one that asks for fewer than 2 takes
/// them one by one. As soon as any process leases, a bucket is kept half full, so there is half of the burst for
/// sudden needs. In a small bucket that is too little: where the burst is less than 100, a process needs more than 2
/// tokens to lease them, and takes those of a burst of 10 one by one. A batch should be as large as the burst, or
/// what one process spends in that time.
///
/// Of a fixed window, what one process has and does not spend is lost until the window ends. So a process takes half
/// of what it will need until then, and never more than half of what is left, but for requests that wait.
///
/// [`counts`](Self::counts) shows what expired unspent: of a bucket, that is what was taken to fill it by half.
///
/// **What is given back to a bucket from before the last lease is not**, unless the process that gives it back
/// also took that lease: it drains. What a process gives back of its own tokens is there for its next request.
///
/// Order among processes is not kept: one may spend what it has while another is refused, and
/// [`remaining`](sluicegate_core::Decision::remaining) counts what other processes hold as spent.
///
/// # What else differs
///
/// - A refusal is remembered until it ends, but no longer than a second: what other processes give back is
///   not seen sooner.
/// - While Redis is away, what is there is spent; after that the answers are those of [`Redis`].
/// - [`reset`](Store::reset) makes void what this process has taken out, not what others have.
/// - Unspent tokens are given back when the last clone is dropped, within a runtime that goes on; else
///   [`flush`](Self::flush) the store before the process ends.
#[derive(Clone)]
pub struct Leased(Arc<Inner>);

impl Leased {
    /// Takes tokens out of `redis`, as many at a time as `batch` says: the fewest, for keys that hardly need
    /// them, and the most. For up to 16,384 limits and keys at a time.
    ///
    /// # Panics
    ///
    /// When `batch` is empty, begins with 0, or goes beyond 2^32.
    #[track_caller]
    pub fn new(redis: Redis, batch: RangeInclusive<u64>) -> Self {
        Self::with_capacity(redis, batch, CAPACITY)
    }

    /// The same for `capacity` limits and keys at a time, or somewhat more.
    ///
    /// # Panics
    ///
    /// As [`new`](Self::new) does.
    #[track_caller]
    pub fn with_capacity(redis: Redis, batch: RangeInclusive<u64>, capacity: usize) -> Self {
        assert!(*batch.start() > 0, "a batch of nothing would not be leased");
        assert!(!batch.is_empty(), "the smallest batch is larger than the largest");
        assert!(*batch.end() <= 1 << 32, "a batch is no more than 2^32");
        let clock = redis.clock();
        let (table, passed_on) = (Table::new(capacity), AtomicU64::new(0));
        Self(Arc::new(Inner { redis, batch, table, clock, passed_on }))
    }

    /// The store that is leased from.
    pub fn redis(&self) -> &Redis {
        &self.0.redis
    }

    /// What became of the tokens so far.
    pub fn counts(&self) -> LeaseCounts {
        let (inner, at) = (&self.0, self.0.moment());
        let passed_on = inner.passed_on.load(Ordering::Relaxed);
        let mut counts = LeaseCounts { passed_on, ..LeaseCounts::default() };
        for mut shelf in inner.table.shelves() {
            let (shares, totals) = shelf.all();
            shares.iter_mut().for_each(|share| share.expire(at, totals));
            let unspent = shares.iter().map(Share::unspent).sum();
            counts.add(totals, unspent);
            shelf.report();
        }
        counts
    }

    /// Gives back what is unspent, and waits until that and all else in the background has arrived. The
    /// store goes on as if it were new.
    pub async fn flush(&self) {
        let mut given = 0;
        for at in 0..self.0.table.len() {
            given += self.0.give_back_shelf(at);
            if given >= AT_ONCE {
                given = 0;
                self.0.redis.flush().await;
            }
        }
        self.0.redis.flush().await;
    }
}

impl Store for Leased {
    type Future = LeasedFuture;

    fn take(&self, charge: &Charge) -> Answer<LeasedFuture> {
        self.0.take(charge)
    }

    /// Asks Redis, where all that was taken out is spent.
    fn peek(&self, charge: &Charge) -> Answer<LeasedFuture> {
        LeasedFuture::pass_on(self.0.redis.peek(charge))
    }

    fn reset(&self, charge: &Charge) -> Answer<LeasedFuture> {
        charge.debits().for_each(|debit| self.0.forget(debit));
        LeasedFuture::pass_on(self.0.redis.reset(charge))
    }

    fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) {
        self.0.settle(debit, receipt, spent);
    }

    fn clock(&self) -> Clock {
        self.0.clock.clone()
    }

    fn check(&self, limit: &Limit) -> Result<(), LimitError> {
        self.0.redis.check(limit)
    }
}

impl fmt::Debug for Leased {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { redis, batch, .. } = &*self.0;
        f.debug_struct("Leased").field("redis", redis).field("batch", batch).finish_non_exhaustive()
    }
}
