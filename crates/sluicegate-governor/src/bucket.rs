//! One bucket, decided by governor.
//!
//! governor remembers when a bucket will be full again. Counted from the moment of asking that is a
//! debt which drains, so it is asked with a clock that shows zero, and the debt is kept here together
//! with the time of writing: a clock that steps back then neither grants nor takes away.

use std::cell::Cell;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{NotKeyed, StateStore};
use governor::{Quota, RateLimiter};
use sluicegate_core::Limit;
use sluicegate_core::adapter::{Keys, Receipt};
use sluicegate_core::limit::{LimitError, LimitStatus};

use crate::clock::Now;
use crate::quota::quota;

/// Most debt that is ever written down, in nanoseconds, by charges beyond the limit: governor adds to
/// it unchecked.
const MOST: u64 = 1 << 62;

/// What is remembered of a key: the debt in nanoseconds, and when it was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) written: u64,
    pub(crate) debt: u64,
}

/// A limit that governor can keep.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bucket {
    limit: Limit,
    quota: Quota,
    /// What a token weighs, in nanoseconds.
    unit: u64,
    /// The most debt that admits.
    cap: u64,
}

/// How a bucket answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Admitted; the debt is this from now on.
    Admit(u64),
    /// Refused for so many nanoseconds.
    Wait(u64),
    /// More than it ever holds.
    Never,
}

impl Row {
    pub(crate) fn debt(self, now: u64) -> u64 {
        self.debt.saturating_sub(now.saturating_sub(self.written))
    }

    /// The row as seen by a clock that may have stepped back: from here on it drains at once, not only
    /// when the clock shows again what it showed before.
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

    /// Asks governor.
    pub(crate) fn ask(&self, debt: u64, cost: u64) -> Answer {
        // governor multiplies whatever it is given by the unit, and wraps.
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

    /// The debt with `cost` charged to a request that leaves `wait` from now; `None` if that is too far
    /// ahead to be written down, or if another limit holds it back and it would keep more than half of
    /// the bucket from others meanwhile. One who waits must not shut a bucket that many share.
    pub(crate) fn book(&self, debt: u64, cost: u64, wait: Duration, keys: Keys) -> Option<u64> {
        let nanos = u64::try_from(wait.as_nanos()).ok()?;
        let fits_in = debt.checked_add(self.weight(cost))?.saturating_sub(self.cap);
        // The debt begins when the request leaves.
        let kept = if nanos > fits_in { nanos.saturating_sub(debt) } else { 0 };
        let another = keys == Keys::Several && wait > micros(fits_in);
        if another && kept > self.cap / 2 {
            return None;
        }
        (debt + kept).checked_add(self.weight(cost)).filter(|debt| *debt <= MOST)
    }

    /// Charges what has been spent already, beyond the limit if need be.
    pub(crate) fn add(&self, debt: u64, cost: u64) -> u64 {
        debt.saturating_add(self.weight(cost)).min(MOST)
    }

    /// The row once `back` of the charge that wrote `receipt` is given back: as much of it as has not
    /// drained. Where others have booked behind it, only the last in line can give its place back.
    pub(crate) fn give(&self, row: Row, receipt: &Receipt, now: u64, back: u64) -> Row {
        let debt = row.debt(now);
        let receipt = Row::of(receipt);
        if debt > self.cap && row != receipt {
            return row;
        }
        let own = receipt.debt(now).min(self.weight(back)).min(debt);
        Row { debt: row.debt - own, ..row }
    }

    /// How a key with `debt` stands when it is to spend `cost`.
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

/// Whole microseconds, rounded up: a tick earlier it is refused.
pub(crate) fn micros(nanos: u64) -> Duration {
    Duration::from_micros(nanos.div_ceil(1_000))
}

/// The state that governor works on.
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
