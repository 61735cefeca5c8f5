use crate::amount::Amount;

/// What may be used, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Terms {
    /// What may be used before `until`.
    pub(super) held: Amount,
    /// When the lease ends, in microseconds.
    pub(super) until: u64,
    /// What may be used after that.
    pub(super) then: Amount,
}

impl Terms {
    pub(super) const NOTHING: Self = Self { held: Amount::ZERO, until: 0, then: Amount::ZERO };

    /// What may be used at `now`.
    pub(super) const fn at(&self, now: u64) -> Amount {
        if now < self.until { self.held } else { self.then }
    }

    /// What may be used between two moments, and for how many microseconds, in order.
    pub(super) fn between(&self, from: u64, to: u64) -> [(Amount, u64); 2] {
        let middle = self.until.clamp(from, to);
        [(self.held, middle - from), (self.then, to - middle)]
    }

    /// After how many microseconds so many parts have flowed, at [`Amount::millionths`] parts a microsecond. `None`
    /// if that is never.
    pub(super) fn flows_in(&self, now: u64, parts: u128) -> Option<u64> {
        let left = self.until.saturating_sub(now);
        let before = u128::from(self.held.millionths()) * u128::from(left);
        if parts <= before {
            return time_for(parts, self.held);
        }
        time_for(parts - before, self.then)?.checked_add(left)
    }
}

/// In microseconds, rounded up.
pub(super) fn time_for(parts: u128, capacity: Amount) -> Option<u64> {
    let time = match u128::from(capacity.millionths()) {
        _ if parts == 0 => 0,
        0 => return None,
        millionths => parts.div_ceil(millionths),
    };
    u64::try_from(time).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_flows_is_counted_over_the_end_of_the_lease() {
        let terms = Terms { held: Amount::units(10), until: 1_000, then: Amount::units(1) };
        assert_eq!((terms.at(999), terms.at(1_000)), (Amount::units(10), Amount::units(1)));
        let parts = |micros: u128| micros * 1_000_000;
        assert_eq!(terms.flows_in(900, 0), Some(0));
        assert_eq!(terms.flows_in(900, parts(1_000)), Some(100));
        assert_eq!(terms.flows_in(900, parts(1_000) + 1), Some(101));
        assert_eq!(terms.flows_in(900, parts(1_005)), Some(105));
        assert_eq!(Terms { then: Amount::ZERO, ..terms }.flows_in(900, parts(1_001)), None);
        assert_eq!(Terms::NOTHING.flows_in(900, 1), None);
    }
}
