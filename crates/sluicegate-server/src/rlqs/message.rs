//! Between the messages of the protocol and what [`Quotas`](super::Quotas) knows.

use std::time::Duration;

use envoy_types::pb::envoy::r#type::v3::rate_limit_strategy::{BlanketRule, Strategy};
use envoy_types::pb::envoy::r#type::v3::{RateLimitStrategy, TokenBucket};
use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_response::bucket_action::{
    AbandonAction, QuotaAssignmentAction,
};
use envoy_types::pb::google::protobuf::{Duration as ProtoDuration, UInt32Value};
use prost::Message as _;
use prost::bytes::Bytes;

use super::assignment::Assignment;
use super::quotas::Order;
use super::unit::BucketUsage;
use super::wire::{Action, AssignmentMessage, BucketId as ProtoId, Entry, Usage, id_of};
use crate::capacity::BucketId;
use crate::text;

/// The most keys of a bucket. Others are ignored.
const MOST_KEYS: usize = 16;
/// The most bytes of all keys and values of a bucket. Larger ones are to be forgotten.
const LONGEST: usize = 2_048;
/// The longest usage, in bytes. One that is longer has a larger id, or fields that nobody knows, and is not read.
const LONGEST_USAGE: usize = 2 * LONGEST;

/// What a report says about a bucket.
pub(super) enum Reported {
    Usage(BucketId, BucketUsage),
    /// The Envoy has to forget the bucket with this id. A few with the longest values that clients can send would make
    /// each report too large to be read.
    TooLarge(Bytes),
}

/// Reads a part of a report. `None` if it has no id, or if the id has more keys than any file.
pub(super) fn usage(bytes: Bytes) -> Result<Option<Reported>, &'static str> {
    if bytes.len() > LONGEST_USAGE {
        return Ok(id_of(&bytes).map(Reported::TooLarge));
    }
    let usage = Usage::decode(bytes.clone()).map_err(|_| "the usage of a bucket cannot be read")?;
    let elapsed = match usage.time_elapsed {
        None => Duration::ZERO,
        Some(ProtoDuration { seconds, nanos }) => {
            let parts = u64::try_from(seconds).ok().zip(u32::try_from(nanos).ok());
            let (seconds, nanos) = parts
                .filter(|(_, nanos)| *nanos < 1_000_000_000)
                .ok_or("the time since the last report is negative or no duration")?;
            Duration::new(seconds, nanos)
        }
    };
    let used = BucketUsage { allowed: usage.allowed, denied: usage.denied, elapsed };
    let Some(ProtoId { bucket }) = usage.bucket_id else { return Ok(None) };
    let length: usize = bucket.iter().map(|entry| entry.key.len() + entry.value.len()).sum();
    if length > LONGEST {
        return Ok(id_of(&bytes).map(Reported::TooLarge));
    }
    if bucket.is_empty() || bucket.len() > MOST_KEYS {
        return Ok(None);
    }
    let id = bucket.iter().map(|entry| (boxed(&entry.key), boxed(&entry.value))).collect();
    Ok(Some(Reported::Usage(id, used)))
}

fn boxed(bytes: &[u8]) -> Box<str> {
    text::of(bytes).into()
}

pub(super) fn response(orders: &[Order]) -> AssignmentMessage {
    AssignmentMessage { actions: orders.iter().map(action).collect() }
}

/// Tells an Envoy to forget the buckets with these ids.
pub(super) fn abandonment(ids: Vec<Bytes>) -> AssignmentMessage {
    let abandon = |bucket_id| Action { bucket_id, assign: None, abandon: Some(AbandonAction {}) };
    AssignmentMessage { actions: ids.into_iter().map(abandon).collect() }
}

fn action(order: &Order) -> Action {
    let bytes = |text: &str| text::bytes(text).into_owned().into();
    let bucket = order.bucket.iter();
    let bucket = bucket.map(|(key, value)| Entry { key: bytes(key), value: bytes(value) });
    let bucket = ProtoId { bucket: bucket.collect() };
    let assign = order.assignment.map(|(assignment, seconds)| QuotaAssignmentAction {
        assignment_time_to_live: Some(whole(seconds)),
        rate_limit_strategy: Some(RateLimitStrategy { strategy: Some(strategy(assignment)) }),
    });
    let abandon = assign.is_none().then_some(AbandonAction {});
    Action { bucket_id: bucket.encode_to_vec().into(), assign, abandon }
}

fn strategy(assignment: Assignment) -> Strategy {
    match assignment {
        Assignment::Nothing => Strategy::BlanketRule(BlanketRule::DenyAll.into()),
        Assignment::Tokens { most, fill, seconds } => Strategy::TokenBucket(TokenBucket {
            max_tokens: most,
            // Without it, Envoy never fills the bucket again.
            tokens_per_fill: Some(UInt32Value { value: fill }),
            fill_interval: Some(whole(seconds.into())),
        }),
    }
}

/// Envoy cuts durations to whole seconds.
fn whole(seconds: u64) -> ProtoDuration {
    ProtoDuration { seconds: i64::try_from(seconds).unwrap_or(i64::MAX), nanos: 0 }
}
