use crate::amount::Amount;

/// Whether clients want much more than the parent of their server knows, so that nobody waits for a refresh interval at
/// each level of a tree.
#[derive(Debug, Clone, Default)]
pub(super) struct Rise {
    /// What clients want now, what the parent was told that they want, and for what it has granted something.
    wanted: Amount,
    told: Amount,
    supplied: Amount,
    /// Since when they want much more than that.
    since: Option<u64>,
}

/// Clients ask more often for so long, in milliseconds, if nothing comes from the parent.
const AWAITED: u64 = 10_000;

impl Rise {
    pub(super) fn wants(&mut self, now: u64, wanted: Amount) {
        self.wanted = wanted;
        self.since = self.since.or(Some(now)).filter(|_| is_much_more(wanted, self.supplied));
    }

    pub(super) fn told(&mut self) {
        self.told = self.wanted;
    }

    /// The parent has answered what it was told.
    pub(super) fn supplied(&mut self) {
        self.supplied = self.told;
        self.since = self.since.filter(|_| is_much_more(self.wanted, self.supplied));
    }

    /// Whether clients want much more than the parent was told and than it has granted.
    pub(super) fn is_untold(&self, capacity: Amount) -> bool {
        is_much_more(self.wanted, self.told) && self.wanted > capacity
    }

    /// Whether the parent will soon answer.
    pub(super) fn is_awaited(&self, now: u64) -> bool {
        self.since.is_some_and(|since| now < since.saturating_add(AWAITED))
    }
}

fn is_much_more(wanted: Amount, before: Amount) -> bool {
    wanted.millionths() > before.millionths().saturating_add(before.millionths() / 4)
}
