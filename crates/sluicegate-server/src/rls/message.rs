//! Requests and answers as messages of the protocol.

use std::borrow::Cow;
use std::time::Duration;

use envoy_types::pb::envoy::config::core::v3::HeaderValue;
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitResponse;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::{
    Code, DescriptorStatus, RateLimit, rate_limit,
};
use envoy_types::pb::envoy::r#type::v3::RateLimitUnit;
use envoy_types::pb::google::protobuf;
use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{ListValue, Struct, Value};
use sluicegate_config::envoy::service::{Answer, Descriptor, Hits, Request, Status, Unit};
use sluicegate_core::adapter::fields;

use super::wire::{Message, MessageDescriptor};
use crate::fields::{Fields, rounded_up};

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
    let unknown =
        "the unit of a limit is not known: expected SECOND, MINUTE, HOUR, DAY, MONTH or YEAR";
    Ok((count, numbered(unit).ok_or(unknown)?))
}

/// The unit that has this number in the protocol.
pub(crate) fn numbered(unit: i32) -> Option<Unit> {
    Unit::named(RateLimitUnit::try_from(unit).ok()?.as_str_name())
}

/// An answer as a message. `described`, the hits of the whole request: if given, every answer has metadata.
pub(super) fn response(
    request: &Request<'_>,
    answer: &Answer,
    wanted: Fields,
    names: &[String; 3],
    described: Option<u32>,
) -> RateLimitResponse {
    RateLimitResponse {
        overall_code: code(answer.is_over),
        statuses: answer.statuses.iter().map(status).collect(),
        response_headers_to_add: fields_to_add(answer, wanted, names),
        dynamic_metadata: metadata(request, answer, described),
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
    protobuf::Duration { seconds: i64::try_from(rounded_up(time)).unwrap_or(i64::MAX), nanos: 0 }
}

/// The header fields that Envoy adds to the response. There are none if it is about no limit.
pub(crate) fn fields_to_add(
    answer: &Answer,
    fields: Fields,
    names: &[String; 3],
) -> Vec<HeaderValue> {
    match fields {
        Fields::Nothing => Vec::new(),
        Fields::Draft => draft(answer),
        Fields::Three => three(answer, names).unwrap_or_default(),
    }
}

fn draft(answer: &Answer) -> Vec<HeaderValue> {
    let decision = &answer.decision;
    let policy = fields::rate_limit_policy(decision);
    if policy.is_empty() {
        return Vec::new();
    }
    let mut all = vec![
        field(fields::RATE_LIMIT_POLICY, policy),
        field(fields::RATE_LIMIT, fields::rate_limit(decision)),
    ];
    if answer.is_over && !decision.is_admitted() && !decision.never_fits() {
        all.push(field(fields::RETRY_AFTER, fields::retry_after(decision).to_string()));
    }
    all
}

fn three(answer: &Answer, [count, remaining, resets]: &[String; 3]) -> Option<Vec<HeaderValue>> {
    let status = answer.tightest()?;
    let limit = status.limit.as_ref()?;
    let reset = status.until_reset.unwrap_or_default();
    Some(vec![
        field(count, limit.count.to_string()),
        field(remaining, status.remaining.to_string()),
        field(resets, rounded_up(reset).to_string()),
    ])
}

fn field(name: &str, value: String) -> HeaderValue {
    HeaderValue { key: name.to_owned(), value, ..HeaderValue::default() }
}

/// What other filters of Envoy may read about a request: dynamic metadata, with the names that Envoy's service uses. Without
/// `described`, only requests that meet a quota have them.
fn metadata(request: &Request<'_>, answer: &Answer, described: Option<u32>) -> Option<Struct> {
    let spent = answer.spent_quotas.as_ref();
    if spent.is_none() && described.is_none() {
        return None;
    }
    let descriptors = request.descriptors.iter();
    let descriptors = descriptors.map(|one| structure(of_descriptor(one, described.is_some())));
    let mut fields = vec![
        ("domain", text(request.domain.to_owned())),
        ("descriptors", list(descriptors.map(value).collect())),
    ];
    if let Some(hits) = described.filter(|hits| *hits > 0) {
        fields.push(("hitsAddend", number_of(u64::from(hits))));
    }
    if let Some(spent) = spent {
        fields.push(("quotaModeEnabled", Kind::BoolValue(true)));
        if !spent.is_empty() {
            let spent = spent.iter().map(|at| value(number_of(*at as u64)));
            fields.push(("quotaModeViolations", list(spent.collect())));
        }
    }
    Some(fields_of(fields))
}

/// The entries of a descriptor. If it is `described`, also the limit that it brings along, and its own hits.
fn of_descriptor(descriptor: &Descriptor<'_>, described: bool) -> Vec<(&'static str, Kind)> {
    let entry = |(key, text): &(&[u8], &[u8])| {
        let (key, text) = (shown(key), shown(text));
        value(Kind::StringValue(format!("{key}={text}")))
    };
    let mut fields = vec![("entries", list(descriptor.entries.iter().map(entry).collect()))];
    if !described {
        return fields;
    }
    if let Some((count, unit)) = descriptor.limit {
        let unit = number(unit).as_str_name();
        fields.push(("limit", text(format!("requests_per_unit:{count} unit:{unit}"))));
    }
    match descriptor.hits {
        Hits::Spend(_) => {}
        Hits::Look => fields.push(("hitsAddend", number_of(0))),
        Hits::Report(hits) | Hits::GiveBack(hits) => fields.push(("hitsAddend", number_of(hits))),
    }
    fields
}

/// The most bytes of a text that are repeated: clients choose them, and other filters tell requests by fewer.
const SHOWN: usize = 1_024;

/// A text of Envoy, in which what is not UTF-8 is replaced.
fn shown(text: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&text[..text.len().min(SHOWN)])
}

fn value(kind: Kind) -> Value {
    Value { kind: Some(kind) }
}

fn text(text: String) -> Kind {
    Kind::StringValue(text)
}

fn list(values: Vec<Value>) -> Kind {
    Kind::ListValue(ListValue { values })
}

/// Protobuf has no other numbers here.
fn number_of(count: u64) -> Kind {
    Kind::NumberValue(count as f64)
}

fn structure(fields: Vec<(&str, Kind)>) -> Kind {
    Kind::StructValue(fields_of(fields))
}

fn fields_of(fields: Vec<(&str, Kind)>) -> Struct {
    let fields = fields.into_iter().map(|(name, kind)| (name.to_owned(), value(kind)));
    Struct { fields: fields.collect() }
}
