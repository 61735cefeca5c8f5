//! One bucket, decided by governor.
//!
//! governor's state is the time at which a bucket will be full again. Seen from the present, that is a debt that drains. So
//! governor is called with a clock that always shows zero, and this crate keeps the debt and the time at which it was
//! written. Then a clock that steps back neither grants nor takes tokens.

use std::cell::Cell;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{NotKeyed, StateStore};
use governor::{Quota, RateLimiter};
use sluicegate_core::Limit;
use sluicegate_core::adapter::{Keys, Receipt};
use sluicegate_core::limit::{LimitError, LimitStatus};

use crate::quota::quota;

/// The largest debt in nanoseconds, reached by charges beyond the limit. governor adds to it without checks.
const MAX_DEBT: u64 = 1 << 62;

/// The state of a key: the debt in nanoseconds, and when it was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) written: u64,
    pub(crate) debt: u64,
}

/// A limit that governor supports.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bucket {
    limit: Limit,
    quota: Quota,
    /// The weight of a token, in nanoseconds.
    unit: u64,
    /// The largest debt that is admitted.
    cap: u64,
}

/// The answer of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Admitted, with the new debt.
    Admit(u64),
    /// Refused for this many nanoseconds.
    Wait(u64),
    /// The cost is more than the bucket ever holds.
    Never,
}

impl Row {
    pub(crate) fn debt(self, now: u64) -> u64 {
        self.debt.saturating_sub(now.saturating_sub(self.written))
    }

    /// Adjusts the row to a clock that may have stepped back, so that the debt drains at once, and not only when the clock
    /// has caught up.
    pub(crate) fn follow(self, now: u64) -> Self {
        Self { written: self.written.min(now), ..self }
    }

    pub(crate) fn receipt(self) -> Receipt {
        Receipt::from_words([self.written, self.debt])
    }

    fn of(receipt: &Receipt) -> Self {
        let [written, debt] = receipt.words();
        Self { written, debt }
    }
}

impl Bucket {
    pub(crate) fn new(limit: &Limit) -> Result<Self, LimitError> {
        let quota = quota(limit)?;
        let unit = quota.replenish_interval().as_nanos() as u64;
        let cap = unit * u64::from(quota.burst_size().get());
        Ok(Self { limit: *limit, quota, unit, cap })
    }

    /// The decision of governor.
    pub(crate) fn ask(&self, debt: u64, cost: u64) -> Answer {
        // governor multiplies the cost by the unit without checks.
        if cost > self.limit.capacity() {
            return Answer::Never;
        }
        let Some(cost) = u32::try_from(cost).ok().and_then(NonZeroU32::new) else {
            return match debt.saturating_sub(self.cap) {
                0 => Answer::Admit(debt),
                wait => Answer::Wait(wait),
            };
        };
        let limiter = RateLimiter::<_, _, _, NoOpMiddleware<Nanos>>::new(
            self.quota,
            Debt(Cell::new(debt)),
            Now,
        );
        match limiter.check_n(cost) {
            Ok(Ok(())) => Answer::Admit(limiter.into_state_store().0.into_inner()),
            Ok(Err(until)) => Answer::Wait(until.wait_time_from(Nanos::new(0)).as_nanos() as u64),
            Err(_) => Answer::Never,
        }
    }

    /// The debt after booking `cost` for a request that proceeds after `wait`. `None` if that is too far ahead, or if the
    /// request waits for another limit for longer than the debt and than half of the bucket take to drain: like the buckets
    /// of `Memory`, so that waiting requests do not block a bucket that many share.
    pub(crate) fn book(&self, debt: u64, cost: u64, wait: Duration, keys: Keys) -> Option<u64> {
        let nanos = u64::try_from(wait.as_nanos()).ok()?;
        let fits_in = debt.checked_add(self.weight(cost))?.saturating_sub(self.cap);
        let another = keys == Keys::Several && wait > micros(fits_in);
        if another && nanos > debt.max(self.cap / 2) {
            return None;
        }
        // The debt begins when the request proceeds.
        let begins = if nanos > fits_in { debt.max(nanos) } else { debt };
        begins.checked_add(self.weight(cost)).filter(|debt| *debt <= MAX_DEBT)
    }

    /// Charges a cost that was spent already, beyond the limit if necessary.
    pub(crate) fn add(&self, debt: u64, cost: u64) -> u64 {
        debt.saturating_add(self.weight(cost)).min(MAX_DEBT)
    }

    /// The debt after a charge that another store has decided: up to twice the bucket, as
    /// [`Fallback`](sluicegate_core::store::Fallback) describes.
    pub(crate) fn follow(&self, debt: u64, cost: u64) -> u64 {
        self.add(debt, cost).min(debt.max(2 * self.cap))
    }

    /// The debt after another store has reported that a key of the `whole` limit, of which this is a part, is full again
    /// after `reset`: a part that is used as much, and beyond half of it up to twice its size, like the buckets of
    /// `Memory`.
    pub(crate) fn follow_status(&self, debt: u64, whole: &Self, reset: Option<Duration>) -> u64 {
        let used = reset.map_or(0.0, |reset| reset.as_nanos() as f64 / whole.cap as f64).min(1.0);
        debt.max((self.cap as f64 * used.max(3.0 * used - 1.0)) as u64)
    }

    /// The row after giving back `back` of the charge that wrote `receipt`, as far as it has not drained. If requests are
    /// booked ahead, only the last of them can give its place back.
    pub(crate) fn give(&self, row: Row, receipt: &Receipt, now: u64, back: u64) -> Row {
        let debt = row.debt(now);
        let receipt = Row::of(receipt);
        if debt > self.cap && row != receipt {
            return row;
        }
        let own = receipt.debt(now).min(self.weight(back)).min(debt);
        Row { debt: row.debt - own, ..row }
    }

    /// The status of a key with `debt`, for a request of `cost`.
    pub(crate) fn status(&self, debt: u64, cost: u64) -> LimitStatus {
        let remaining = self.cap.saturating_sub(debt) / self.unit;
        let until = |cost: u64| {
            let fits = cost <= self.limit.capacity();
            fits.then(|| micros(debt.saturating_add(self.weight(cost)).saturating_sub(self.cap)))
        };
        let mut status = LimitStatus::fresh(self.limit);
        status.remaining = remaining;
        if remaining < self.limit.capacity() {
            status.window = until(remaining + 1);
        }
        status.reset = Some(micros(debt));
        status.retry = until(cost);
        let spent = self.limit.capacity() - remaining;
        status.soft = self.limit.soft_limit().is_some_and(|soft| spent > soft);
        status
    }

    fn weight(&self, cost: u64) -> u64 {
        cost.saturating_mul(self.unit)
    }
}

/// Whole microseconds, rounded up: a tick earlier the request is refused.
pub(crate) fn micros(nanos: u64) -> Duration {
    Duration::from_micros(nanos.div_ceil(1_000))
}

/// The state that governor reads and writes.
struct Debt(Cell<u64>);

impl StateStore for Debt {
    type Key = NotKeyed;

    fn measure_and_replace<T, F, E>(&self, _: &NotKeyed, measure: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let (outcome, debt) = measure(Some(Nanos::new(self.0.get())))?;
        self.0.set(debt.as_u64());
        Ok(outcome)
    }
}

/// A clock that always shows zero: governor is asked about the debt of this moment, and nothing else
/// happens at any other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now;

impl Clock for Now {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        Nanos::new(0)
    }
}
