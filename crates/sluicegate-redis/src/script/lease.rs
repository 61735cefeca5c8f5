//! Shares of a limit, taken out to be spent elsewhere.
//!
//! Each token of a share is good until the debt that it added has drained, first in, first out; in a fixed
//! window until that ends. Whoever spends them no later than that never exceeds the limit.

use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::remote::{Algorithm, LimitParameters};

use super::call::Call;
use super::caller::Caller;
use super::pack::{Packed, algorithm_of};
use super::reply::{Bytes, Malformed};
use super::row::Row;
use super::source::LEASE;

/// What came of a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lease {
    /// How much was charged; 0 where less than the least was there.
    pub(crate) taken: u64,
    /// The words as it is now: the mark of what was charged.
    pub(crate) words: [u64; 2],
    /// By the clock of the store, in microseconds since the Unix epoch.
    pub(crate) now: u64,
    /// Where nothing was charged: until the least is there; `None` where it never is.
    pub(crate) retry_after: Option<Duration>,
}

/// Whether shares of a limit can be taken out: those of a token bucket that refills continuously, and of
/// a fixed window, with nothing besides.
pub(crate) fn can_lease(limit: &Limit) -> bool {
    let numbers = LimitParameters::of(limit);
    numbers.plain
        && matches!(
            numbers.algorithm,
            Algorithm::TokenBucket { .. } | Algorithm::FixedWindow { .. }
        )
}

/// What is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LeaseRequest {
    /// Less than this is of no use: 1 or more.
    pub(crate) least: u64,
    pub(crate) most: u64,
    /// How much requests wait for: of a bucket, no more than half of the rest is taken besides.
    pub(crate) waited: u64,
    /// The debt that a bucket is brought to, if that takes no more than `largest`; 0 where that does not matter.
    pub(crate) fill: u64,
    pub(crate) largest: u64,
}

impl<'a> Call<'a> {
    /// Charges as much as is wanted and fits to a limit that [can be leased](can_lease); what the row owes
    /// does not matter.
    pub(crate) fn lease(row: &'a Row<'a>, wanted: LeaseRequest, by: impl Into<Caller>) -> Self {
        let by = by.into();
        let LeaseRequest { least, most, waited, fill, largest } = wanted;
        let mut packed = Packed::new(11);
        let (code, [a, b, c, d, _]) =
            algorithm_of(&LimitParameters::of(&row.debit.limit).algorithm, by);
        packed.now(by.now).numbers([least, most, waited, fill, largest]);
        packed.code(code).numbers([a, b, c, d]);
        let more_keys = row.lease_key().into_iter().collect();
        Self { script: &LEASE, rows: std::slice::from_ref(row), more_keys, args: packed.0 }
    }
}

impl Lease {
    /// Reads what was answered.
    pub(crate) fn parse(reply: &[u8]) -> Result<Self, Malformed> {
        let mut bytes = Bytes(reply);
        let taken = bytes.integer()?;
        let retry_after = bytes.time()?;
        let now = bytes.integer()?;
        let words = bytes.words()?;
        bytes.end()?;
        Ok(Self { taken, words, now, retry_after })
    }
}
