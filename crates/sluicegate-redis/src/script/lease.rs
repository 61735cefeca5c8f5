//! Leases: tokens taken out of a limit, to be spent in a process.
//!
//! A token is valid until the debt that it added has drained, first in, first out, or until its fixed window ends. A
//! process that spends tokens no later than that never exceeds the limit.

use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::remote::{Algorithm, Carried, LimitParameters};

use super::call::Call;
use super::pack::{Caller, Packed, Row, algorithm_of};
use super::reply::{Bytes, Malformed};
use super::source::{LEASE, LEASE_CARRIED};

/// The answer to a lease request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lease {
    /// How much was charged; 0 if less than the least was left.
    pub(crate) taken: u64,
    /// The words after the charge, which are its receipt.
    pub(crate) words: [u64; 2],
    /// The time by the store's clock, in microseconds since the Unix epoch.
    pub(crate) now: u64,
    /// If nothing was charged: the time until the least is available, or `None` if it never is.
    pub(crate) retry_after: Option<Duration>,
    /// How it was charged, if the limit is carried over.
    pub(crate) carried: Carried,
    /// Whether another limit of the row had banned the key, if the limit is carried over.
    pub(crate) banned: bool,
}

/// Whether a limit can be leased: token buckets with continuous refill and fixed windows, without options. They may be
/// carried over.
pub(crate) fn can_lease(limit: &Limit) -> bool {
    let numbers = LimitParameters::of(limit);
    // A new algorithm has to be named here: it is leased only if each token has a time until which it is valid.
    let is_kind = match numbers.algorithm {
        Algorithm::TokenBucket { queues, .. } => !queues,
        Algorithm::FixedWindow { .. } => true,
        Algorithm::SteppedBucket { .. }
        | Algorithm::SlidingWindow { .. }
        | Algorithm::SlidingLog { .. }
        | Algorithm::Concurrency { .. } => false,
    };
    let is_bare = numbers.gap == 0 && numbers.ban == 0 && !numbers.count_refused && !numbers.shadow;
    is_kind && (numbers.plain || numbers.carried && is_bare)
}

/// A request for a lease.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LeaseRequest {
    /// The least that is useful: 1 or more.
    pub(crate) least: u64,
    pub(crate) most: u64,
    /// How much requests wait for. Of a bucket, at most half of the rest is taken in addition.
    pub(crate) waited: u64,
    /// The debt to which a bucket is filled, if that takes at most `largest`; 0 if it is not filled.
    pub(crate) fill: u64,
    pub(crate) largest: u64,
}

impl<'a> Call<'a> {
    /// Charges as much as requested and possible to a limit that [can be leased](can_lease). The cost of the debit is
    /// ignored.
    pub(crate) fn lease(row: &'a Row<'a>, wanted: LeaseRequest, by: impl Into<Caller>) -> Self {
        let by = by.into();
        let LeaseRequest { least, most, waited, fill, largest } = wanted;
        let mut packed = Packed::new(15);
        packed.now(by.now).numbers([least, most, waited, fill, largest]);
        let numbers = LimitParameters::of(&row.debit.limit);
        let script = if numbers.carried {
            packed.limit(&row.debit.limit, by);
            &LEASE_CARRIED
        } else {
            let (code, [a, b, c, d, _]) = algorithm_of(&numbers.algorithm, by);
            packed.code(code).numbers([a, b, c, d]);
            &LEASE
        };
        let more_keys = row.lease_key().into_iter().collect();
        Self { script, rows: std::slice::from_ref(row), more_keys, args: packed.0 }
    }
}

impl Lease {
    /// Reads an answer.
    pub(crate) fn parse(reply: &[u8]) -> Result<Self, Malformed> {
        let mut bytes = Bytes(reply);
        let taken = bytes.integer()?;
        let retry_after = bytes.time()?;
        let now = bytes.integer()?;
        let words = bytes.words()?;
        let (carried, banned) = match bytes.0 {
            [] => (Carried::default(), false),
            _ => (bytes.carried(now)?, bytes.flag()?),
        };
        bytes.end()?;
        Ok(Self { taken, words, now, retry_after, carried, banned })
    }
}
