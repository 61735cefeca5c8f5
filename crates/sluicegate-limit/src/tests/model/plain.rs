//! What each algorithm stores in the model.

use std::collections::BTreeMap;

use crate::Limit;
use crate::limit::AlgorithmSpec;

#[derive(Debug, Clone)]
pub(super) enum Plain {
    /// Debt in tokens times the period, as of the tick `at`.
    Bucket { at: u64, debt: i128, tick: u64, free: u64 },
    /// The last refill of a bucket that is not full.
    Stepped { anchor: Option<u64>, spent: i128 },
    /// What is spent in each window, counted from `origin`. A request never enters before the last of them. So of the
    /// windows that were skipped, only the newest is stored, as a full one.
    Fixed { origin: Option<u64>, spent: BTreeMap<u64, u64> },
    /// What is spent in each window. Of the windows before the last one, only the newest is stored, as [`FULL`].
    Sliding { spent: BTreeMap<u64, i128>, tick: u64 },
    /// All charges ever made: when, and how much.
    Log { stamps: Vec<(u64, u64)> },
}

/// A window that holds the count of whichever limit reads it.
pub(super) const FULL: i128 = i128::MAX;

/// The last window with anything spent in it, and `here` if there is no later one.
pub(super) fn last(spent: &BTreeMap<u64, i128>, here: u64) -> u64 {
    spent.keys().copied().max().unwrap_or(here).max(here)
}

/// Whoever writes to the window `here` knows the count, so the window before holds that count from then on.
pub(super) fn count_full(spent: &mut BTreeMap<u64, i128>, here: u64, count: u64) {
    if let Some(before) = here.checked_sub(1).and_then(|before| spent.get_mut(&before)) {
        *before = if *before == FULL { i128::from(count) } else { *before };
    }
}

/// Adds the refills that are due.
pub(super) fn refill(anchor: &mut Option<u64>, spent: &mut i128, limit: &Limit, now: u64) {
    let Some(last) = *anchor else { return };
    let steps = (now - last) / limit.period;
    *spent = (*spent - i128::from(steps) * i128::from(limit.count)).max(0);
    *anchor = (*spent > 0).then_some(last + steps * limit.period);
}

/// What is spent in the window `here` and the following ones. Each of them is full except the last.
pub(super) fn booked(spent: &BTreeMap<u64, u64>, here: u64, count: u64) -> u64 {
    let last = spent.iter().rev().find(|(window, spent)| **window >= here && **spent > 0);
    last.map_or(0, |(window, spent)| (window - here) * count + spent)
}

/// What is spent according to the two counts.
pub(super) fn overlap(spent: &BTreeMap<u64, i128>, ticks: u64, period: u64, count: u64) -> i128 {
    let (index, left) = (ticks / period, i128::from(period - ticks % period));
    let of = |index: Option<u64>| index.and_then(|index| spent.get(&index)).copied().unwrap_or(0);
    let of = |index| if of(index) == FULL { i128::from(count) } else { of(index) };
    of(Some(index)) + of(index.checked_sub(1)) * left / i128::from(period)
}

/// Windows that begin with the first request begin anew when nothing is spent in the current or a later one.
pub(super) fn restart(
    spec: AlgorithmSpec,
    origin: &mut Option<u64>,
    spent: &mut BTreeMap<u64, u64>,
    now: u64,
    period: u64,
) {
    let Some(start) = *origin else { return };
    let here = (now - start) / period;
    let over = spent.iter().all(|(window, spent)| *window < here || *spent == 0);
    if spec == (AlgorithmSpec::FixedWindow { from_first: true }) && over {
        *origin = None;
        spent.clear();
    }
}
