//! The messages of the protocol as JSON: the mapping of proto3, in which names are in camel case or as in the protocol
//! file, numbers may be texts, and fields with their default value are left out.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use sluicegate_config::envoy::service::{self, Answer, Hits, Status, Unit};

use super::number::Number;
use super::object::Object;
use super::text::Sent;

/// A `RateLimitRequest`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Request {
    #[serde(default, deserialize_with = "or_default")]
    domain: String,
    #[serde(default, deserialize_with = "list")]
    descriptors: Vec<Descriptor>,
    #[serde(default, alias = "hits_addend", deserialize_with = "or_default")]
    hits_addend: Number,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Descriptor {
    #[serde(default, deserialize_with = "list")]
    entries: Vec<Entry>,
    #[serde(default, deserialize_with = "object")]
    limit: Option<Override>,
    #[serde(default, alias = "hits_addend")]
    hits_addend: Option<Number>,
    #[serde(default, alias = "is_negative_hits", deserialize_with = "or_default")]
    is_negative_hits: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(default, deserialize_with = "or_default")]
    key: Sent<Vec<u8>>,
    #[serde(default, deserialize_with = "or_default")]
    value: Sent<Vec<u8>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Override {
    #[serde(default, alias = "requests_per_unit", deserialize_with = "or_default")]
    requests_per_unit: Number,
    #[serde(default)]
    unit: Option<Named>,
}

/// A value of an enumeration: its name or its number.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected the name of a unit, or its number")]
enum Named {
    Name(String),
    Number(i32),
}

/// A field that may be `null`, which is the same as its absence.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// A list of objects, none of which may be `null`.
fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let objects: Option<Vec<Object<T>>> = Option::deserialize(deserializer)?;
    Ok(objects.unwrap_or_default().into_iter().map(|Object(value)| value).collect())
}

fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let object: Option<Object<T>> = Option::deserialize(deserializer)?;
    Ok(object.map(|Object(value)| value))
}

impl Request {
    pub(super) fn request(&self) -> Result<service::Request<'_>, String> {
        let hits =
            u32::try_from(self.hits_addend.get()).map_err(|_| "hitsAddend is 2^32 or more")?;
        let descriptors = self.descriptors.iter().map(|one| one.descriptor(hits));
        Ok(service::Request {
            domain: &self.domain,
            descriptors: descriptors.collect::<Result<_, _>>()?,
        })
    }
}

impl Descriptor {
    fn descriptor(&self, hits: u32) -> Result<service::Descriptor<'_>, String> {
        let own = self.hits_addend.map(Number::get);
        let entries = self.entries.iter().map(|entry| (&*entry.key.0, &*entry.value.0));
        let limit = self.limit.as_ref().map(Override::limit).transpose()?;
        let hits = Hits::of(own, self.is_negative_hits, hits);
        Ok(service::Descriptor { entries: entries.collect(), hits, limit })
    }
}

impl Override {
    fn limit(&self) -> Result<(u32, Unit), String> {
        let unit = match &self.unit {
            Some(Named::Name(name)) => Unit::named(name).ok_or_else(|| format!("{name:?}")),
            Some(Named::Number(number)) => numbered(*number).ok_or_else(|| number.to_string()),
            None => Err("0".to_owned()),
        };
        let unit = unit.map_err(|unit| {
            format!("the unit {unit} is not known: expected SECOND, MINUTE, HOUR, DAY, MONTH or YEAR, or 1 to 6")
        })?;
        let count = self.requests_per_unit.get();
        let count = u32::try_from(count).map_err(|_| "requestsPerUnit is 2^32 or more")?;
        Ok((count, unit))
    }
}

/// The unit that has this number in the protocol.
const fn numbered(number: i32) -> Option<Unit> {
    Some(match number {
        1 => Unit::Second,
        2 => Unit::Minute,
        3 => Unit::Hour,
        4 => Unit::Day,
        5 => Unit::Month,
        6 => Unit::Year,
        _ => return None,
    })
}

/// A `RateLimitResponse`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Response<'a> {
    overall_code: &'static str,
    statuses: Vec<DescriptorStatus<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DescriptorStatus<'a> {
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_limit: Option<RateLimit<'a>>,
    #[serde(skip_serializing_if = "is_zero")]
    limit_remaining: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_until_reset: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RateLimit<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "is_zero")]
    requests_per_unit: u32,
    unit: &'static str,
}

impl<'a> Response<'a> {
    pub(super) fn new(answer: &'a Answer) -> Self {
        let statuses = answer.statuses.iter().map(DescriptorStatus::new);
        Self { overall_code: code(answer.is_over), statuses: statuses.collect() }
    }
}

impl<'a> DescriptorStatus<'a> {
    fn new(status: &'a Status) -> Self {
        let current_limit = status.limit.as_ref().map(|limit| RateLimit {
            name: &limit.name,
            requests_per_unit: limit.count,
            unit: limit.unit.name(),
        });
        Self {
            code: code(status.is_over),
            current_limit,
            limit_remaining: status.remaining,
            duration_until_reset: status.until_reset.map(seconds),
        }
    }
}

const fn code(is_over: bool) -> &'static str {
    if is_over { "OVER_LIMIT" } else { "OK" }
}

/// Whole seconds, rounded up.
fn seconds(time: Duration) -> String {
    format!("{}s", time.as_secs() + u64::from(time.subsec_nanos() > 0))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}
