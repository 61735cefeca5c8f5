use std::fmt;
use std::future::Ready;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::{StateInformationMiddleware, StateSnapshot};
use governor::state::NotKeyed;
use governor::state::direct::DirectStateStore;
use governor::state::keyed::KeyedStateStore;
use governor::{InsufficientCapacity, NotUntil, Quota, RateLimiter};
use sluicegate_core::Limit;
use sluicegate_core::adapter::{Answer, Charge, Debit, Outcome, Receipt};
use sluicegate_core::key::KeyBuf;
use sluicegate_core::limit::{LimitError, LimitStatus, Verdict};
use sluicegate_core::store::{Store, StoreError};

use crate::bucket::micros;
use crate::quota::quota;

/// A store that wraps a governor limiter, which other code may use too.
///
/// The limiter has to be made [`with_middleware`](RateLimiter::with_middleware) of [`StateInformationMiddleware`], which
/// reports how much remains. A keyed limiter has [`KeyBuf`] as its key. A direct limiter has no keys, so all requests share
/// one budget: use it with a rule `.by(Global)`.
///
/// It can do what governor can do, and no more:
///
/// - Each request has one limit, which equals the quota ([`limit`](crate::limit()) makes it). Any other limit, and several
///   limits, are an [unsupported](StoreError::is_unsupported) error: test your rule, and consider
///   [`OnStoreError::Refuse`](sluicegate_core::store::OnStoreError::Refuse).
/// - Nothing is given back: `count_if` and `settle_cost` do not change the charge, and neither does an inner limit that
///   refuses.
/// - Requests never wait: they are refused at once, with the exact time after which to retry.
/// - Peeking and resetting are unsupported errors.
/// - The table is governor's. It grows with every key until you call
///   [`retain_recent`](RateLimiter::retain_recent).
///
/// [`Governor`](crate::Governor) has none of these limitations.
///
/// ```
/// use std::sync::Arc;
/// use governor::middleware::StateInformationMiddleware;
/// use governor::{Quota, RateLimiter};
/// use sluicegate_core::Global;
/// use sluicegate_core::store::Store;
/// use sluicegate_governor::{Around, limit};
///
/// let quota = Quota::per_second(50.try_into().unwrap());
/// let limiter = Arc::new(
///     RateLimiter::direct(quota).with_middleware::<StateInformationMiddleware>(),
/// );
///
/// let limit = limit(quota)?;
/// let store = Around::new(Arc::clone(&limiter), quota);
/// assert!(store.check(&limit).is_ok());
/// let rule = limit.by(Global);
/// # let _ = rule;
/// # Ok::<(), sluicegate_core::limit::LimitError>(())
/// ```
pub struct Around<L> {
    limiter: Arc<L>,
    quota: Quota,
}

impl<L: Check> Around<L> {
    /// Wraps `limiter`. Pass the `quota` that it was made with, because governor does not reveal it.
    pub fn new(limiter: Arc<L>, quota: Quota) -> Self {
        Self { limiter, quota }
    }

    fn spend(&self, charge: &Charge) -> Result<Outcome, LimitError> {
        let mut debit = charge.debits();
        let Some(first) = debit.next() else {
            return Ok(Outcome::from_parts(Verdict::Admit { wait: Duration::ZERO }, []));
        };
        if debit.next().is_some() {
            return Err(LimitError::new(
                "a governor limiter is a single limit, and cannot charge several all or none",
            ));
        }
        self.check(&first.limit)?;
        let mut status = LimitStatus::fresh(first.limit);
        let spent = match u32::try_from(first.cost).map(NonZeroU32::new) {
            // governor multiplies the cost by the interval without checks.
            Ok(Some(cost)) if cost <= self.quota.burst_size() => {
                self.limiter.spend(&first.key, cost)
            }
            Ok(None) => Ok(self.quota.burst_size().get()),
            _ => Err(None),
        };
        let verdict = match spent {
            Ok(remaining) => {
                let missing = self.quota.burst_size().get() - remaining;
                // governor reports whole tokens: the next one comes within one interval.
                let next = self.quota.replenish_interval();
                status.window = Some(whole_micros(next * missing.min(1)));
                status.reset = Some(whole_micros(next * missing));
                status.remaining = remaining.into();
                status.charged = first.cost;
                Verdict::Admit { wait: Duration::ZERO }
            }
            Err(retry) => {
                let retry_after = retry.map(whole_micros);
                let whole = self.quota.replenish_interval() * self.quota.burst_size().get();
                status.remaining = 0;
                status.window = retry_after.or(Some(whole_micros(whole)));
                status.reset = Some(whole_micros(whole));
                status.retry = retry_after;
                status.refused = true;
                match retry {
                    Some(_) => Verdict::Refuse { retry_after },
                    None => Verdict::Never,
                }
            }
        };
        let spent = first.limit.capacity() - status.remaining;
        status.soft = first.limit.soft_limit().is_some_and(|soft| spent > soft);
        Ok(Outcome::from_parts(verdict, [status]))
    }
}

/// A governor limiter that [`Around`] can wrap.
pub trait Check {
    /// Spends `cost` on `key`, if the limiter has keys, and returns how much remains.
    ///
    /// # Errors
    ///
    /// How long until it would be admitted; `None` if that is never.
    fn spend(&self, key: &KeyBuf, cost: NonZeroU32) -> Result<u32, Option<Duration>>;
}

impl<S, C> Check for RateLimiter<NotKeyed, S, C, StateInformationMiddleware>
where
    S: DirectStateStore,
    C: Clock,
{
    fn spend(&self, _: &KeyBuf, cost: NonZeroU32) -> Result<u32, Option<Duration>> {
        remaining(self.check_n(cost), self.clock())
    }
}

impl<S, C> Check for RateLimiter<KeyBuf, S, C, StateInformationMiddleware>
where
    S: KeyedStateStore<KeyBuf>,
    C: Clock,
{
    fn spend(&self, key: &KeyBuf, cost: NonZeroU32) -> Result<u32, Option<Duration>> {
        remaining(self.check_key_n(key, cost), self.clock())
    }
}

type CheckResult<P> = Result<Result<StateSnapshot, NotUntil<P>>, InsufficientCapacity>;

fn remaining<C: Clock>(
    checked: CheckResult<C::Instant>,
    clock: &C,
) -> Result<u32, Option<Duration>> {
    match checked {
        Ok(Ok(snapshot)) => Ok(snapshot.remaining_burst_capacity()),
        Ok(Err(until)) => Err(Some(until.wait_time_from(clock.now()))),
        Err(_) => Err(None),
    }
}

/// Rounded up: a tick earlier it is refused.
fn whole_micros(time: Duration) -> Duration {
    micros(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

const NO_PEEK: LimitError =
    LimitError::new("governor cannot look at a limiter without spending from it");
const NO_RESET: LimitError = LimitError::new("governor cannot reset a key");

impl<L: Check> Store for Around<L> {
    type Future = Ready<Result<Outcome, StoreError>>;

    fn take(&self, charge: &Charge) -> Answer<Self::Future> {
        Answer::Now(self.spend(charge).map_err(StoreError::unsupported))
    }

    fn peek(&self, _: &Charge) -> Answer<Self::Future> {
        Answer::Now(Err(StoreError::unsupported(NO_PEEK)))
    }

    fn reset(&self, _: &Charge) -> Answer<Self::Future> {
        Answer::Now(Err(StoreError::unsupported(NO_RESET)))
    }

    /// Does nothing: governor takes nothing back.
    fn settle(&self, _: &Debit, _: &Receipt, _: u64) {}

    /// Does nothing: governor charges nothing beyond its quota.
    fn follow(&self, _: &Debit, _: u64, _: u64) {}

    /// Does nothing, as [`follow`](Self::follow).
    fn follow_status(&self, _: &Debit, _: &LimitStatus) {}

    fn clock(&self) -> sluicegate_core::clock::Clock {
        sluicegate_core::clock::Clock::machine()
    }

    fn check(&self, limit: &Limit) -> Result<(), LimitError> {
        if quota(limit)? == self.quota {
            return Ok(());
        }
        Err(LimitError::new("the wrapped governor limiter was made with another quota"))
    }
}

impl<L> Clone for Around<L> {
    fn clone(&self) -> Self {
        Self { limiter: Arc::clone(&self.limiter), quota: self.quota }
    }
}

impl<L> fmt::Debug for Around<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Around").field("quota", &self.quota).finish_non_exhaustive()
    }
}
