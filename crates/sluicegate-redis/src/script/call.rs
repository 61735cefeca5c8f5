use std::time::Duration;

use sluicegate_core::adapter::{Keys, Receipt};

use super::caller::Caller;
use super::operation::Operation;
use super::pack;
use super::row::Row;
use super::source::{SETTLE, SETTLE_WITH_LOG, SPEND, Script, TAKE, TAKE_WITH_LOG};

/// A script with its arguments: the keys of the rows, and one packed argument.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Call<'a> {
    pub(super) script: &'static Script,
    pub(super) rows: &'a [Row<'a>],
    /// Keys that belong to no debit.
    pub(super) more_keys: Vec<Vec<u8>>,
    pub(super) args: Vec<u8>,
}

impl<'a> Call<'a> {
    /// Charges all rows, or none.
    #[cfg(test)]
    pub(crate) fn take(
        rows: &'a [Row<'a>],
        patience: Option<Duration>,
        keys: Keys,
        by: impl Into<Caller>,
    ) -> Self {
        Self::of(Operation::Take, rows, patience, keys, by)
    }

    /// Answers like [`take`](Self::take), without charging anything.
    #[cfg(test)]
    pub(crate) fn peek(
        rows: &'a [Row<'a>],
        patience: Option<Duration>,
        keys: Keys,
        by: impl Into<Caller>,
    ) -> Self {
        Self::of(Operation::Peek, rows, patience, keys, by)
    }

    /// Forgets everything spent that is not held, and answers like [`peek`](Self::peek).
    #[cfg(test)]
    pub(crate) fn reset(
        rows: &'a [Row<'a>],
        patience: Option<Duration>,
        keys: Keys,
        by: impl Into<Caller>,
    ) -> Self {
        Self::of(Operation::Reset, rows, patience, keys, by)
    }

    /// An operation on several rows: `Take` charges all or none; `Peek` answers like `Take` without charging; `Reset`
    /// forgets everything spent that is not held, and answers like `Peek`.
    pub(crate) fn of(
        operation: Operation,
        rows: &'a [Row<'a>],
        patience: Option<Duration>,
        keys: Keys,
        by: impl Into<Caller>,
    ) -> Self {
        let by = by.into();
        let (script, args) = match (operation, rows, patience) {
            (Operation::Take, [row], None) if pack::is_plain(row) => {
                (&*SPEND, pack::spend(row, by))
            }
            _ => {
                let script = if rows.iter().any(pack::has_log) { &TAKE_WITH_LOG } else { &TAKE };
                (&**script, pack::take(operation, rows, patience, keys, by))
            }
        };
        Self { script, rows, more_keys: Vec::new(), args }
    }

    /// Changes the charge that wrote `receipt` to `spent`. The script answers a number without a meaning.
    pub(crate) fn settle(
        row: &'a Row<'a>,
        receipt: &Receipt,
        spent: u64,
        by: impl Into<Caller>,
    ) -> Self {
        let args = pack::settle(row, receipt, spent, by.into());
        let script = if pack::has_log(row) { &SETTLE_WITH_LOG } else { &SETTLE };
        let more_keys = row.lease_key().into_iter().collect();
        Self { script, rows: std::slice::from_ref(row), more_keys, args }
    }

    pub(crate) fn script(&self) -> &'static Script {
        self.script
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.rows.iter().map(|row| row.key).chain(self.more_keys.iter().map(Vec::as_slice))
    }

    /// Whether several of these calls can share one run of the script. The run is given all keys, equal ones side
    /// by side. Its argument is the clock, the same for all, then for each distinct debit the number of calls with
    /// it, and the debit.
    pub(crate) fn can_be_batched(&self) -> bool {
        std::ptr::eq(self.script, &*SPEND)
    }

    /// `ARGV[1]`, the only argument.
    pub(crate) fn args(&self) -> &[u8] {
        &self.args
    }
}
