use std::sync::Arc;

use sluicegate_core::adapter::{Charge, Debit, Receipt};

use super::ledger::Places;

/// Places that are about to be charged or given back. They count as held until this is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    places: Arc<Places>,
    turn: u64,
    /// The index of the debit in its charge, the key of the row, and the number of places.
    rows: Vec<(usize, Vec<u8>, u64)>,
}

impl Claim {
    /// Counts the places that `charge` takes in rows with these `keys`. `None` if it takes none.
    pub(crate) fn charging(
        places: &Arc<Places>,
        charge: &Charge,
        keys: &[Vec<u8>],
        now: u64,
    ) -> Option<Self> {
        let holds = |debit: &Debit| debit.limit.is_held() && debit.cost > 0;
        if !charge.debits().any(holds) {
            return None;
        }
        let rows = charge.debits().zip(keys).enumerate().filter(|(_, (debit, _))| holds(debit));
        let rows: Vec<_> =
            rows.map(|(index, (debit, key))| (index, key.clone(), debit.cost)).collect();
        let turn = places.raise(&rows, now);
        Some(Self { places: Arc::clone(places), turn, rows })
    }

    /// Places that are about to be given back, and count until the server knows.
    pub(crate) fn returning(places: &Arc<Places>, key: Vec<u8>, count: u64) -> Self {
        Self { places: Arc::clone(places), turn: 0, rows: vec![(0, key, count)] }
    }

    /// The turn in which the places were claimed.
    pub(crate) const fn turn(&self) -> u64 {
        self.turn
    }

    /// The request was admitted. Debits whose receipt, in the order of the debits, is not void were charged: their
    /// places are held until they are [returned](Self::returning).
    pub(crate) fn admitted(&mut self, receipts: &[Receipt]) {
        self.rows.retain(|(index, ..)| receipts.get(*index).is_none_or(Receipt::is_void));
    }

    /// It may never be known whether the server counts these places. The next renewal tells it the count.
    pub(crate) fn doubt(&self) {
        self.places.doubt(self.rows.iter().map(|(_, key, _)| key));
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.places.lower(&self.rows);
    }
}
