//! Decisions told in full, for tests that look at them.

use std::time::Duration;

use super::{Decision, Keys, Slot};

pub(crate) fn decide(
    slots: &mut [Slot<'_>],
    now: u64,
    patience: Option<Duration>,
    keys: Keys,
) -> Decision {
    let outcome = super::decide(slots, now, patience, keys);
    outcome.about(slots.iter().map(|slot| (slot.limit, slot.cost)))
}

pub(crate) fn preview(slots: &mut [Slot<'_>], now: u64, keys: Keys) -> Decision {
    let outcome = super::preview(slots, now, None, keys);
    outcome.about(slots.iter().map(|slot| (slot.limit, slot.cost)))
}
