//! Requests and answers as messages of the protocol.

use std::time::Duration;

use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitResponse;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::{
    Code, DescriptorStatus, RateLimit, rate_limit,
};
use envoy_types::pb::envoy::r#type::v3::RateLimitUnit;
use envoy_types::pb::google::protobuf;
use sluicegate_config::envoy::service::{Answer, Descriptor, Hits, Request, Status, Unit};

use super::wire::{Message, MessageDescriptor};
use super::{fields, metadata};
use crate::fields::Fields;

/// A message as a request.
pub(super) fn request(message: Message<'_>) -> Result<Request<'_>, &'static str> {
    let hits = message.hits;
    let domain = str::from_utf8(message.domain).map_err(|_| "the domain is not UTF-8")?;
    let descriptors = message.descriptors.into_iter().map(|one| descriptor(one, hits));
    Ok(Request { domain, descriptors: descriptors.collect::<Result<_, _>>()? })
}

fn descriptor(message: MessageDescriptor<'_>, hits: u32) -> Result<Descriptor<'_>, &'static str> {
    let limit = message.limit.map(brought_along).transpose()?;
    let hits = Hits::of(message.hits, message.is_negative, hits);
    Ok(Descriptor { entries: message.entries, hits, limit })
}

/// The limit that a request brings along. The protocol has no weeks here.
fn brought_along((count, unit): (u32, i32)) -> Result<(u32, Unit), &'static str> {
    let unit = match RateLimitUnit::try_from(unit) {
        Ok(RateLimitUnit::Second) => Unit::Second,
        Ok(RateLimitUnit::Minute) => Unit::Minute,
        Ok(RateLimitUnit::Hour) => Unit::Hour,
        Ok(RateLimitUnit::Day) => Unit::Day,
        Ok(RateLimitUnit::Month) => Unit::Month,
        Ok(RateLimitUnit::Year) => Unit::Year,
        Ok(RateLimitUnit::Unknown) | Err(_) => {
            return Err(
                "the unit of a limit is not known: expected SECOND, MINUTE, HOUR, DAY, MONTH or YEAR",
            );
        }
    };
    Ok((count, unit))
}

/// An answer as a message.
pub(super) fn response(
    request: &Request<'_>,
    answer: &Answer,
    wanted: Fields,
) -> RateLimitResponse {
    RateLimitResponse {
        overall_code: code(answer.is_over),
        statuses: answer.statuses.iter().map(status).collect(),
        response_headers_to_add: fields::of(answer, wanted),
        dynamic_metadata: metadata::of(request, answer),
        ..RateLimitResponse::default()
    }
}

/// The answer to a request that was not read.
pub(super) fn without_statuses(is_over: bool) -> RateLimitResponse {
    RateLimitResponse { overall_code: code(is_over), ..RateLimitResponse::default() }
}

fn status(status: &Status) -> DescriptorStatus {
    DescriptorStatus {
        code: code(status.is_over),
        current_limit: status.limit.as_ref().map(|limit| RateLimit {
            name: limit.name.clone().into(),
            requests_per_unit: limit.count,
            unit: i32::from(number(limit.unit)),
        }),
        limit_remaining: status.remaining,
        duration_until_reset: status.until_reset.map(whole_seconds),
        quota: None,
    }
}

fn code(is_over: bool) -> i32 {
    i32::from(if is_over { Code::OverLimit } else { Code::Ok })
}

const fn number(unit: Unit) -> rate_limit::Unit {
    match unit {
        Unit::Second => rate_limit::Unit::Second,
        Unit::Minute => rate_limit::Unit::Minute,
        Unit::Hour => rate_limit::Unit::Hour,
        Unit::Day => rate_limit::Unit::Day,
        Unit::Week => rate_limit::Unit::Week,
        Unit::Month => rate_limit::Unit::Month,
        Unit::Year => rate_limit::Unit::Year,
    }
}

/// Envoy shows whole seconds to clients, and cuts the rest off: rounded up, nobody comes too early.
fn whole_seconds(time: Duration) -> protobuf::Duration {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    protobuf::Duration { seconds: i64::try_from(seconds).unwrap_or(i64::MAX), nanos: 0 }
}
