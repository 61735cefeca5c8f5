use super::terms::Terms;

/// Places that follow a lease. What is in use when a grant shrinks stays in use until it ends.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Gauge {
    in_use: u64,
    /// What was refused in the present slot of what is learned.
    refused: u64,
    slot: u64,
}

impl Gauge {
    /// Takes `cost` places, if they are free.
    pub(super) fn take(&mut self, now: u64, terms: &Terms, cost: u64) -> bool {
        let is_free = self.is_free(now, terms, cost);
        if is_free {
            self.in_use += cost;
        }
        is_free
    }

    pub(super) fn is_free(&self, now: u64, terms: &Terms, cost: u64) -> bool {
        let places = terms.at(now).as_units();
        self.in_use.checked_add(cost).is_some_and(|needed| needed <= places)
    }

    /// Remembers `refused` places that were asked for in vain, and says what is needed at once.
    pub(super) fn needs(&mut self, slot: u64, refused: u64) -> u64 {
        if slot != self.slot {
            (self.slot, self.refused) = (slot, 0);
        }
        self.refused = self.refused.saturating_add(refused);
        self.in_use.saturating_add(self.refused)
    }

    pub(super) fn give(&mut self, back: u64) {
        self.in_use = self.in_use.saturating_sub(back);
    }

    pub(super) fn add(&mut self, more: u64) {
        self.in_use = self.in_use.saturating_add(more);
    }

    pub(super) const fn in_use(&self) -> u64 {
        self.in_use
    }

    pub(super) fn left(&self, now: u64, terms: &Terms) -> u64 {
        terms.at(now).as_units().saturating_sub(self.in_use)
    }
}
