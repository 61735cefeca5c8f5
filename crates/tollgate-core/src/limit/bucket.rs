//! Token bucket and leaky bucket: one arithmetic, the generic cell rate algorithm (ITU-T I.371) in
//! the form of a debt that drains.
//!
//! A token weighs `unit`, the debt drains by `drain` a tick; `count / period = drain / unit` reduced
//! by their greatest common divisor, so nothing is ever rounded: 3 per second is 3 per second for
//! ever. The cell is `[tick of the last write, debt then]`. A token bucket admits while the debt
//! fits below `cap`; a leaky bucket is the same, and lets a request leave only when the debt has
//! drained to `free`.

use super::exact::{EXACT, TICKS, gcd, micros_until};
use super::{Cell, Enter};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Bucket {
    /// What one token weighs.
    unit: u64,
    /// What drains in one tick.
    drain: u64,
    /// Microseconds in a tick.
    tick: u64,
    /// The most debt that admits: the burst, or the place on the way out and the queue before it.
    cap: u64,
    /// The most debt that leaves at once; less than `cap` in a leaky bucket.
    free: u64,
}

impl Bucket {
    /// `None` when no tick keeps the products exact.
    pub(super) const fn new(count: u64, period: u64, cap: u64, free: u64) -> Option<Self> {
        let mut i = 0;
        while i < TICKS.len() {
            let tick = TICKS[i];
            if period % tick != 0 {
                break;
            }
            let ticks = period / tick;
            let divisor = gcd(count, ticks);
            let (unit, drain) = (ticks / divisor, count / divisor);
            if let Some(heavy) = cap.checked_mul(unit) {
                // The debt, one more cost and the rounding of a division must fit together.
                if heavy < EXACT / 2 && drain < EXACT / 2 && heavy * 2 + drain < EXACT {
                    return Some(Self { unit, drain, tick, cap: heavy, free: free * unit });
                }
            }
            i += 1;
        }
        None
    }

    /// One each `gap` microseconds, whatever it costs.
    pub(super) const fn gap(gap: u64) -> Self {
        Self { unit: gap, drain: 1, tick: 1, cap: gap, free: gap }
    }

    /// The numbers that give a cell its meaning.
    pub(super) const fn scale(&self) -> [u64; 3] {
        [self.unit, self.drain, self.tick]
    }

    /// When the request may come in.
    pub(super) fn enter(&self, cell: Cell, now: u64, cost: u64, from: u64) -> Enter {
        match self.after(cell, now, cost) {
            Some(after) => Enter::At(from.max(self.drained_to(self.cap, after, now))),
            None => Enter::Never,
        }
    }

    /// When a request that comes in now may leave.
    pub(super) fn leave(&self, cell: Cell, now: u64, cost: u64) -> u64 {
        self.after(cell, now, cost).map_or(0, |after| self.drained_to(self.free, after, now))
    }

    pub(super) fn spend(&self, cell: &mut Cell, now: u64, cost: u64, wait: u64) {
        let mut debt = self.debt(*cell, now);
        if wait > self.leave(*cell, now, cost) {
            // Another limit holds the request back: the debt begins when it leaves.
            let ticks = (now + wait) / self.tick - now / self.tick;
            debt = debt.max(ticks.saturating_mul(self.drain));
        }
        *cell = [now / self.tick, self.bounded(debt, cost)];
    }

    /// Whether the debt of a place `wait` ahead stays exact.
    pub(super) fn books(&self, cell: Cell, now: u64, cost: u64, wait: u64) -> bool {
        let idle = ((now + wait) / self.tick - now / self.tick).saturating_mul(self.drain);
        let debt = self.debt(cell, now).max(idle);
        debt.saturating_add(cost.saturating_mul(self.unit)) < EXACT - self.cap
    }

    /// Follows a clock that stepped back: what drains from here on does so at once, not only when the
    /// clock shows again what it showed before.
    pub(super) fn follow(&self, cell: &mut Cell, now: u64) {
        if cell[0].saturating_mul(self.tick) > now {
            cell[0] = now / self.tick;
        }
    }

    /// Charges what has been spent already, beyond the limit if need be.
    pub(super) fn force(&self, cell: &mut Cell, now: u64, cost: u64) {
        let debt = self.debt(*cell, now);
        *cell = [now / self.tick, self.bounded(debt, cost)];
    }

    /// Gives back what of this request has not drained. Where others wait behind it, their places
    /// were booked on its account, so only the last in line can give its place back.
    pub(super) fn give(&self, cell: &mut Cell, mark: Cell, now: u64, back: u64) {
        let debt = self.debt(*cell, now);
        if debt > self.free && *cell != mark {
            return;
        }
        let own = self.debt(mark, now).min(back.saturating_mul(self.unit));
        cell[1] -= own.min(debt);
    }

    pub(super) fn remaining(&self, cell: Cell, now: u64) -> u64 {
        self.cap.saturating_sub(self.debt(cell, now)) / self.unit
    }

    pub(super) fn fresh_in(&self, cell: Cell, now: u64) -> u64 {
        self.drained_to(0, self.debt(cell, now), now)
    }

    /// A clock that stepped back drains nothing and takes nothing away.
    fn debt(&self, [last, debt]: Cell, now: u64) -> u64 {
        let passed = (now / self.tick).saturating_sub(last);
        debt.saturating_sub(passed.saturating_mul(self.drain))
    }

    fn after(&self, cell: Cell, now: u64, cost: u64) -> Option<u64> {
        let cost = cost.checked_mul(self.unit).filter(|cost| *cost <= self.cap)?;
        Some(self.debt(cell, now) + cost)
    }

    fn drained_to(&self, level: u64, debt: u64, now: u64) -> u64 {
        micros_until(now, debt.saturating_sub(level).div_ceil(self.drain), self.tick)
    }

    /// The debt with `cost` added, kept where one more cost still fits below 2^53.
    fn bounded(&self, debt: u64, cost: u64) -> u64 {
        debt.saturating_add(cost.saturating_mul(self.unit)).min(EXACT - 1 - self.cap)
    }
}
