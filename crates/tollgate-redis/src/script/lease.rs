//! Shares of a limit, taken out to be spent elsewhere.
//!
//! Each token of a share is good until the debt that it added has drained, first in, first out; in a fixed
//! window until that ends. Whoever spends them no later than that never exceeds the limit.

use std::sync::LazyLock;
use std::time::Duration;

use tollgate_core::Limit;
use tollgate_core::remote::{Numbers, Shape};

use super::pack::{Packed, shape_of};
use super::reply::{Bytes, Malformed};
use super::{Asker, Call, Row, Script};

static LEASE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("lease.lua")));

/// What came of a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lease {
    /// How much was charged; 0 where less than the least was there.
    pub(crate) taken: u64,
    /// The cell as it is now: the mark of what was charged.
    pub(crate) cell: [u64; 2],
    /// By the clock of the store, in microseconds since the Unix epoch.
    pub(crate) now: u64,
    /// Where nothing was charged: until the least is there; `None` where it never is.
    pub(crate) retry_after: Option<Duration>,
}

/// Whether shares of a limit can be taken out: those of a token bucket that refills continuously, and of
/// a fixed window, with nothing besides.
pub(crate) fn can_lease(limit: &Limit) -> bool {
    let numbers = Numbers::of(limit);
    numbers.plain && matches!(numbers.shape, Shape::Bucket { .. } | Shape::Fixed { .. })
}

impl<'a> Call<'a> {
    /// Charges as much as fits, from `least` (1 or more) to `most`, to a limit that
    /// [can be leased](can_lease); what the row owes does not matter.
    pub(crate) fn lease(row: &'a Row<'a>, least: u64, most: u64, by: impl Into<Asker>) -> Self {
        let by = by.into();
        let mut packed = Packed::new(8);
        let (shape, [a, b, c, d, _]) = shape_of(&Numbers::of(&row.owed.limit).shape, by);
        packed.now(by.now).numbers([least, most]).code(shape).numbers([a, b, c, d]);
        Self { script: &LEASE, rows: std::slice::from_ref(row), keys: &[], args: packed.0 }
    }
}

impl Lease {
    /// Reads what was answered.
    pub(crate) fn parse(reply: &[u8]) -> Result<Self, Malformed> {
        let mut bytes = Bytes(reply);
        let taken = bytes.integer()?;
        let retry_after = bytes.time()?;
        let now = bytes.integer()?;
        let cell = bytes.cell()?;
        bytes.end()?;
        Ok(Self { taken, cell, now, retry_after })
    }
}
