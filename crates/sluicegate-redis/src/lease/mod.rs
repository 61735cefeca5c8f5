//! Tokens taken out of Redis in batches, and spent in this process.

pub(crate) mod counts;
mod fetch;
mod inner;
mod share;
mod table;
mod validity;

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sluicegate_core::Limit;
use sluicegate_core::adapter::{Answer, Charge, Debit, Receipt};
use sluicegate_core::clock::Clock;
use sluicegate_core::limit::{LimitError, LimitStatus};
use sluicegate_core::store::Store;

use self::inner::Inner;
use self::share::Share;
use self::table::Table;
use crate::store::Redis;

pub use self::counts::LeaseCounts;
pub use self::inner::LeasedFuture;

/// The default number of limits and keys with tokens in this process.
const CAPACITY: usize = 16_384;

/// How many leases are given back before `flush` waits for them to arrive.
const FLUSH_EVERY: usize = 256;

/// A store that takes tokens out of a [`Redis`] in batches, and spends them in this process. Clones are the
/// same store.
///
/// ```no_run
/// use sluicegate_redis::{Leased, Redis};
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let redis = Redis::connect("redis://127.0.0.1:6379")?;
/// // Up to a thousand tokens at a time, if a key needs that many.
/// let store = Leased::new(redis, 1..=1_000);
/// # let _ = store;
/// # Ok(())
/// # }
/// ```
///
/// # What is leased
///
/// Charges to a single limit that is a token bucket with continuous refill or a fixed window, without a ban, a gap, or
/// counted refusals, and whose cost is at most a batch. The limit may be [carried](Limit::carried) over, as those of
/// policy files are. Everything else is passed on to Redis unchanged: other
/// algorithms, several limits on one request, requests that may wait, larger costs, and keys beyond the
/// [capacity](Self::with_capacity). Both are charged to the same rows, so the sum is exact, and processes with and
/// without leases can share a limit.
///
/// # What is promised
///
/// **Never more than the limit, over all processes,** in any interval. A token of a bucket is valid until its debt has
/// drained, and a token of a fixed window until the window ends. That holds whatever the clocks of processes show, if
/// their rates differ by at most one part in a thousand. The exception is a machine that is suspended while it has
/// unspent tokens: on some systems the clock stops too.
///
/// **Below the limit, hardly any request is refused** that [`Redis`] itself would admit, if the load of each process is
/// steady over the time in which half of the burst drains, which is half a second for `per_second(1_000)`. A process
/// takes as many tokens as it will need in that time, judged by the last such time. With 20 tokens or more in that time,
/// it decides 95 of 100 requests without a round trip; with fewer than 2, it takes them one by one. While any process
/// leases, a bucket is kept half full, so half of the burst is left for sudden needs. In a small bucket that is too little: where the burst is less than 100, a process needs more than 2
/// tokens to lease them, and takes those of a burst of 10 one by one. A batch should be as large as the burst, or
/// what one process spends in that time.
///
/// **At its limit,** a bucket of 128 tokens or more costs few questions. After a shortage, a process asks Redis in at most
/// 6 of 100 requests, and refuses the others that find no token in hand. From then on, as many requests are refused as by
/// [`Redis`] itself, within half a percent. Once, when a key that nobody has used comes to its limit, each process builds up
/// a stock of up to 40 tokens of 1,000 a second, which no other process can spend. That many more requests are refused, once.
/// A smaller bucket asks again whenever a refusal has ended.
///
/// Tokens of a fixed window that a process does not spend are lost until the window ends. So a process takes half of what
/// it will need until then, and never more than half of what is left, except for requests that wait.
///
/// [`counts`](Self::counts) shows how many tokens expired unspent. For a bucket, those are the tokens taken to keep it
/// half full.
///
/// **A charge from before a bucket's last lease cannot be given back,** unless the same process also took that lease: the
/// charge drains instead. Tokens that a process gives back to itself are available to its next request.
///
/// **Numbers that change.** Tokens of a [carried](Limit::carried) limit are spent by the numbers that they were leased
/// with. The first request with other numbers gives them back, as far as that is possible, and leases anew; what was
/// spent counts for the new numbers. No numbers are ever exceeded by what they admit. While processes have different
/// numbers, as when not all have read a new file, all admissions together may exceed the most generous numbers by what
/// is leased with others. Nothing is given back in Redis to a bucket that is leased from while its row has several sets
/// of numbers.
///
/// Processes do not take turns: one may spend its tokens while another is refused.
/// [`remaining`](sluicegate_core::Decision::remaining) counts tokens that other processes hold as spent.
///
/// # What else differs
///
/// - A refusal is remembered until it ends, but for at most a second. What other processes give back may be noticed
///   that much later.
/// - While Redis is away, tokens in hand are spent first. After that the answers are those of [`Redis`].
/// - [`reset`](Store::reset) discards the tokens of this process, not those of others.
/// - Unspent tokens are given back when the last clone is dropped, if the runtime continues. Otherwise call
///   [`flush`](Self::flush) before the process ends.
#[derive(Clone)]
pub struct Leased(Arc<Inner>);

impl Leased {
    /// Takes tokens out of `redis` in batches between the bounds of `batch`, for up to 16,384 limits and keys at a time.
    ///
    /// # Panics
    ///
    /// When `batch` is empty, begins with 0, or goes beyond 2^32.
    #[track_caller]
    pub fn new(redis: Redis, batch: RangeInclusive<u64>) -> Self {
        Self::with_capacity(redis, batch, CAPACITY)
    }

    /// Like [`new`](Self::new), for `capacity` limits and keys at a time, or somewhat more.
    ///
    /// # Panics
    ///
    /// As [`new`](Self::new) does.
    #[track_caller]
    pub fn with_capacity(redis: Redis, batch: RangeInclusive<u64>, capacity: usize) -> Self {
        assert!(*batch.start() > 0, "the smallest batch is zero");
        assert!(!batch.is_empty(), "the smallest batch is larger than the largest");
        assert!(*batch.end() <= 1 << 32, "the largest batch is more than 2^32");
        let clock = redis.clock();
        let (table, passed_on) = (Table::new(capacity), AtomicU64::new(0));
        Self(Arc::new(Inner { redis, batch, table, clock, passed_on }))
    }

    /// The store that tokens are taken out of.
    pub fn redis(&self) -> &Redis {
        &self.0.redis
    }

    /// What became of all tokens so far.
    pub fn counts(&self) -> LeaseCounts {
        let (inner, at) = (&self.0, self.0.moment());
        let passed_on = inner.passed_on.load(Ordering::Relaxed);
        let mut counts = LeaseCounts { passed_on, ..LeaseCounts::default() };
        for mut shard in inner.table.shards() {
            let (shares, totals) = shard.all();
            shares.iter_mut().for_each(|share| share.expire(at, totals));
            let unspent = shares.iter().map(Share::unspent).sum();
            counts.add(LeaseCounts { unspent, ..*totals });
            shard.report();
        }
        counts
    }

    /// Gives back unspent tokens, and waits for that and for everything else in the background. The store continues as
    /// if it were new.
    pub async fn flush(&self) {
        let mut given = 0;
        for at in 0..self.0.table.len() {
            given += self.0.give_back_shard(at);
            if given >= FLUSH_EVERY {
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

    /// Peeks in Redis, where all leased tokens count as spent.
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

    fn follow(&self, debit: &Debit, charged: u64, spent: u64) {
        self.0.redis.follow(debit, charged, spent);
    }

    fn follow_status(&self, debit: &Debit, status: &LimitStatus) {
        self.0.redis.follow_status(debit, status);
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
