use std::sync::Arc;

use sluicegate_core::adapter::Receipt;

use super::Places;

/// Places that are asked for, or about to be given back: they count as held until this is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    places: Arc<Places>,
    turn: u64,
    /// Which of what the charge owes, the row's key, and how many.
    rows: Vec<(usize, Vec<u8>, u64)>,
}

impl Claim {
    pub(super) fn new(places: &Arc<Places>, turn: u64, rows: Vec<(usize, Vec<u8>, u64)>) -> Self {
        Self { places: Arc::clone(places), turn, rows }
    }

    /// The turn in which they are asked for.
    pub(crate) const fn turn(&self) -> u64 {
        self.turn
    }

    /// The request was admitted, and charged where these `receipts`, in the order of what was owed, are not void:
    /// that is held until it is [given back](Places::returned).
    pub(crate) fn admitted(&mut self, receipts: &[Receipt]) {
        self.rows.retain(|(at, ..)| receipts.get(*at).is_none_or(Receipt::is_void));
    }

    /// Whether the server counts these places may never be known: it is told at the next renewal.
    pub(crate) fn doubt(&self) {
        let mut held = self.places.lock();
        self.rows.iter().for_each(|(_, key, _)| held.doubt(key));
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut held = self.places.lock();
        self.rows.iter().for_each(|(_, key, count)| held.lower(key, *count));
    }
}
