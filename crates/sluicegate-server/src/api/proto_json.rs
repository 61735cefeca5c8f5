//! The messages of the protocol as JSON: the mapping of proto3, in which names are in camel case or as in the protocol
//! file, numbers may be texts, and fields with their default value are left out.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sluicegate_envoy::service::{self, Answer, Hits, Status, Unit};

/// A `RateLimitRequest`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Request {
    #[serde(default)]
    domain: String,
    #[serde(default)]
    descriptors: Vec<Descriptor>,
    #[serde(default, alias = "hits_addend")]
    hits_addend: Number,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Descriptor {
    #[serde(default)]
    entries: Vec<Entry>,
    limit: Option<Override>,
    #[serde(alias = "hits_addend")]
    hits_addend: Option<Number>,
    #[serde(default, alias = "is_negative_hits")]
    is_negative_hits: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(default)]
    key: String,
    #[serde(default)]
    value: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Override {
    #[serde(default, alias = "requests_per_unit")]
    requests_per_unit: Number,
    unit: String,
}

/// A whole number, which may be written as text.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(try_from = "Written")]
struct Number(u64);

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a whole number below 2^64")]
enum Written {
    Number(u64),
    Text(String),
}

impl TryFrom<Written> for Number {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        match written {
            Written::Number(number) => Ok(Self(number)),
            Written::Text(text) => match text.parse() {
                Ok(number) => Ok(Self(number)),
                Err(_) => Err(format!("expected a whole number below 2^64, not {text:?}")),
            },
        }
    }
}

impl Request {
    pub(super) fn request(&self) -> Result<service::Request<'_>, String> {
        let hits = u32::try_from(self.hits_addend.0).map_err(|_| "hitsAddend is 2^32 or more")?;
        let descriptors = self.descriptors.iter().map(|one| one.descriptor(hits));
        Ok(service::Request {
            domain: &self.domain,
            descriptors: descriptors.collect::<Result<_, _>>()?,
        })
    }
}

impl Descriptor {
    fn descriptor(&self, hits: u32) -> Result<service::Descriptor<'_>, String> {
        let own = self.hits_addend.map(|hits| hits.0);
        let entries = self.entries.iter().map(|entry| (entry.key.as_str(), entry.value.as_str()));
        let limit = self.limit.as_ref().map(Override::limit).transpose()?;
        let hits = Hits::of(own, self.is_negative_hits, hits);
        Ok(service::Descriptor { entries: entries.collect(), hits, limit })
    }
}

impl Override {
    fn limit(&self) -> Result<(u32, Unit), String> {
        let unit = Unit::named(&self.unit).ok_or_else(|| {
            format!("the unit {:?} is not known: expected SECOND to YEAR", self.unit)
        })?;
        let count = self.requests_per_unit.0;
        let count = u32::try_from(count).map_err(|_| "requestsPerUnit is 2^32 or more")?;
        Ok((count, unit))
    }
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
